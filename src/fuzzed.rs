//! What the fuzz targets hold of every input, held of the inputs that are kept: `fuzz/corpus`
//! has the seeds and what fuzzing found to be different from them.

#[path = "../fuzz/checks/card.rs"]
mod card;
#[path = "../fuzz/checks/fallback.rs"]
pub(crate) mod fallback;
#[path = "../fuzz/checks/named.rs"]
mod named;
#[path = "../fuzz/checks/reply.rs"]
pub(crate) mod reply;

/// Runs a check over every file of its corpus.
fn all_hold(target: &str, check: fn(&[u8])) {
    let folder = format!("{}/fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let input = std::fs::read(&path).unwrap();
        let held = std::panic::catch_unwind(|| check(&input));
        assert!(held.is_ok(), "{} breaks a rule", path.display());
        files += 1;
    }
    assert!(files >= 20, "the corpus of {target} has only {files} files");
}

#[test]
fn every_card_of_the_corpus_keeps_the_rules() {
    all_hold("card", card::check);
}

#[test]
fn every_text_of_the_corpus_keeps_the_rules() {
    all_hold("fallback", fallback::check);
}

#[test]
fn every_reply_of_the_corpus_keeps_the_rules() {
    all_hold("reply", reply::check);
}

#[test]
fn every_line_of_the_table_of_replies_keeps_the_rules() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/replies.jsonl");
    let table = std::fs::read_to_string(path).unwrap();
    let mut lines = 0;
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = entry["text"].as_str().unwrap();
        let mention = if entry["directed"] == true { "m" } else { "" };
        let options: String = entry["options"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|option| {
                let label = option["label"].as_str().unwrap().replace('\n', "␤");
                ["\n", option["id"].as_str().unwrap(), "\t", &label].map(str::to_owned)
            })
            .collect();
        let room = format!("{mention}\n?ovm1 q1{options}\n=\n{text}");
        reply::check(room.as_bytes());
        fallback::check(text.as_bytes());
        lines += 1;
    }
    assert!(lines >= 170, "only {lines} lines");
}

/// The judge of choices objects to wrong ones, or it would prove nothing.
#[test]
fn the_judge_tells_a_right_choice_from_a_wrong_one() {
    use crate::contract::CardOption;
    let list = [
        CardOption::new("run_them", "Run the tests"),
        CardOption::new("skip", "Don’t run them"),
    ];
    for (text, index) in [
        ("1", 0),
        ("(2).", 1),
        ("RUN_THEM", 0),
        ("**run the tests!**", 0),
    ] {
        assert!(named::is_whole(text, &list, index), "{text}");
        assert!(!named::is_whole(text, &list, 1 - index), "{text}");
    }
    for (text, index) in [
        ("let’s go with the second one please", 1),
        ("option 1", 0),
        ("dont run them, thanks", 1),
        ("the last one", 1),
    ] {
        assert!(named::is_said(text, &list, index, &[]), "{text}");
        assert!(!named::is_said(text, &list, 1 - index, &[]), "{text}");
    }
    for text in [
        "not 1",
        "1, I guess",
        "run the tests tomorrow",
        "skip 1",
        "12",
    ] {
        for index in [0, 1] {
            assert!(!named::is_said(text, &list, index, &[]), "{text}");
        }
    }
}
