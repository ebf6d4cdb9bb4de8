//! `matrix-elicit demo --agent`: a session from a person's first line to the agent's last word.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Stdio},
};

use serde_json::Value;

use super::{demo, finished, is_empty, no_process_is_left, stderr};
use crate::support::installed;

/// What the demo prints for a reply, and what it tells beside it.
async fn scripted(reply: &str) -> (Value, String) {
    installed().await;
    let folder = tempfile::tempdir().unwrap();
    let output = finished(demo(folder.path(), &["--agent", "--reply", reply])).await;
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    assert!(is_empty(folder.path()));
    no_process_is_left(folder.path()).await;
    (serde_json::from_slice(&output.stdout).unwrap(), told)
}

/// The type of every activity, what it says of an account or a choice, and who said it.
fn story(object: &Value) -> Vec<(&str, Option<&str>, Option<&str>)> {
    let activities = object["activities"].as_array().unwrap();
    activities
        .iter()
        .map(|activity| {
            (
                activity["content"]["type"].as_str().unwrap(),
                activity["signal"].as_str(),
                activity["user"]["user_id"].as_str(),
            )
        })
        .collect()
}

fn body(object: &Value, at: usize) -> &str {
    object["activities"][at]["content"]["body"]
        .as_str()
        .unwrap()
}

const ADA: Option<&str> = Some("@ada:elicit.test");

#[tokio::test]
async fn an_agent_is_addressed_asks_and_is_answered_and_the_session_is_printed_alone() {
    let (object, told) = scripted("1").await;
    assert_eq!(
        story(&object),
        [
            ("prompt", None, ADA),
            ("action", None, None),
            ("elicitation", Some("select"), None),
            ("prompt", None, ADA),
            ("action", None, None),
            ("response", None, None),
        ]
    );
    assert_eq!(body(&object, 0), "deploy the release");
    // Of a choice the value, however it was typed.
    assert_eq!(body(&object, 3), "staging");
    assert!(body(&object, 5).contains("```text\n$ deploy"), "{object:#}");
    let session = &object["session"];
    assert_eq!(session["status"], "complete");
    assert_eq!(session["end_reason"], Value::Null);
    assert_eq!(session["agent"], "agt_31d0");
    assert_eq!(session["user_id"], "@ada:elicit.test");
    let id = session["id"].as_str().unwrap();
    for part in [
        &format!("the agent │ {id} created, no signal: deploy the release"),
        "1. Staging",
        "2. Production",
        &format!("the agent │ {id} prompted, no signal: staging"),
        "✓ 1. Staging — ada",
        "elicit reacted: ✓",
        "$ deploy --release 2.4.0 --to staging",
    ] {
        assert!(told.contains(part), "no {part:?} in:\n{told}");
    }
}

#[tokio::test]
async fn an_agent_is_answered_in_a_persons_own_words_and_an_account_is_asked_for() {
    let words = "production, but only after 6 pm";
    let (object, told) = scripted(words).await;
    assert_eq!(
        story(&object),
        [
            ("prompt", None, ADA),
            ("action", None, None),
            ("elicitation", Some("select"), None),
            ("prompt", None, ADA),
            ("elicitation", Some("auth"), None),
            ("prompt", None, ADA),
            ("thought", None, None),
            ("action", None, None),
            ("response", None, None),
        ]
    );
    assert_eq!(body(&object, 3), words);
    assert_eq!(body(&object, 5), "done");
    let asked = &object["activities"][4]["signal_metadata"];
    assert_eq!(asked["user_id"], "@ada:elicit.test");
    assert_eq!(asked["provider_name"], "GitHub");
    assert_eq!(object["session"]["status"], "complete");
    let url = asked["url"].as_str().unwrap();
    assert!(url.starts_with("https://builder.example/"), "{url}");
    assert!(!told.contains(url), "the link is for the person alone");
    for part in [
        "elicit invited ada into a room for the two of them",
        "--to production",
    ] {
        assert!(told.contains(part), "no {part:?} in:\n{told}");
    }
}

#[tokio::test]
async fn an_agent_that_is_stopped_says_one_last_word() {
    let (object, _) = scripted("!stop").await;
    assert_eq!(
        story(&object),
        [
            ("prompt", None, ADA),
            ("action", None, None),
            ("elicitation", Some("select"), None),
            ("prompt", Some("stop"), ADA),
            ("response", None, None),
        ]
    );
    assert!(body(&object, 4).starts_with("Stopped."), "{object:#}");
    assert_eq!(object["session"]["status"], "complete");
    assert_eq!(object["session"]["end_reason"], "stopped");
}

#[tokio::test]
async fn what_is_typed_goes_into_the_sessions_thread_and_stops_an_agent_at_work() {
    installed().await;
    let folder = tempfile::tempdir().unwrap();
    let child = demo(folder.path(), &["--agent"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // Each line when this is on the screen. The first step is done then; which one comes next is up
    // to the machine: the edits of a busy agent leave some out.
    let lines = [
        ("Enter alone says", ""),
        ("2. Production", "2"),
        ("say `done`", "done"),
        (LATER_STEPS, "!stop"),
    ];
    let (success, shown) = tokio::task::spawn_blocking(move || typed(child, &lines))
        .await
        .unwrap();
    assert!(success, "{shown}");
    for part in [
        "goes into the session's thread",
        "prompted, no signal: production",
        "prompted, stop: !stop",
        "Stopped. I had done",
        "\"end_reason\": \"stopped\"",
    ] {
        assert!(shown.contains(part), "no {part:?} in:\n{shown}");
    }
    assert!(is_empty(folder.path()));
    no_process_is_left(folder.path()).await;
}

/// What the example agent says of its work once something of it is done.
const LATER_STEPS: &str = "Step 2 of 20|Step 3 of 20|Step 4 of 20|Step 5 of 20|Step 6 of 20|\
    Step 7 of 20|Step 8 of 20|Step 9 of 20|Step 10 of 20|Step 11 of 20|Step 12 of 20";

/// Types each line once its words, or one of several with bars between, are on the screen; whether the demo succeeded, and all it showed.
fn typed(mut child: Child, lines: &[(&str, &str)]) -> (bool, String) {
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut stderr = child.stderr.take().unwrap();
    let errors = std::thread::spawn(move || {
        let mut told = String::new();
        stderr.read_to_string(&mut told).unwrap();
        told
    });
    let mut lines = lines.iter();
    let mut next = lines.next();
    let mut shown = String::new();
    while stdout.read_line(&mut shown).unwrap() > 0 {
        let newest = shown.trim_end().rsplit('\n').next().unwrap_or_default();
        if let Some((words, line)) = next
            && words.split('|').any(|words| newest.contains(words))
        {
            writeln!(stdin, "{line}").unwrap();
            next = lines.next();
        }
    }
    drop(stdin);
    let success = child.wait().unwrap().success();
    shown.push_str(&errors.join().unwrap());
    (success && next.is_none(), shown)
}
