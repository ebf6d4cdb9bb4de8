//! `matrix-elicit demo`, the first thing that anybody runs.

mod session;

use std::{
    io::Write as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use matrix_elicit::sandbox::Person;
use serde_json::Value;

use crate::support::{homeserver, installed, soon, unique};

/// The demo with these arguments, its temporary files in `folder`.
fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_matrix-elicit"));
    command
        .arg("demo")
        .args(arguments)
        .env("TMPDIR", folder)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

async fn finished(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// Waits until no process has this folder among its arguments any more.
async fn no_process_is_left(folder: &Path) {
    let folder = folder.to_str().unwrap();
    soon("the demo's processes to end", async || {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut commands = processes.filter_map(|process| {
            let command = std::fs::read(process.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&command).into_owned())
        });
        (!commands.any(|command| command.contains(folder))).then_some(())
    })
    .await;
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What must hold of an answer object for the reply `1` to the seed's example.
fn assert_runs_the_tests(object: &Value) {
    assert_eq!(object["elicitation_id"], "elc_7f3c");
    assert_eq!(object["state"], "answered");
    assert_eq!(object["asked_by"], "agt_31d0");
    assert_eq!(object["answer"]["kind"], "option");
    assert_eq!(object["answer"]["option"]["id"], "run_them");
    assert_eq!(object["answer"]["option"]["number"], 1);
    assert_eq!(object["answer"]["matched_by"], "number");
    assert_eq!(object["answer"]["text"], "1");
}

#[tokio::test]
async fn with_a_reply_given_the_demo_prints_the_answer_object_alone_and_leaves_nothing() {
    installed().await;
    let folder = tempfile::tempdir().unwrap();
    let output = finished(demo(folder.path(), &["--reply", "1"])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert_runs_the_tests(&serde_json::from_slice(&output.stdout).unwrap());
    let told = stderr(&output);
    for part in [
        "May I run them?",
        "1. Run the tests",
        "✓",
        "by long-poll",
        "by webhook",
    ] {
        assert!(told.contains(part), "no {part:?} in:\n{told}");
    }
    assert!(is_empty(folder.path()));
}

#[tokio::test]
async fn what_is_typed_at_the_prompt_is_the_reply() {
    installed().await;
    let folder = tempfile::tempdir().unwrap();
    let mut child = demo(folder.path(), &[])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\n1\n").unwrap();
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap())
        .await
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("you> "), "{shown}");
    assert!(shown.contains("\"matched_by\": \"number\""), "{shown}");
    assert!(is_empty(folder.path()));
}

#[tokio::test]
async fn the_demo_can_be_pointed_at_a_homeserver_that_is_there() {
    let synapse = homeserver().await;
    let bot = synapse
        .register(&unique("bot"), "bot-password")
        .await
        .unwrap();
    let person = synapse
        .register(&unique("ada"), "ada-password")
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let registering = demo(
        folder.path(),
        &["--reply", "1", "--homeserver", &synapse.url()],
    );
    let mut named = demo(
        folder.path(),
        &["--reply", "1", "--homeserver", &synapse.url()],
    );
    named
        .args(["--bot", &bot.user_id, "--person", &person.user_id])
        .env("MATRIX_ELICIT_BOT_PASSWORD", "bot-password")
        .env("MATRIX_ELICIT_PERSON_PASSWORD", "ada-password");
    for command in [registering, named] {
        let output = finished(command).await;
        assert!(output.status.success(), "{}", stderr(&output));
        assert_runs_the_tests(&serde_json::from_slice(&output.stdout).unwrap());
    }
    // The named accounts are left as they were found: in no room.
    for account in [bot, person] {
        let account = Person::new(&synapse.url(), account).unwrap();
        assert_eq!(account.joined_rooms().await.unwrap(), Vec::<String>::new());
    }
    assert!(is_empty(folder.path()));
}

#[tokio::test]
async fn without_python_the_demo_says_so_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let mut command = demo(folder.path(), &["--reply", "1"]);
    command
        .env("MATRIX_ELICIT_PYTHON", "no-such-interpreter")
        .env("MATRIX_ELICIT_CACHE", cache.path());
    let output = finished(command).await;
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    let told = stderr(&output);
    assert_eq!(told.trim().lines().count(), 1, "{told}");
    for part in [
        "Python 3.10 or newer",
        "MATRIX_ELICIT_PYTHON",
        "--homeserver URL",
    ] {
        assert!(told.contains(part), "no {part:?} in: {told}");
    }
    assert!(is_empty(folder.path()));
}

/// What must hold of the question as the board has it, for the reply `1`.
fn assert_ran_the_tests(object: &Value) {
    assert_eq!(object["elicitationId"], "elc_7f3c");
    assert_eq!(object["state"], "answered");
    assert_eq!(object["agentId"], "agt_31d0");
    assert_eq!(object["answer"]["option"], "run_them");
    assert_eq!(object["answer"]["text"], Value::Null);
    assert_eq!(object["answer"]["answeredBy"], "usr_ada");
}

