use std::sync::Mutex;

use super::*;

fn from_env(variables: &[(&str, &str)]) -> Result<Provision, SandboxError> {
    Provision::from_env(&|name| {
        variables
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    })
}

fn quiet(_: &str) {}

/// An interpreter that answers every question with the given shell command.
#[cfg(unix)]
fn pretend_python(folder: &Path, command: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;

    let path = folder.join("pretend-python");
    fs::write(&path, format!("#!/bin/sh\n{command}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn the_cache_folder_is_the_one_that_is_named_first() {
    let all = [
        ("MATRIX_ELICIT_CACHE", "/a"),
        ("XDG_CACHE_HOME", "/b"),
        ("HOME", "/c"),
    ];
    assert_eq!(from_env(&all).unwrap().cache, Path::new("/a"));
    assert_eq!(
        from_env(&all[1..]).unwrap().cache,
        Path::new("/b/matrix-elicit")
    );
    assert!(from_env(&all[2..]).unwrap().cache.starts_with("/c"));
    assert!(matches!(from_env(&[]), Err(SandboxError::NoCacheFolder)));
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let provision = from_env(&[("MATRIX_ELICIT_CACHE", ""), ("XDG_CACHE_HOME", "/b")]).unwrap();
    assert_eq!(provision.cache, Path::new("/b/matrix-elicit"));
}

#[tokio::test]
async fn without_python_one_line_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let provision = Provision::new(
        folder.path().to_owned(),
        Some("no-such-interpreter".to_owned()),
    );
    let error = provision.run(&quiet).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Python 3.10 or newer is needed, and no-such-interpreter does not run; install one, or \
         name one in MATRIX_ELICIT_PYTHON"
    );
    assert!(error.is_missing_here());
}

#[cfg(unix)]
#[tokio::test]
async fn an_old_python_is_named_with_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let python = pretend_python(folder.path(), "echo 3.9");
    let provision = Provision::new(folder.path().join("cache"), Some(python.clone()));
    let error = provision.run(&quiet).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("and {python} is 3.9; install one")),
        "{error}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_python_without_venv_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let python = pretend_python(
        folder.path(),
        "case \"$2\" in *ensurepip*) exit 1;; *) echo 3.12;; esac",
    );
    let provision = Provision::new(folder.path().join("cache"), Some(python));
    let error = provision.run(&quiet).await.unwrap_err();
    assert!(matches!(error, SandboxError::NoVenv { .. }), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn to_run_something_on_python_needs_no_environment_but_one_that_is_new_enough() {
    let folder = tempfile::tempdir().unwrap();
    let found = async |version: &str| {
        let command = format!("case \"$2\" in *ensurepip*) exit 1;; *) echo {version};; esac");
        let python = pretend_python(folder.path(), &command);
        let named = |name: &str| (name == "MATRIX_ELICIT_PYTHON").then(|| python.clone());
        find_python(&named).await.map(|found| found == python)
    };
    assert!(found("3.10").await.unwrap());
    let error = found("3.9").await.unwrap_err();
    assert!(matches!(error, SandboxError::NoPython { .. }), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_failed_installation_is_not_taken_for_one_and_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    // Finds itself fit, then makes an environment whose pip cannot reach anything.
    let environment = "mkdir -p \"$3/bin\"; printf '#!/bin/sh\\necho ERROR: no network >&2; exit 1' \
                       > \"$3/bin/python\"; chmod +x \"$3/bin/python\"";
    let python = pretend_python(
        folder.path(),
        &format!("case \"$1\" in -m) {environment};; *) echo 3.12;; esac"),
    );
    let provision = Provision::new(cache.clone(), Some(python));
    for _ in 0..2 {
        let error = provision.run(&quiet).await.unwrap_err();
        assert!(
            matches!(&error, SandboxError::Install { reason, .. } if reason == "ERROR: no network"),
            "{error}"
        );
        let mut names: Vec<_> = fs::read_dir(&cache)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(names[..2], ["install.lock", "install.log"]);
        assert!(names[2].starts_with(&folder_prefix()));
    }
}

#[tokio::test]
async fn a_second_process_waits_for_the_first_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("install.lock");
    let first = lock(&path, &quiet).await.unwrap();
    let told = Mutex::new(Vec::new());
    let progress = |line: &str| told.lock().unwrap().push(line.to_owned());
    let second = lock(&path, &progress);
    tokio::pin!(second);
    assert!(
        tokio::time::timeout(LOCK_POLL * 3, &mut second)
            .await
            .is_err()
    );
    drop(first);
    assert!(second.await.is_ok());
    assert_eq!(
        *told.lock().unwrap(),
        ["waiting for another process that is installing Synapse"]
    );
}

#[test]
fn of_the_installers_words_only_what_it_fetches_is_told() {
    assert_eq!(
        worth_telling("Collecting twisted[tls]>=20.3.0 (from matrix-synapse==1.163.2)").as_deref(),
        Some("fetching twisted")
    );
    assert_eq!(
        worth_telling("Installing collected packages: a, b").as_deref(),
        Some("unpacking")
    );
    assert_eq!(worth_telling("  Downloading a.whl (1 kB)"), None);
}

#[test]
fn the_last_complaint_is_an_error_line_if_there_is_one() {
    assert_eq!(
        last_complaint("a\nERROR: no disk\nnotice: b\n\n"),
        "ERROR: no disk"
    );
    assert_eq!(last_complaint("a\nb\n\n"), "b");
    assert_eq!(last_complaint(""), "it said nothing");
}
