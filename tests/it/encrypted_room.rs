//! Asking and answering where everything is end-to-end encrypted.

use std::time::{Duration, Instant};

use matrix_elicit::sandbox::Account;
use matrix_sdk::{
    Client, SessionMeta, SessionTokens, authentication::matrix::MatrixSession,
    config::SyncSettings, ruma::RoomId, store::RoomLoadSettings,
};
use serde_json::{Value, json};

use crate::relay::{Lag, Relay};
use crate::scene::{
    CARD, Someone, Traces, ask_and_show, ask_once_joined, at_rest, count, ledger, one_of_each,
    opened, question, traces,
};
use crate::support::{AGENT, BotConfig, BotProcess, EncryptedPerson, homeserver, soon, unique};

/// A running bot, and somebody with an encrypted room that the bot is invited to. There is a
/// third person, so that not every message is meant for the bot.
async fn encrypted_room(
    config: impl AsyncFnOnce(BotConfig) -> BotConfig,
) -> (BotProcess, Someone, String) {
    let synapse = homeserver().await;
    let config = config(BotConfig::new(synapse).await).await;
    let ada = Someone::new(synapse, "ada", true).await;
    let ben = synapse.person(&unique("ben")).await.unwrap();
    let room = ada.make_room(&[config.user_id(), ben.user_id()]).await;
    ben.join(&room).await.unwrap();
    let bot = BotProcess::start(config).await;
    (bot, ada, room)
}

fn encrypting(someone: &Someone) -> &EncryptedPerson {
    match someone {
        Someone::Encrypting(person) => person,
        Someone::Plain(_) => panic!("{} does not encrypt", someone.user_id()),
    }
}

/// The answer without its time, which only the homeserver knows.
fn timeless(object: &Value) -> Value {
    let mut answer = object["answer"].clone();
    let time = answer.as_object_mut().unwrap().remove("answered_at");
    assert!(time.is_some_and(|time| time.is_string()));
    answer
}

/// Pain: thread.
#[tokio::test]
async fn every_way_of_answering_works_and_is_known_to_be_encrypted() {
    let (bot, ada, room) = encrypted_room(async |config| config).await;
    let api = bot.api();
    let labels = ["Red", "Green", "Blue", "Black", "No colour at all"];
    let options: Vec<Value> = ["r", "g", "b", "k", "none"]
        .iter()
        .zip(labels)
        .map(|(id, label)| json!({"id": id, "label": label}))
        .collect();
    // What is said, in which way; the option's place, by which rule, how the question was found.
    let ways = [
        ("2", "plainly", Some(1), "number", "only_open"),
        ("k", "plainly", Some(3), "id", "only_open"),
        ("blue", "plainly", Some(2), "label", "only_open"),
        ("the first one", "as a reply", Some(0), "number", "reply"),
        ("2", "in the thread", Some(1), "number", "thread"),
        ("5", "plainly", Some(4), "number", "only_open"),
        ("a hint of mauve", "as a reply", None, "text", "reply"),
    ];
    let mut done = Vec::new();
    for (index, (said, way, option, matched_by, targeted_by)) in ways.into_iter().enumerate() {
        let id = format!("colour-{index}");
        let request = json!({
            "room": room, "elicitation_id": id, "prompt": "Which colour?",
            "options": options, "free_text": option.is_none(),
        });
        let open = ask_and_show(&bot, &ada, &request).await;
        let card = open["event_id"].as_str().unwrap().to_owned();
        let event = match way {
            "as a reply" => ada.reply(&room, &card, said).await,
            "in the thread" => ada.in_thread(&room, &card, said).await,
            _ => ada.say(&room, said).await,
        };
        let answered = api.until_answered(&id).await;
        let chosen = option.map_or(Value::Null, |place: usize| {
            json!({"number": place + 1, "id": options[place]["id"], "label": labels[place]})
        });
        let expected = json!({
            "kind": if option.is_some() { "option" } else { "text" },
            "option": chosen,
            "text": said,
            "answered_by": ada.user_id(),
            "display_name": ada.user_id()[1..].split(':').next(),
            "event_id": event,
            "matched_by": matched_by,
            "targeted_by": targeted_by,
            "directed": targeted_by != "only_open",
            "encrypted": true,
            "sender_verified": false,
        });
        assert_eq!(timeless(&answered), expected, "{said} {way}");
        done.push((card, event));
    }
    // A question that is answered in clear is answered, and the answer says so.
    let open = ask_and_show(&bot, &ada, &question(&room, "in-clear")).await;
    let event = ada.plain().send_text(&room, "1").await.unwrap();
    let answer = timeless(&api.until_answered("in-clear").await);
    assert_eq!(answer["event_id"], *event);
    assert_eq!(answer["encrypted"], false);
    assert_eq!(answer["sender_verified"], false);
    done.push((open["event_id"].as_str().unwrap().to_owned(), event));

    at_rest(&bot).await;
    let left = traces(ada.plain(), &room, bot.user_id()).await;
    assert_eq!(left, one_of_each(&done));
}

