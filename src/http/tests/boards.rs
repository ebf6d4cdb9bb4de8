//! The pushes of boards, and the questions that are routed to agents.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::*;
use crate::contract::CardOption;
use crate::contract::card::Card;
use crate::desk::{Bot, Carried, Heard, Rules, Said, Sender, Trust, What};
use crate::service::Batch;

const OLD: &str = "an-old-secret-of-the-board";
const NEW: &str = "a-new-secret-of-the-board";
const PATH: &str = "/v1/boards/brd_1/push";

const BOARDS: &str = r#"
    [boards.brd_1]
    base_url = "https://board.x.org"
    agent_token = "kbn_a-token-of-the-bot-there"
    push_secrets = ["a-new-secret-of-the-board", "an-old-secret-of-the-board"]
    room = "!deploys:x.org"
    people = { bearer = { "@mira:x.org" = "a-token-of-mira-there" } }
    [boards.brd_2]
    base_url = "https://board.x.org"
    agent_token = "kbn_a-token-of-the-bot-there"
    push_secrets = ["a-secret-of-another-board"]
    room = "!elsewhere:x.org"
    people = { bearer = { "@mira:x.org" = "a-token-of-mira-there" } }
    [carriers."@hub:x.org"]
    answer = "route"
    "#;

fn push(board: &str, id: &str) -> Value {
    json!({
        "event": "elicitation.pending", "boardId": board, "cardId": "card_1",
        "cardTitle": "Release", "elicitationId": id, "runId": "run_1", "stageKey": "build",
        "agentId": "agt_there", "question": "Ship it?",
        "options": [{ "id": "y", "label": "Yes" }], "ts": "2026-12-01T12:00:00Z",
    })
}

