use clap::Parser;

use super::super::stand::{self, Line, refused};
use super::*;

const STREAM: &str = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";
const PATH: &str = "/v1/operator/streams/ags_01JAB2C3D4E5F6G7H8J9K0MNPQ/silenced";

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: StreamsCommand,
}

impl Line for Arguments {
    async fn run(self, out: &mut Vec<u8>) -> anyhow::Result<()> {
        run(self.command, out).await
    }
}

type Stand = stand::Stand<Arguments>;

fn said(text: &str) -> (String, Result<(), String>) {
    (text.to_owned(), Ok(()))
}

#[tokio::test]
async fn somebody_is_left_out_for_a_while_or_until_it_is_undone() {
    let stand = Stand::answering([
        (
            200,
            json!({ "user_id": "@a/b:x.org", "until": "2026-11-06T11:00:00.000Z" }),
        ),
        (200, json!({ "user_id": "@a/b:x.org", "until": null })),
        (204, Value::Null),
        (200, json!({ "user_id": "@a/b:x.org", "until": null })),
    ]);
    let words = format!("silence {STREAM} @a/b:x.org");
    let out = "@a/b:x.org is left out of the digests of ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";
    assert_eq!(
        stand.run(&format!("{words} --for 1h")).await,
        said(&format!("{out} until 6 Nov 2026, 11:00 UTC\n"))
    );
    assert_eq!(
        stand.run(&words).await,
        said(&format!("{out} until that is undone\n"))
    );
    assert_eq!(
        stand.run(&format!("{words} --for 90m")).await,
        said(&format!("{out} for 90m\n"))
    );
    assert_eq!(
        stand.run(&format!("{words} --json")).await,
        said("{\"until\":null,\"user_id\":\"@a/b:x.org\"}\n")
    );
    let put = format!("PUT {PATH}/@a%2Fb:x.org");
    assert_eq!(
        stand.asked(),
        [
            format!("{put} {{\"seconds\":3600}}"),
            format!("{put} {{}}"),
            format!("{put} {{\"seconds\":5400}}"),
            format!("{put} {{}}"),
        ]
    );
}

#[tokio::test]
async fn somebody_is_taken_in_again() {
    let stand = Stand::answering([
        (200, json!({ "undone": true })),
        (204, Value::Null),
        (200, json!({ "undone": false })),
        (200, json!({ "undone": false })),
    ]);
    let words = format!("unsilence {STREAM} @ada:example.org");
    let again = "@ada:example.org is in the digests of ags_01JAB2C3D4E5F6G7H8J9K0MNPQ again\n";
    assert_eq!(stand.run(&words).await, said(again));
    assert_eq!(stand.run(&words).await, said(again));
    let was_not =
        "@ada:example.org was not left out of the digests of ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";
    assert_eq!(
        stand.run(&words).await,
        (String::new(), Err(was_not.to_owned()))
    );
    assert_eq!(
        stand.run(&format!("{words} --json")).await,
        ("{\"undone\":false}\n".to_owned(), Err(was_not.to_owned()))
    );
    assert_eq!(
        stand.asked(),
        vec![format!("DELETE {PATH}/@ada:example.org"); 4]
    );
}

#[tokio::test]
async fn who_is_left_out_is_a_table() {
    let list = json!({ "silenced": [
        { "user_id": "@ada:example.org", "until": "2026-11-06T11:00:00.000Z" },
        { "user_id": "@b\u{1b}:x.org", "until": null },
    ] });
    let nobody = json!({ "silenced": [] });
    let stand = Stand::answering([(200, list.clone()), (200, nobody), (200, list)]);
    let words = format!("silenced {STREAM}");
    assert_eq!(
        stand.run(&words).await,
        said(
            "USER              UNTIL\n\
             @ada:example.org  6 Nov 2026, 11:00 UTC\n\
             @b\\u{1b}:x.org    undone\n"
        )
    );
    assert_eq!(
        stand.run(&words).await,
        said("nobody is left out of the digests of ags_01JAB2C3D4E5F6G7H8J9K0MNPQ\n")
    );
    let (json, _) = stand.run(&format!("{words} --json")).await;
    assert!(json.starts_with("{\"silenced\":[{"), "{json}");
    assert_eq!(stand.asked(), vec![format!("GET {PATH}"); 3]);
}

#[tokio::test]
async fn a_refusal_is_told_in_words() {
    let unknown = || refused(404, "ROOM_NOT_FOUND", "there is no stream of this id");
    let person = format!("{STREAM} @ada:example.org");
    for words in [
        format!("silence {person}"),
        format!("unsilence {person}"),
        format!("silenced {STREAM}"),
    ] {
        let told = Stand::answering([unknown()]).run(&words).await;
        let why = "the bot at BOT says: there is no stream of this id".to_owned();
        assert_eq!(told, (String::new(), Err(why)));
    }
    let stand = Stand::answering([(200, json!({}))]);
    let told = stand.run(&format!("silenced {STREAM}")).await;
    let why = "BOT answers what is no list of people".to_owned();
    assert_eq!(told, (String::new(), Err(why)));
}

#[test]
fn only_streams_users_and_spans_are_taken() {
    let takes = |words: &str| {
        let words = format!("streams {words} --config c");
        Arguments::try_parse_from(words.split_whitespace()).is_ok()
    };
    assert!(takes(&format!(
        "silence {STREAM} @ada:example.org --for 1h"
    )));
    for wrong in [
        format!("silence {STREAM}"),
        format!("silence {STREAM} ada"),
        format!("silence {STREAM} @ada:example.org --for soon"),
        "silence ags_1 @ada:example.org".to_owned(),
        "silenced".to_owned(),
        format!("silenced {STREAM} --for 1h"),
    ] {
        assert!(!takes(&wrong), "{wrong}");
    }
}
