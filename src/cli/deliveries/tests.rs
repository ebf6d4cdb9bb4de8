use clap::Parser;
use tokio::net::TcpListener;

use super::super::stand::{self, Line, refused};
use super::*;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: DeliveriesCommand,
}

impl Line for Arguments {
    async fn run(self, out: &mut Vec<u8>) -> anyhow::Result<()> {
        run(self.command, out).await
    }
}

type Stand = stand::Stand<Arguments>;

async fn with_config(config: &str, words: &str) -> (String, Result<(), String>) {
    stand::with_config::<Arguments>(config, words).await
}

fn delivery(id: &str) -> Value {
    json!({
        "id": id, "agent": "builder", "elicitation_id": "elc_1", "type": "elicitation.answered",
        "state": "parked", "timestamp": "2026-11-30T20:46:00Z", "age_seconds": 90_000,
        "attempts": 12, "next_try": null, "last_error": "HTTP 503",
    })
}

#[tokio::test]
async fn a_list_is_a_table() {
    let mut other = delivery("evt_2");
    other["agent"] = json!("agt_31d0");
    other["age_seconds"] = json!(59);
    other["attempts"] = json!(1);
    other["last_error"] = Value::Null;
    let page = json!({ "deliveries": [delivery("evt_1"), other], "next": null });
    let stand = Stand::answering([(200, page)]);
    let (out, result) = stand.run("list").await;
    result.unwrap();
    assert_eq!(
        out,
        "ID     AGE  AGENT     ELICITATION  EVENT                 TRIES  LAST ERROR\n\
         evt_1  1d   builder   elc_1        elicitation.answered  12     HTTP 503\n\
         evt_2  59s  agt_31d0  elc_1        elicitation.answered  1      -\n"
    );
    assert_eq!(
        stand.asked(),
        ["GET /v1/operator/deliveries?state=parked&limit=100"]
    );
}

#[tokio::test]
async fn pages_are_put_together_up_to_the_limit() {
    let page = |count: usize, next| {
        let deliveries = vec![delivery("evt_1"); count];
        (200, json!({ "deliveries": deliveries, "next": next }))
    };
    let stand = Stand::answering([page(200, Some("a")), page(50, Some("b"))]);
    let (out, result) = stand
        .run("list --pending --agent a&b --limit 250 --json")
        .await;
    result.unwrap();
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["deliveries"].as_array().unwrap().len(), 250);
    assert_eq!(told["more"], true);
    let path = "GET /v1/operator/deliveries?state=pending";
    assert_eq!(
        stand.asked(),
        [
            format!("{path}&limit=200&agent=a%26b"),
            format!("{path}&limit=50&agent=a%26b&cursor=a"),
        ]
    );
    let stand = Stand::answering([page(1, Some("a"))]);
    let (out, _) = stand.run("list --limit 1").await;
    assert!(
        out.ends_with("HTTP 503\nThere are more: --limit shows them.\n"),
        "{out}"
    );
}

#[tokio::test]
async fn an_empty_list_is_said_in_words() {
    let nothing = || (200, json!({ "deliveries": [], "next": null }));
    let stand = Stand::answering([nothing(), nothing(), nothing()]);
    let all = stand.run("list").await;
    assert_eq!(all, ("no delivery is parked\n".to_owned(), Ok(())));
    let some = stand.run("list --agent builder --pending").await;
    let said = "no delivery of builder is pending\n".to_owned();
    assert_eq!(some, (said, Ok(())));
    let json = stand.run("list --json").await;
    let said = "{\"deliveries\":[],\"more\":false}\n".to_owned();
    assert_eq!(json, (said, Ok(())));
}

#[tokio::test]
async fn what_agents_call_their_questions_does_nothing_to_the_terminal() {
    let mut hostile = delivery("evt_1");
    hostile["elicitation_id"] = json!("a\u{1b}[2J\nb\u{202e}c 'é' \\");
    hostile["next_try"] = json!("2026-11-30T21:00:00Z");
    let page = json!({ "deliveries": [hostile], "next": null });
    let (out, _) = Stand::answering([(200, page)]).run("list --pending").await;
    assert_eq!(
        out.lines().nth(1).unwrap(),
        "evt_1  1d   builder  a\\u{1b}[2J\\nb\\u{202e}c 'é' \\  elicitation.answered  12     \
         2026-11-30T21:00:00Z  HTTP 503"
    );
    assert_eq!(out.lines().count(), 2);
}