/// The signature of exactly these bytes.
fn signed(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

impl Api {
    /// What comes of a push with this signature. A board sends no token.
    async fn pushed(&self, path: &str, body: &str, signature: Option<&str>) -> (u16, Value) {
        let mut request = self.client.post(format!("{}{path}", self.base));
        if let Some(signature) = signature {
            request = request.header("X-Superpipeline-Signature", signature);
        }
        answer(request.body(body.to_owned()).send().await.unwrap()).await
    }

    async fn push(&self, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        self.pushed(PATH, &body, Some(&signed(NEW, &body))).await
    }

    async fn stored(&self, board: &str, id: &str) -> bool {
        let found = self.service.find(&Key::of_board(board, id)).await;
        found.unwrap().is_some()
    }

    /// A carrier puts a card of the builder's question into a room.
    async fn carried(&self, id: &str, reply: Option<&str>) {
        let card = Card::builder(id)
            .asked_by("builder")
            .prompt("Ship it?")
            .options([CardOption::new("y", "Yes"), CardOption::new("n", "No")])
            .build()
            .unwrap();
        let carried = Box::new(Carried {
            card,
            body: "Ship it?".to_owned(),
            thread: None,
        });
        let what = What::Carried {
            carried,
            replaces: None,
        };
        let mut heard = vec![event("@hub:x.org", "$card", what)];
        heard.extend(reply.map(mira));
        self.hear(heard).await;
    }

    async fn hear(&self, heard: Vec<Heard>) {
        let rooms = [(
            "!deploys:x.org".to_owned(),
            (Rules::default(), Bot::default()),
        )];
        let batch = Batch {
            heard,
            rooms: rooms.into(),
            ..Batch::default()
        };
        self.service.take_in(batch).await.unwrap();
    }

    async fn as_tester(&self, method: Method, path: &str) -> (u16, Value) {
        let request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(TESTER);
        answer(request.send().await.unwrap()).await
    }
}

fn event(user_id: &str, event_id: &str, what: What) -> Heard {
    Heard {
        room_id: "!deploys:x.org".to_owned(),
        event_id: event_id.to_owned(),
        sender: Sender {
            user_id: user_id.to_owned(),
            display_name: None,
            joined: true,
            power: 0,
            alone: false,
        },
        sent_at: clock::now(),
        trust: Trust::Plain,
        what,
        chat: None,
    }
}

fn mira(body: &str) -> Heard {
    let said = Said {
        body: body.to_owned(),
        ..Said::default()
    };
    event("@mira:x.org", "$m1", What::Message(said))
}

fn status(word: &str) -> (u16, Value) {
    (200, json!({ "status": word }))
}

fn ignored(why: &str) -> (u16, Value) {
    (200, json!({ "ignored": why }))
}

#[tokio::test]
async fn a_signed_question_is_stored_once() {
    let api = Api::with(BOARDS).await;
    assert_eq!(api.push(&push("brd_1", "e1")).await, status("stored"));
    assert!(api.stored("brd_1", "e1").await);
    assert_eq!(api.push(&push("brd_1", "e1")).await, status("known"));
}

#[tokio::test]
async fn two_pushes_of_a_question_at_once_store_it_once() {
    let api = Api::with(BOARDS).await;
    let body = push("brd_1", "e1");
    let (first, second) = tokio::join!(api.push(&body), api.push(&body));
    let mut both = [first, second];
    both.sort_by_key(|(_, said)| said["status"] != "stored");
    assert_eq!(both, [status("stored"), status("known")]);
}

#[tokio::test]
async fn every_secret_of_the_board_signs_and_no_other_does() {
    let api = Api::with(BOARDS).await;
    for (id, secret) in [("e1", OLD), ("e2", NEW)] {
        let body = push("brd_1", id).to_string();
        let pushed = api.pushed(PATH, &body, Some(&signed(secret, &body))).await;
        assert_eq!(pushed, status("stored"));
    }
    let wrong = refused(401, "UNAUTHORIZED", "the signature is not the board's");
    let body = push("brd_1", "e3").to_string();
    let right = signed(NEW, &body);
    for signature in [
        signed("a-secret-of-another-board", &body),
        signed("", &body),
        right.to_uppercase(),
        right.replace("sha256=", "sha256:"),
        right.replace("sha256=", ""),
        right[..right.len() - 2].to_owned(),
        format!("{right}00"),
        String::new(),
    ] {
        let pushed = api.pushed(PATH, &body, Some(&signature)).await;
        assert_eq!(pushed, wrong, "{signature}");
    }
    assert!(!api.stored("brd_1", "e3").await);
}

#[tokio::test]
async fn a_push_without_a_signature_is_told_to_send_one_and_an_agents_token_is_none() {
    let api = Api::with(BOARDS).await;
    let body = push("brd_1", "e1").to_string();
    let missing = refused(
        401,
        "UNAUTHORIZED",
        "send the signature: X-Superpipeline-Signature: sha256=…",
    );
    assert_eq!(api.pushed(PATH, &body, None).await, missing);
    let request = api.request(Method::POST, PATH).body(body);
    let response = request.send().await.unwrap();
    // No token is asked for: none would do.
    assert!(!response.headers().contains_key("www-authenticate"));
    assert_eq!(answer(response).await, missing);
    assert!(!api.stored("brd_1", "e1").await);
}

#[tokio::test]
async fn a_signature_is_of_every_byte() {
    let api = Api::with(BOARDS).await;
    let body = push("brd_1", "e1").to_string();
    let signature = signed(NEW, &body);
    let spaced = body.replacen(':', ": ", 1);
    for other in [
        format!("{body}\n"),
        format!(" {body}"),
        spaced.clone(),
        body.replace("e1", "e2"),
        String::new(),
    ] {
        let (status, said) = api.pushed(PATH, &other, Some(&signature)).await;
        assert_eq!(
            (status, &said["error"]["code"]),
            (401, &json!("UNAUTHORIZED"))
        );
    }
    let signature = signed(NEW, &spaced);
    let pushed = api.pushed(PATH, &spaced, Some(&signature)).await;
    assert_eq!(pushed, status("stored"));
}

#[tokio::test]
async fn wrong_signatures_do_not_keep_a_right_one_out() {
    let api = Api::with(BOARDS).await;
    let body = push("brd_1", "e1");
    for _ in 0..50 {
        let (status, _) = api.pushed(PATH, &body.to_string(), Some("sha256=0")).await;
        assert_eq!(status, 401);
    }
    assert_eq!(api.push(&body).await, status("stored"));
}

#[tokio::test]
async fn what_is_signed_and_no_question_is_taken_and_ignored() {
    let api = Api::with(BOARDS).await;
    let with = |key: &str, value: Value| {
        let mut push = push("brd_1", "e1");
        push[key] = value;
        push
    };
    for (body, why) in [
        (
            with("event", json!("work.available")),
            "not elicitation.pending",
        ),
        (with("event", json!(7)), "event is missing"),
        (json!({}), "event is missing"),
        (json!([]), "event is missing"),
        (json!("elicitation.pending"), "event is missing"),
        (with("question", json!(null)), "$.question is not a string"),
        (with("options", json!("Yes")), "$.options is not an array"),
        (
            with("elicitationId", json!(" ")),
            "$.elicitationId is blank",
        ),
        (
            with("elicitationId", json!("..")),
            "$.elicitationId cannot be part of an address",
        ),
        (
            with("boardId", json!("brd_2")),
            "boardId is another board's",
        ),
    ] {
        assert_eq!(api.push(&body).await, ignored(why), "{body}");
    }
    let body = "{\"event\":";
    let pushed = api.pushed(PATH, body, Some(&signed(NEW, body))).await;
    assert_eq!(pushed, ignored("not JSON"));
    assert!(!api.stored("brd_1", "e1").await && !api.stored("brd_2", "e1").await);
    // What is not signed is not looked at at all.
    let (status, _) = api.pushed(PATH, body, Some("sha256=0")).await;
    assert_eq!(status, 401);
}

#[tokio::test]
async fn a_question_that_is_older_or_carried_by_another_is_ignored() {
    let api = Api::with(BOARDS).await;
    api.push(&push("brd_1", "e1")).await;
    let mut older = push("brd_1", "e0");
    older["ts"] = json!("2026-12-01T11:59:59Z");
    assert_eq!(
        api.push(&older).await,
        ignored("a newer question about its card is here")
    );
    api.carried("e2", None).await;
    assert_eq!(
        api.push(&push("brd_1", "e2")).await,
        ignored("another carrier has put it up")
    );
}

#[tokio::test]
async fn a_question_without_a_room_is_to_be_pushed_again() {
    let api = Api::with(BOARDS).await;
    let body = push("brd_2", "e1").to_string();
    let signature = signed("a-secret-of-another-board", &body);
    let pushed = api.pushed("/v1/boards/brd_2/push", &body, Some(&signature));
    let why = "the bot is not in !elsewhere:x.org: invite @elicit:x.org";
    assert_eq!(pushed.await, refused(503, "UNAVAILABLE", why));
    assert!(!api.stored("brd_2", "e1").await);
}

#[tokio::test]
async fn there_is_nothing_at_the_path_of_a_board_that_is_not_configured() {
    let api = Api::with(BOARDS).await;
    let body = push("brd_3", "e1").to_string();
    let nothing = refused(404, "NOT_FOUND", "there is nothing at this path");
    for path in ["/v1/boards/brd_3/push", "/v1/boards/%ff/push"] {
        let pushed = api.pushed(path, &body, Some(&signed(NEW, &body))).await;
        assert_eq!(pushed, nothing, "{path}");
    }
    let (status, said) = api.get(PATH).await;
    let method = json!("METHOD_NOT_ALLOWED");
    assert_eq!((status, &said["error"]["code"]), (405, &method));
}

#[tokio::test]
async fn a_routed_question_is_its_agents_to_read_and_wait_for_and_nobody_elses() {
    let api = Api::with(BOARDS).await;
    api.carried("e1", Some("2")).await;
    let (status, found) = api.get("/v1/elicitations/e1?wait=50").await;
    assert_eq!(status, 200);
    assert_eq!(found["state"], "answered");
    assert_eq!(found["source"], "carrier");
    assert_eq!(found["asked_by"], "builder");
    assert_eq!(found["answer"]["option"]["id"], "n");
    let (_, listed) = api.get("/v1/elicitations").await;
    assert_eq!(listed["elicitations"], json!([found]));
    let unknown = refused(
        404,
        "ELICITATION_NOT_FOUND",
        "there is no elicitation \"e1\" of this agent",
    );
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(api.as_tester(method, "/v1/elicitations/e1").await, unknown);
    }
    let (_, listed) = api.as_tester(Method::GET, "/v1/elicitations").await;
    assert_eq!(listed["elicitations"], json!([]));
}