#[tokio::test]
async fn with_a_board_both_sides_are_shown_and_the_boards_question_is_printed_alone() {
    installed().await;
    let folder = tempfile::tempdir().unwrap();
    let output = finished(demo(folder.path(), &["--board", "--reply", "1"])).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert_ran_the_tests(&serde_json::from_slice(&output.stdout).unwrap());
    let told = stderr(&output);
    for part in [
        "the board │ agt_elicit subscribed to elicitation.pending",
        "the board │ asks elc_7f3c “The tests need network access. May I run them?”",
        "the board │ pushed elc_7f3c : 200",
        "elicit invited ada into “Image builds”\n  │ Questions of agents that work on",
        "1. Run the tests",
        "the board │ elc_7f3c answered: run_them, by usr_ada",
        "✓ 1. Run the tests — ada",
        "elicit reacted: ✓",
    ] {
        assert!(told.contains(part), "no {part:?} in:\n{told}");
    }
    assert!(is_empty(folder.path()));
    no_process_is_left(folder.path()).await;
}

#[tokio::test]
async fn what_is_typed_at_the_prompt_is_the_answer_of_the_person_to_the_board() {
    installed().await;
    let folder = tempfile::tempdir().unwrap();
    let mut child = demo(folder.path(), &["--board"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let typed = "perhaps\n\nskip them\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(typed.as_bytes())
        .unwrap();
    let output = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap())
        .await
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let shown = String::from_utf8(output.stdout).unwrap();
    for part in [
        "you> ",
        "Sorry, I did not understand that as an answer",
        "the board │ elc_7f3c answered: skip, by usr_ada",
        "\"answeredBy\": \"usr_ada\"",
    ] {
        assert!(shown.contains(part), "no {part:?} in:\n{shown}");
    }
    assert!(is_empty(folder.path()));
}

#[tokio::test]
async fn a_demo_with_a_process_beside_it_that_is_interrupted_leaves_nothing() {
    for what in ["--board", "--agent"] {
        interrupted_beside(what).await;
    }
}

/// Interrupts the demo of this kind when the person is in its room.
async fn interrupted_beside(what: &str) {
    let synapse = homeserver().await;
    let (bot, ada) = (unique("bot"), unique("ada"));
    let bot = synapse.register(&bot, "bot-password").await.unwrap();
    let ada = synapse.register(&ada, "ada-password").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = demo(folder.path(), &[what, "--homeserver", &synapse.url()]);
    let child = command
        .args(["--bot", &bot.user_id, "--person", &ada.user_id])
        .env("MATRIX_ELICIT_BOT_PASSWORD", "bot-password")
        .env("MATRIX_ELICIT_PERSON_PASSWORD", "ada-password")
        .env("MATRIX_ELICIT_PYTHON", installed().await.python())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let [bot, ada] = [bot, ada].map(|account| Person::new(&synapse.url(), account).unwrap());
    soon("both to be in the demo's room", async || {
        let bots_rooms = bot.joined_rooms().await.unwrap();
        let rooms = ada.joined_rooms().await.unwrap();
        rooms
            .iter()
            .any(|room| bots_rooms.contains(room))
            .then_some(())
    })
    .await;
    interrupt(&child);
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap())
        .await
        .unwrap();
    assert!(!output.status.success());
    let told = stderr(&output);
    assert!(told.ends_with("matrix-elicit: interrupted\n"), "{told}");
    for account in [bot, ada] {
        assert_eq!(account.joined_rooms().await.unwrap(), Vec::<String>::new());
    }
    assert!(is_empty(folder.path()));
    no_process_is_left(folder.path()).await;
}

#[tokio::test]
async fn a_board_or_an_agent_without_python_is_refused_in_one_line_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let nowhere = "http://127.0.0.1:9";
    for arguments in [
        &["--board", "--reply", "1"][..],
        &["--board", "--reply", "1", "--homeserver", nowhere],
        &["--agent", "--reply", "1"],
        &["--agent", "--reply", "1", "--homeserver", nowhere],
    ] {
        let mut command = demo(folder.path(), arguments);
        command
            .env("MATRIX_ELICIT_PYTHON", "no-such-interpreter")
            .env("MATRIX_ELICIT_CACHE", cache.path());
        let output = finished(command).await;
        assert!(!output.status.success());
        assert_eq!(
            stderr(&output),
            "matrix-elicit: Python 3.10 or newer is needed, and no-such-interpreter does not run; \
             install one, or name one in MATRIX_ELICIT_PYTHON\n"
        );
        assert!(is_empty(folder.path()));
    }
}

#[tokio::test]
async fn a_demo_that_is_interrupted_cleans_up() {
    installed().await;
    let folder = tempfile::tempdir().unwrap();
    let mut child = demo(folder.path(), &[])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    soon("the demo's server to write its files", async || {
        let mut entries = std::fs::read_dir(folder.path()).unwrap().flatten();
        entries
            .any(|entry| entry.path().join("homeserver/homeserver.db").exists())
            .then_some(())
    })
    .await;
    interrupt(&child);
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap())
        .await
        .unwrap();
    assert!(!status.success());
    assert!(is_empty(folder.path()));
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}