/// Pain: plaintext.
#[tokio::test]
async fn the_homeserver_reads_nothing_of_card_and_edit_but_what_the_edit_is_about() {
    let (bot, ada, room) = encrypted_room(async |config| config).await;
    let request = json!({
        "room": room, "elicitation_id": "quiet", "prompt": "Shall the merger with Umbra happen?",
        "options": [{"id": "opt-aye", "label": "Sign with Umbra"}, {"id": "opt-nay", "label": "Leave Umbra be"}],
        "card_title": "Umbra title", "deep_link": "https://umbra.example/deal", "metadata": {"secret": "umbra"},
    });
    let open = ask_and_show(&bot, &ada, &request).await;
    let card = open["event_id"].as_str().unwrap();
    ada.reply(&room, card, "no idea about umbra").await;
    ada.say(&room, "1").await;
    bot.api().until_answered("quiet").await;
    let edited = |event: &Value| event["content"]["m.relates_to"]["rel_type"] == "m.replace";
    let edit = ada.reads(&room, "the edit", edited).await;
    let shown = edit["content"]["m.new_content"]["body"].as_str().unwrap();
    assert!(shown.contains("Sign with Umbra"), "{shown}");
    assert_eq!(edit["content"]["m.new_content"].get(CARD), None);
    at_rest(&bot).await;

    let stored = ada.plain().timeline(&room).await.unwrap();
    let from_bot: Vec<&Value> = stored
        .iter()
        .filter(|event| event["sender"] == bot.user_id() && event.get("state_key").is_none())
        .collect();
    let mut kinds: Vec<&str> = from_bot
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    let encrypted = "m.room.encrypted";
    // The tick, and in no clear words: card, notice and edit.
    assert_eq!(kinds, ["m.reaction", encrypted, encrypted, encrypted]);
    let stored_text = serde_json::to_string(&stored).unwrap().to_lowercase();
    for secret in ["umbra", "opt-aye", CARD] {
        assert!(!stored_text.contains(secret), "{secret} is on the wire");
    }
    let in_clear = |event: &Value| {
        let mut keys: Vec<String> = event["content"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        keys.retain(|key| {
            ![
                "algorithm",
                "ciphertext",
                "device_id",
                "sender_key",
                "session_id",
            ]
            .contains(&key.as_str())
        });
        keys
    };
    assert!(in_clear(from_bot[0]).is_empty(), "{:#}", from_bot[0]);
    let stored_edit = from_bot
        .iter()
        .find(|event| event["event_id"] == edit["event_id"])
        .unwrap();
    assert_eq!(in_clear(stored_edit), ["m.relates_to"]);
    assert_eq!(
        stored_edit["content"]["m.relates_to"],
        json!({"rel_type": "m.replace", "event_id": card})
    );
}

#[tokio::test]
async fn a_card_waits_until_somebody_has_joined_who_can_read_it() {
    let synapse = homeserver().await;
    let ada = Someone::new(synapse, "ada", true).await;
    let ben = Someone::new(synapse, "ben", true).await;
    let config = BotConfig::new(synapse).await;
    let room = ada.make_room(&[config.user_id(), ben.user_id()]).await;
    let mut bot = BotProcess::start(config).await;
    // Closed at once, it only shows that the bot has joined.
    ask_once_joined(&bot.api(), &question(&room, "first")).await;
    bot.api().cancel("first").await;
    at_rest(&bot).await;
    let (ended, _) = bot.terminate().await;
    assert!(ended.success());
    ada.plain().leave(&room).await.unwrap();
    bot.start_again().await;

    let (_, asked) = bot.api().ask(&question(&room, "lonely")).await;
    assert_eq!(asked["state"], "queued", "{asked:#}");
    soon("the card to be held", async || {
        let held = "SELECT COUNT(*) FROM outbox WHERE state = 'pending' AND attempted_at IS NULL
                        AND last_error = 'waiting for a person to join'";
        (count(&bot, held) == 1).then_some(())
    })
    .await;
    assert_eq!(bot.api().get("lonely").await.1["state"], "queued");

    encrypting(&ben).join(&room).await;
    let open = opened(&bot.api(), "lonely").await;
    let card = ben.reads_card(&room, "lonely").await;
    assert_eq!(card["event_id"], open["event_id"]);
    ben.say(&room, "3").await;
    let answered = bot.api().until_answered("lonely").await;
    assert_eq!(answered["answer"]["option"]["id"], "nowhere");
    assert_eq!(answered["answer"]["answered_by"], ben.user_id());
}

#[tokio::test]
async fn where_it_is_required_only_a_verified_device_answers_and_others_are_told_once() {
    let with_rule = async |config: BotConfig| config.with("answers.require_verified", json!(true));
    let (mut bot, ada, room) = encrypted_room(with_rule).await;
    let refusal_of = |event: String| {
        move |notice: &Value| {
            notice["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == *event
                && notice["content"]["body"]
                    .as_str()
                    .is_some_and(|body| body.contains("verified device"))
        }
    };
    let card = |object: &Value| object["event_id"].as_str().unwrap().to_owned();
    let first = ask_and_show(&bot, &ada, &question(&room, "first")).await;
    let refused = ada.say(&room, "1").await;
    let notice = ada.reads(&room, "the refusal", refusal_of(refused)).await;
    assert_eq!(notice["content"]["msgtype"], "m.notice");
    // Said once: the next one is refused in silence. Nor does it count without encryption.
    ada.say(&room, "2").await;
    ada.plain().send_text(&room, "2").await.unwrap();
    encrypting(&ada).sign_own_device().await;
    let taken = ada.say(&room, "3").await;
    let answer = timeless(&bot.api().until_answered("first").await);
    assert_eq!(answer["event_id"], *taken);
    assert_eq!(answer["option"]["id"], "nowhere");
    assert_eq!(answer["encrypted"], true);
    assert_eq!(answer["sender_verified"], true);

    // A message that was not encrypted proves nothing, whoever sent it.
    let second = ask_and_show(&bot, &ada, &question(&room, "second")).await;
    let in_clear = ada.plain().send_text(&room, "1").await.unwrap();
    let second_notice = ada.reads(&room, "the refusal", refusal_of(in_clear)).await;
    let again = ada.say(&room, "2").await;
    let answer = timeless(&bot.api().until_answered("second").await);
    assert_eq!(answer["event_id"], *again);

    // Somebody whose device is signed while the bot is away is known as such when it is back.
    let cleo = Someone::new(homeserver().await, "cleo", true).await;
    ada.plain().invite(&room, cleo.user_id()).await.unwrap();
    encrypting(&cleo).join(&room).await;
    let third = ask_and_show(&bot, &ada, &question(&room, "third")).await;
    bot.kill9();
    encrypting(&cleo).sign_own_device().await;
    // By reply: a number alone, so soon after Ada's answer, might be meant for the other question.
    let last = cleo.reply(&room, &card(&third), "1").await;
    bot.start_again().await;
    let answer = timeless(&bot.api().until_answered("third").await);
    assert_eq!(answer["event_id"], *last);
    assert_eq!(answer["sender_verified"], true);

    at_rest(&bot).await;
    let expected = Traces {
        notices: vec![card(&notice), card(&second_notice)],
        ..one_of_each(&[
            (card(&first), taken),
            (card(&second), again),
            (card(&third), last),
        ])
    };
    assert_eq!(traces(ada.plain(), &room, bot.user_id()).await, expected);
}

/// Somebody whose room keys can be held up on their way: their client talks to the homeserver
/// through a relay.
pub struct Distant {
    client: Client,
    relay: Relay,
}

impl Distant {
    pub async fn new(account: &Account) -> Self {
        let relay = Relay::start(&homeserver().await.url()).await;
        let client = Client::builder()
            .homeserver_url(relay.url())
            .build()
            .await
            .unwrap();
        let session = MatrixSession {
            meta: SessionMeta {
                user_id: account.user_id.parse().unwrap(),
                device_id: account.device_id.as_str().into(),
            },
            tokens: SessionTokens {
                access_token: account.access_token.clone(),
                refresh_token: None,
            },
        };
        client
            .matrix_auth()
            .restore_session(session, RoomLoadSettings::default())
            .await
            .unwrap();
        Self { client, relay }
    }

    /// The line on which its keys are late.
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    async fn sync(&self) {
        let at_once = SyncSettings::new().timeout(Duration::ZERO);
        self.client.sync_once(at_once).await.unwrap();
    }

    /// Says something for which the keys are not sent before the relay catches up.
    pub async fn say_with_late_keys(&self, room: &str, body: &str) -> String {
        self.sync().await;
        let room = self.client.get_room(&RoomId::parse(room).unwrap()).unwrap();
        self.relay.lag(Lag::Behind, &["/sendToDevice/"]);
        let content = json!({"msgtype": "m.text", "body": body});
        let sent = room.send_raw("m.room.message", content).await.unwrap();
        self.relay.lagged("/sendToDevice/", 1).await;
        sent.response.event_id.to_string()
    }
}

/// A question in an encrypted room, and the message of somebody whose keys are on their way.
async fn a_reply_whose_keys_are_late(
    config: impl AsyncFnOnce(BotConfig) -> BotConfig,
) -> (BotProcess, Someone, String, Distant, String) {
    let synapse = homeserver().await;
    let cleo = synapse.person(&unique("cleo")).await.unwrap();
    let distant = Distant::new(cleo.account()).await;
    let (bot, ada, room) = encrypted_room(config).await;
    ada.plain().invite(&room, cleo.user_id()).await.unwrap();
    cleo.join(&room).await.unwrap();
    ask_and_show(&bot, &ada, &question(&room, "late")).await;
    let event = distant.say_with_late_keys(&room, "2").await;
    soon("the message to be kept", async || {
        (count(&bot, "SELECT COUNT(*) FROM undecrypted") == 1).then_some(())
    })
    .await;
    assert_eq!(bot.api().get("late").await.1["state"], "open");
    (bot, ada, room, distant, event)
}

/// Pain: late-key.
#[tokio::test]
async fn a_reply_is_taken_when_its_room_key_comes() {
    let (bot, ada, room, distant, event) = a_reply_whose_keys_are_late(async |config| config).await;
    distant.relay.catch_up().await;
    let answered = bot.api().until_answered("late").await;
    assert_eq!(answered["answer"]["event_id"], *event);
    assert_eq!(answered["answer"]["option"]["id"], "production");
    assert_eq!(answered["answer"]["encrypted"], true);
    at_rest(&bot).await;
    assert_eq!(count(&bot, "SELECT COUNT(*) FROM undecrypted"), 0);
    let card = answered["event_id"].as_str().unwrap().to_owned();
    let left = traces(ada.plain(), &room, bot.user_id()).await;
    assert_eq!(left, one_of_each(&[(card, event)]));
}

/// Pain: late-key.
#[tokio::test]
async fn a_reply_whose_room_key_comes_while_the_bot_is_down_is_taken_at_the_next_start() {
    let (mut bot, _ada, _room, distant, event) =
        a_reply_whose_keys_are_late(async |config| config).await;
    bot.kill9();
    distant.relay.catch_up().await;
    bot.start_again().await;
    let answered = bot.api().until_answered("late").await;
    assert_eq!(answered["answer"]["event_id"], *event);
}

/// Pain: late-key.
#[tokio::test]
async fn a_reply_that_stays_unreadable_is_mentioned_once_and_still_taken_when_it_can_be_read() {
    let soon_said = async |config: BotConfig| config.with("answers.unreadable_after", json!("1s"));
    let (bot, ada, room, distant, event) = a_reply_whose_keys_are_late(soon_said).await;
    let about_it =
        |notice: &Value| notice["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == *event;
    let kept = Instant::now();
    let notice = ada.reads(&room, "the notice", about_it).await;
    // Nothing else happens in the room, and the homeserver would hold a sync open for longer.
    assert!(
        kept.elapsed() < Duration::from_secs(20),
        "{:?}",
        kept.elapsed()
    );
    assert_eq!(notice["content"]["msgtype"], "m.notice");
    let body = notice["content"]["body"].as_str().unwrap();
    assert!(body.contains("could not decrypt"), "{body}");
    // Some more rounds, in each of which it is tried again.
    for round in 0..3 {
        let token = "SELECT value FROM marks WHERE name = 'sync_token'";
        let read_token =
            || -> String { ledger(&bot).query_row(token, [], |row| row.get(0)).unwrap() };
        let before = read_token();
        ada.say(&room, &format!("hm {round}")).await;
        soon("the next sync", async || {
            (read_token() != before).then_some(())
        })
        .await;
    }
    distant.relay.catch_up().await;
    let answered = bot.api().until_answered("late").await;
    assert_eq!(answered["answer"]["event_id"], *event);
    at_rest(&bot).await;
    // What was said of it is taken back in its place.
    let told = notice["event_id"].as_str().unwrap().to_owned();
    let taken_back = |edit: &Value| {
        edit["content"]["m.relates_to"]["rel_type"] == "m.replace"
            && edit["content"]["m.relates_to"]["event_id"] == *told
    };
    let edit = ada.reads(&room, "the notice's edit", taken_back).await;
    let new = &edit["content"]["m.new_content"];
    assert_eq!(new["body"], "I have read this message by now.");
    let mut expected = Traces {
        notices: vec![told.clone()],
        ..one_of_each(&[(answered["event_id"].as_str().unwrap().to_owned(), event)])
    };
    expected.edits.insert(told, 1);
    assert_eq!(traces(ada.plain(), &room, bot.user_id()).await, expected);
    assert_eq!(answered["asked_by"], AGENT);
}