#[tokio::test]
async fn who_waits_for_a_routed_question_has_the_answer_at_once() {
    let api = Api::with(BOARDS).await;
    api.carried("e1", None).await;
    let waiting = soon(api.get("/v1/elicitations/e1?wait=50"));
    let answering = async {
        // The wait has begun, or begins with the answer there.
        tokio::task::yield_now().await;
        api.hear(vec![mira("1")]).await;
    };
    let ((status, found), ()) = tokio::join!(waiting, answering);
    assert_eq!((status, &found["state"]), (200, &json!("answered")));
}

#[tokio::test]
async fn a_routed_question_is_neither_withdrawn_nor_asked_again_by_its_agent() {
    let api = Api::with(BOARDS).await;
    api.carried("e1", None).await;
    assert_eq!(
        api.delete("/v1/elicitations/e1").await,
        refused(
            409,
            "CARRIED_ELSEWHERE",
            "@hub:x.org carries it: it is withdrawn there"
        )
    );
    let (_, open) = api.get("/v1/elicitations/e1").await;
    assert_eq!(open["state"], "open");
    let again = json!({ "room": "!r:x.org", "prompt": "Ship it?", "elicitation_id": "e1" });
    assert_eq!(api.ask(&again).await, (200, open));
}

#[tokio::test]
async fn no_agent_reads_or_withdraws_a_boards_question() {
    let api = Api::with(BOARDS).await;
    api.push(&push("brd_1", "e1")).await;
    for path in ["/v1/elicitations/e1", "/v1/elicitations/board%3Abrd_1"] {
        assert_eq!(api.get(path).await.0, 404);
        assert_eq!(api.delete(path).await.0, 404);
    }
    let (_, listed) = api.get("/v1/elicitations").await;
    assert_eq!(listed["elicitations"], json!([]));
}
