use clap::Parser;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::super::stand::{self, Line, refused};
use super::*;

const STREAM: &str = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";
const FULL: &str = include_str!("../../../tests/fixtures/chat.agent-digest/valid/full.json");
const EMPTY: &str = include_str!("../../../tests/fixtures/chat.agent-digest/valid/empty.json");

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    wanted: DigestArgs,
}

impl Line for Arguments {
    async fn run(self, out: &mut Vec<u8>) -> anyhow::Result<()> {
        run(self.wanted, out).await
    }
}

type Stand = stand::Stand<Arguments>;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// What is said of a digest, without its first line and its last one.
async fn items_told(digest: Value) -> String {
    let (out, result) = Stand::answering([(200, digest)]).run(STREAM).await;
    result.unwrap();
    let (_, rest) = out.split_once("\n\n").unwrap();
    let (items, _) = rest.rsplit_once("To go on").unwrap();
    items.to_owned()
}

#[tokio::test]
async fn a_digest_is_told_in_plain_words() {
    let stand = Stand::answering([(200, value(FULL))]);
    let told = stand
        .run(&format!("{STREAM} --since 2026-11-06T11:00:00+01:00"))
        .await;
    let said = "\
ags_01JAB2C3D4E5F6G7H8J9K0MNPQ, from 6 Nov 2026, 10:00 UTC until 6 Nov 2026, 10:05 UTC:

1. Mira (@mira) asks, 3 upvotes
   why is the test flaky?
2. Sam (@sam) suggests, 2 upvotes, said by 2 people
   a link to github.com

To go on from here: --since 2026-11-06T10:05:00.000Z
";
    assert_eq!(told, (said.to_owned(), Ok(())));
    assert_eq!(
        stand.asked(),
        [
            "GET /v1/operator/streams/ags_01JAB2C3D4E5F6G7H8J9K0MNPQ/digest?since=2026-11-06T11%3A00%3A00%2B01%3A00"
        ]
    );
}

#[tokio::test]
async fn where_nothing_was_said_that_is_said() {
    let stand = Stand::answering([(200, value(EMPTY))]);
    let told = stand.run(STREAM).await;
    let said = "\
ags_01JAB2C3D4E5F6G7H8J9K0MNPQ, all that is kept until 6 Nov 2026, 10:05 UTC:

Nobody said anything that an agent is told.

To go on from here: --since 2026-11-06T10:05:00.000Z
";
    assert_eq!(told, (said.to_owned(), Ok(())));
    assert_eq!(
        stand.asked(),
        ["GET /v1/operator/streams/ags_01JAB2C3D4E5F6G7H8J9K0MNPQ/digest"]
    );
}

#[tokio::test]
async fn what_says_nothing_is_left_away_and_what_was_cut_is_told() {
    let mut digest = value(FULL);
    digest["truncated"] = json!(true);
    digest["items"][0]["upvotes"] = json!(1);
    digest["items"][0]["repeated"] = json!(1);
    digest["items"][1]["upvotes"] = json!(0);
    digest["items"][1]["kind"] = json!("reaction");
    digest["items"][1]["who"]["display_name"] = json!("");
    assert_eq!(
        items_told(digest).await,
        "1. Mira (@mira) asks, 1 upvote\n   why is the test flaky?\n\
         2. @sam reacts, said by 2 people\n   a link to github.com\n\n\
         More was said than 10 items or 1500 characters hold.\n"
    );
}

#[tokio::test]
async fn what_people_write_does_nothing_to_the_terminal() {
    let mut digest = value(FULL);
    digest["items"][0]["what"] = json!("a\u{1b}[2J\nb\u{9b}1m\u{202e}c नमस्ते");
    digest["items"][0]["who"]["display_name"] = json!("Mi\u{2028}ra\u{7}");
    let items = items_told(digest.clone()).await;
    assert_eq!(
        items.lines().take(2).collect::<Vec<_>>(),
        [
            r"1. Mi\u{2028}ra\u{7} (@mira) asks, 3 upvotes",
            r"   a\u{1b}[2J\u{a}b\u{9b}1m\u{202e}c नमस्ते"
        ]
    );
    let stand = Stand::answering([(200, digest.clone())]);
    let (out, _) = stand.run(&format!("{STREAM} --json")).await;
    let escaped = r#""what":"a\u001b[2J\nb\u009b1m\u202ec नमस्ते""#;
    assert!(out.contains(escaped), "{out}");
    assert_eq!(value(&out), digest);
}

#[tokio::test]
async fn json_is_the_digest_alone_in_the_order_of_the_contract() {
    let mut digest = value(FULL);
    digest["mood"] = json!("high");
    let stand = Stand::answering([(200, digest)]);
    let (out, result) = stand.run(&format!("--json {STREAM}")).await;
    result.unwrap();
    let compact = [
        r#"{"room":"agent:ags_01JAB2C3D4E5F6G7H8J9K0MNPQ","since":"2026-11-06T10:00:00.000Z","#,
        r#""until":"2026-11-06T10:05:00.000Z","chars":120,"truncated":false,"items":["#,
        r#"{"who":{"display_name":"Mira","handle":"mira"},"what":"why is the test flaky?","#,
        r#""kind":"question","upvotes":3},"#,
        r#"{"who":{"display_name":"Sam","handle":"sam"},"what":"a link to github.com","#,
        r#""kind":"suggestion","upvotes":2,"repeated":2}]}"#,
    ];
    assert_eq!(out, compact.concat() + "\n");
}