#[tokio::test]
async fn what_is_tried_again_is_counted() {
    let done = |count: u32| (200, json!({ "retried": count, "left": [] }));
    let stand = Stand::answering([done(1), done(2), done(3)]);
    let said = |text: &str| (text.to_owned(), Ok(()));
    assert_eq!(
        stand.run("retry evt_1").await,
        said("1 delivery is tried again\n")
    );
    assert_eq!(
        stand.run("retry --agent builder").await,
        said("2 deliveries are tried again\n")
    );
    assert_eq!(
        stand.run("retry --all --json").await,
        said("{\"left\":[],\"retried\":3}\n")
    );
    let dropped = Stand::answering([(200, json!({ "dropped": 2, "left": [] }))]);
    assert_eq!(
        dropped.run("drop evt_1 evt_2").await,
        said("2 deliveries are dropped\n")
    );
    let retry = "POST /v1/operator/deliveries/retry";
    assert_eq!(
        stand.asked(),
        [
            format!(r#"{retry} {{"ids":["evt_1"]}}"#),
            format!(r#"{retry} {{"agent":"builder"}}"#),
            format!(r#"{retry} {{"all":true}}"#),
        ]
    );
    assert_eq!(
        dropped.asked(),
        [r#"POST /v1/operator/deliveries/drop {"ids":["evt_1","evt_2"]}"#]
    );
}

#[tokio::test]
async fn what_was_not_done_is_a_failure() {
    let outcome = |count: u32, left: &[&str]| (200, json!({ "retried": count, "left": left }));
    let stand = Stand::answering([outcome(1, &["evt_2", "evt_3"]), outcome(0, &[])]);
    let why = "left as it is, being not parked or having no webhook to go to: evt_2, evt_3";
    assert_eq!(
        stand.run("retry evt_1 evt_2 evt_3").await,
        (
            "1 delivery is tried again\n".to_owned(),
            Err(why.to_owned())
        )
    );
    let why = "no delivery of builder is parked that could be tried again";
    assert_eq!(
        stand.run("retry --agent builder").await,
        (String::new(), Err(why.to_owned()))
    );
}

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    for (answer, said) in [
        (
            refused(401, "UNAUTHORIZED", "this token is not the operator's"),
            "the bot at BOT does not take http.operator_token of FILE; was it started with another \
             one?",
        ),
        (
            refused(403, "NO_OPERATOR_TOKEN", "not set"),
            "the bot at BOT was started without http.operator_token; start it again with FILE",
        ),
        (
            refused(404, "NOT_FOUND", "there is nothing at this path"),
            "the bot at BOT does not know this command; is it older?",
        ),
        (
            refused(503, "UNAVAILABLE", "the service is not ready\u{7} yet"),
            "the bot at BOT says: the service is not ready\\u{7} yet",
        ),
        (
            (200, json!("hello")),
            "what answers at BOT is no matrix-elicit: HTTP 200 OK",
        ),
        (
            (302, json!({ "moved": true })),
            "what answers at BOT is no matrix-elicit: HTTP 302 Found",
        ),
        (
            (200, json!({ "hello": true })),
            "BOT answers what is no list of deliveries",
        ),
    ] {
        let stand = Stand::answering([answer]);
        let told = stand.run("list").await;
        assert_eq!(told, (String::new(), Err(said.to_owned())));
    }
}

#[tokio::test]
async fn a_bot_that_is_not_there_is_said_to_be_so() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = closed.local_addr().unwrap();
    drop(closed);
    let config = format!("[http]\nlisten = \"{listen}\"\noperator_token = \"the-token\"\n");
    let (out, result) = with_config(&config, "list").await;
    let said = format!(
        "nothing answers at http://{listen}; is the bot running? (matrix-elicit run --config FILE)"
    );
    assert_eq!((out.as_str(), result), ("", Err(said.clone())));
    // An address that is given counts more than that of the file.
    let config = config.replace(&listen.to_string(), "127.0.0.1:1");
    let words = format!("retry --all --url http://{listen}");
    assert_eq!(with_config(&config, &words).await.1, Err(said));
}

#[tokio::test]
async fn without_a_token_nobody_is_asked() {
    let (out, result) = with_config("[http]\nlisten = \"127.0.0.1:1\"\n", "list").await;
    let said = "http.operator_token is not set in FILE: write \
                operator_token = \"env:ELICIT_OPERATOR_TOKEN\" under [http], give it what \
                \"openssl rand -hex 32\" prints, and start the bot again";
    assert_eq!((out.as_str(), result), ("", Err(said.to_owned())));
    let wrong = "[http]\noperator_token = \"two words\"\nlisten = \"here\"\n";
    let lines: Vec<String> = with_config(wrong, "list")
        .await
        .1
        .unwrap_err()
        .lines()
        .map(|line| line.chars().take(26).collect())
        .collect();
    assert_eq!(
        lines,
        ["FILE:2: http.operator_toke", "FILE:3: http.listen: must "]
    );
    let config = "[http]\noperator_token = \"the-token\"\n";
    assert_eq!(
        with_config(config, "list --url ftp://x.org").await.1,
        Err("--url must begin with http:// or https://".to_owned())
    );
}

#[test]
fn exactly_one_way_of_choosing_is_taken() {
    let takes = |words: &str| {
        let words = format!("deliveries {words} --config c");
        Arguments::try_parse_from(words.split_whitespace()).is_ok()
    };
    for sound in ["retry evt_1 evt_2", "retry --agent a", "drop --all"] {
        assert!(takes(sound), "{sound}");
    }
    for wrong in ["retry", "drop", "retry evt_1 --all", "drop --agent a --all"] {
        assert!(!takes(wrong), "{wrong}");
    }
}

#[test]
fn an_age_is_told_in_its_largest_unit() {
    let ages = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 900_000].map(age);
    assert_eq!(ages, ["0s", "59s", "1m", "59m", "1h", "23h", "1d", "10d"]);
}
