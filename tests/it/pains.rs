//! What hurts people with other such bots is in `tests/pains.txt`. For each there is a test that
//! shows that ours does not do it, and names the pain in the last line above the test's attributes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// How a test names its pains; the keys follow, with commas between them and a full stop.
const MARK: &str = "/// Pain:";

/// What is wrong with the list, and with what names its lines; each fault in a line.
fn faults(list: &str, sources: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut keys = BTreeSet::new();
    for (number, line) in (1..).zip(list.lines()) {
        match line.split_once(": ") {
            Some((key, what)) if is_key(key) && !what.trim().is_empty() => {
                if !keys.insert(key) {
                    faults.push(format!("line {number} of the list: {key} is there already"));
                }
            }
            _ => faults.push(format!(
                "line {number} of the list is no `key: what happens`"
            )),
        }
    }
    let mut unnamed = keys.clone();
    for (path, source) in sources {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            // Also one that is nearly right, so that none is overlooked for a slip.
            let words = line
                .strip_prefix("//")
                .map(|rest| rest.trim_start_matches(['/', ' ']));
            if !words.is_some_and(|words| words.to_lowercase().starts_with("pain:")) {
                continue;
            }
            let place = format!("{path}:{}", index + 1);
            let named = line.strip_prefix(MARK).and_then(|rest| {
                let rest = rest.strip_prefix(' ')?.strip_suffix('.')?;
                rest.split(", ").all(is_key).then_some(rest)
            });
            let Some(named) = named else {
                faults.push(format!("{place} is not written `{MARK} key, key.`"));
                continue;
            };
            if !is_above_a_test(&lines[index + 1..]) {
                faults.push(format!("{place} does not stand above a test that is run"));
                continue;
            }
            for key in named.split(", ") {
                if keys.contains(key) {
                    unnamed.remove(key);
                } else {
                    faults.push(format!("{place} names {key}, which is not in the list"));
                }
            }
        }
    }
    let unshown = unnamed.into_iter();
    faults.extend(unshown.map(|key| format!("no test names {key}")));
    faults
}

fn is_key(key: &str) -> bool {
    let letters = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    key.split('-').all(letters)
}

/// Whether these lines begin with attributes, one of which makes a test of the function that
/// follows, and none of which keeps it from being run.
fn is_above_a_test(lines: &[&str]) -> bool {
    let mut is_test = false;
    // An attribute may go over several lines.
    let mut inside = false;
    for line in lines {
        if !inside && !line.starts_with("#[") {
            let function = line.strip_prefix("async ").unwrap_or(line);
            return is_test && function.starts_with("fn ");
        }
        if !inside {
            let name = line.trim_start_matches("#[").split([']', '(', ' ']).next();
            match name {
                Some("test" | "tokio::test") => is_test = true,
                Some("ignore" | "cfg" | "cfg_attr") => return false,
                _ => {}
            }
        }
        inside = !line.ends_with(']');
    }
    false
}

/// Every Rust file below a folder, by its path from the root of the repository.
fn read_sources(folder: &str, sources: &mut BTreeMap<String, String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            read_sources(&name, sources);
        } else if entry.path().extension().is_some_and(|ext| ext == "rs") {
            sources.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

#[test]
fn every_pain_is_named_by_a_test_and_every_test_names_pains_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("tests/pains.txt")).unwrap();
    let mut sources = BTreeMap::new();
    for folder in ["src", "tests"] {
        read_sources(folder, &mut sources);
    }
    let faults = faults(&list, &sources);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn what_is_wrong_with_the_list_or_with_a_name_is_told() {
    let told = |list: &str, source: &str| -> Vec<String> {
        let sources = BTreeMap::from([("a.rs".to_owned(), source.to_owned())]);
        faults(list, &sources)
    };
    let list = "deaf: it hears nothing\none-time-key: no keys [x 1]\n";
    let both = "/// Pain: deaf, one-time-key.\n";
    let with = |below: &str| told(list, &format!("{both}{below}"));
    let unnamed = ["no test names deaf", "no test names one-time-key"];
    let unshown = |fault: &str| -> Vec<String> {
        let all = [&[fault], &unnamed[..]].concat();
        all.into_iter().map(str::to_owned).collect()
    };

    for test in [
        "#[test]\nfn a_test() {}",
        "    #[tokio::test(flavor = \"multi_thread\")]\n    async fn a_test() {",
        "#[test]\n#[expect(\n    clippy::too_many_lines,\n    reason = \"a story\"\n)]\nfn a_test() {}",
    ] {
        assert_eq!(with(test), Vec::<String>::new(), "{test}");
    }
    for nothing in [
        "fn a_test() {}",
        "#[must_use]\nfn a_test() {}",
        "\n#[test]\nfn a_test() {}",
        "/// More.\n#[test]\nfn a_test() {}",
        "#[test]\n#[ignore]\nfn a_test() {}",
        "#[test]\n#[ignore = \"slow\"]\nfn a_test() {}",
        "#[cfg(windows)]\n#[test]\nfn a_test() {}",
        "#[test]\nconst A: u8 = 1;",
        "",
    ] {
        let fault = "a.rs:1 does not stand above a test that is run";
        assert_eq!(with(nothing), unshown(fault), "{nothing}");
    }
    for slip in [
        "/// Pain: deaf, one-time-key",
        "/// Pain: deaf one-time-key.",
        "/// Pain: deaf,one-time-key.",
        "/// Pain:deaf.",
        "/// Pain: .",
        "/// pain: deaf.",
        "// Pain: deaf.",
    ] {
        let fault = "a.rs:1 is not written `/// Pain: key, key.`";
        let source = format!("{slip}\n#[test]\nfn a_test() {{}}");
        assert_eq!(told(list, &source), unshown(fault), "{slip}");
    }
    let test = "#[test]\nfn a_test() {}";
    assert_eq!(
        told(list, &format!("/// Pain: deaf, dead.\n{test}")),
        [
            "a.rs:1 names dead, which is not in the list",
            "no test names one-time-key"
        ]
    );
    for (list, fault) in [
        (
            "deaf: a\ndeaf: b",
            "line 2 of the list: deaf is there already",
        ),
        (
            "deaf: a\n\n",
            "line 2 of the list is no `key: what happens`",
        ),
        (
            "deaf: a\nDead: b",
            "line 2 of the list is no `key: what happens`",
        ),
        (
            "deaf: a\ndead:  ",
            "line 2 of the list is no `key: what happens`",
        ),
    ] {
        let source = format!("/// Pain: deaf.\n{test}");
        assert_eq!(told(list, &source), [fault], "{list}");
    }
}