#[tokio::test]
async fn whatever_is_no_digest_is_a_failure_in_words() {
    let mut wrong = value(FULL);
    wrong["items"][1]["who"]["id\u{1b}"] = json!("@sam:example.org");
    for (answer, said) in [
        (
            refused(404, "ROOM_NOT_FOUND", "there is no stream of this id"),
            "the bot at BOT says: there is no stream of this id",
        ),
        (
            refused(503, "UNAVAILABLE", "the room is not caught up with yet"),
            "the bot at BOT says: the room is not caught up with yet",
        ),
        (
            refused(404, "NOT_FOUND", "there is nothing at this path"),
            "the bot at BOT does not know this command; is it older?",
        ),
        (
            (200, json!({ "room": "#lobby" })),
            "BOT answers what is no digest: $.since is missing",
        ),
        (
            (200, wrong),
            "BOT answers what is no digest: $.items[1].who[\"id\\u001b\"] is not known",
        ),
        (
            (204, Value::Null),
            "BOT answers what is no digest: $.room is missing",
        ),
    ] {
        let told = Stand::answering([answer]).run(STREAM).await;
        assert_eq!(told, (String::new(), Err(said.to_owned())));
    }
}

#[tokio::test]
async fn a_bot_that_is_not_there_is_said_to_be_so() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = closed.local_addr().unwrap();
    drop(closed);
    let config = format!("[http]\nlisten = \"{listen}\"\noperator_token = \"the-token\"\n");
    let told = stand::with_config::<Arguments>(&config, STREAM).await;
    let said = format!(
        "nothing answers at http://{listen}; is the bot running? (matrix-elicit run --config FILE)"
    );
    assert_eq!(told, (String::new(), Err(said)));
}

#[test]
fn a_window_asks_no_bot_and_needs_nothing_else() {
    use clap::error::ErrorKind::{ArgumentConflict, MissingRequiredArgument, ValueValidation};

    let read = |words: &str| {
        let words = format!("digest {words}");
        let read = Arguments::try_parse_from(words.split_whitespace());
        read.map(|read| (read.wanted.window, read.wanted.of_stream))
            .map_err(|error| error.kind())
    };
    let file = Some("FILE".to_owned());
    let other = "ags_01JAB2C3D4E5F6G7H8J9K0MNPR";
    assert_eq!(read("--window FILE"), Ok((file.clone(), STREAM.to_owned())));
    assert_eq!(
        read(&format!("--window FILE --json --stream {other}")),
        Ok((file, other.to_owned()))
    );
    for (words, kind) in [
        ("", MissingRequiredArgument),
        (STREAM, MissingRequiredArgument),
        ("--config c", MissingRequiredArgument),
        (
            "--config c --stream ags_01JAB2C3D4E5F6G7H8J9K0MNPR",
            MissingRequiredArgument,
        ),
        ("--window FILE --stream ags_1", ValueValidation),
        ("--window FILE --config c", ArgumentConflict),
        ("--window FILE --url http://127.0.0.1:1", ArgumentConflict),
        (
            "--window FILE --since 2026-11-06T10:00:00Z",
            ArgumentConflict,
        ),
        (
            "--window FILE ags_01JAB2C3D4E5F6G7H8J9K0MNPQ",
            ArgumentConflict,
        ),
    ] {
        assert_eq!(read(words), Err(kind), "{words}");
    }
}

#[tokio::test]
async fn a_window_is_made_a_digest_as_json_alone() {
    let corpus = include_str!("../../../tests/corpus/digest.jsonl");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), corpus.lines().next().unwrap()).unwrap();
    let path = file.path().to_str().unwrap();
    let words = ["digest", "--window", path];
    let mut out = Vec::new();
    let arguments = Arguments::try_parse_from(words).unwrap();
    arguments.run(&mut out).await.unwrap();
    let mut full = value(FULL);
    full["chars"] = json!(56);
    assert_eq!(value(&String::from_utf8(out).unwrap()), full);
}

#[test]
fn only_a_stream_and_a_moment_are_taken() {
    let takes = |words: &str| {
        let words = format!("digest --config c {words}");
        Arguments::try_parse_from(words.split_whitespace()).is_ok()
    };
    assert!(takes(STREAM));
    assert!(takes(&format!(
        "{STREAM} --since 2026-11-06T10:00:00Z --json"
    )));
    for wrong in [
        "",
        "ags_1",
        &format!("agent:{STREAM}"),
        &format!("{STREAM} --since 2026-11-06T10:00:00"),
        &format!("{STREAM} --since 5m"),
    ] {
        assert!(!takes(wrong), "{wrong}");
    }
}
