//! The calls to a board.

use super::*;
use crate::contract::board::{MAX_REFUSAL_BYTES, PENDING, Verdict};

const LIST: &str = "/v1/boards/brd_7c1f/elicitations/pending";
const AGENT: &str = "authorization: Bearer kbn_agent";
const JSON: &str = "content-type: application/json";

fn client(http: reqwest::Client, base_url: &Url) -> BoardClient {
    BoardClient::new(http, "brd_7c1f", &config(base_url, bearers()))
}

fn unread(why: &str) -> Unread {
    Unread {
        why: why.to_owned(),
        retry_after: None,
    }
}

fn failed(why: &str) -> Verdict {
    Verdict::Failed {
        why: why.to_owned(),
        retry_after: None,
    }
}

fn mira() -> Credential {
    Credential::Bearer(Secret::from("mira's-token"))
}

fn option() -> Given {
    Given::Option("run_them".to_owned())
}

/// What comes of reading the list when this is the answer.
async fn read(answer: Response) -> Result<Vec<Value>, Unread> {
    let (stub, url) = Stub::answering([answer]).await;
    let read = client(http(), &url).pending().await;
    assert_eq!(
        stub.calls(),
        [call(Method::GET, LIST, &[AGENT], Value::Null)]
    );
    read
}

/// What comes of an answer when this is the board's.
async fn judged(answer: Response) -> Verdict {
    let (stub, url) = Stub::answering([answer]).await;
    let verdict = client(http(), &url).answer("elc", &option(), &mira()).await;
    assert_eq!(stub.calls().len(), 1, "nobody is called twice");
    verdict
}

#[tokio::test]
async fn what_is_pending_comes_entry_by_entry_as_it_is() {
    let body = json!({ "elicitations": [{ "elicitationId": "elc" }, 5, null], "more": true });
    let read_list = read(says(200, body.to_string())).await;
    let entries = vec![json!({ "elicitationId": "elc" }), json!(5), Value::Null];
    assert_eq!(read_list, Ok(entries));
    assert_eq!(read(says(200, r#"{"elicitations":[]}"#)).await, Ok(vec![]));
}

#[tokio::test]
async fn a_board_that_was_not_read_is_no_board_without_questions() {
    let no_list = "the answer has no list of elicitations";
    for (status, body, why) in [
        (200, "", "the answer is not JSON"),
        (200, "<html>", "the answer is not JSON"),
        (200, r#"{"elicitations":[]"#, "the answer is not JSON"),
        (200, r#"{"elicitations":[]} x"#, "the answer is not JSON"),
        (200, "{}", no_list),
        (200, "[]", no_list),
        (200, "null", no_list),
        (200, r#"{"elicitations":null}"#, no_list),
        (200, r#"{"elicitations":{}}"#, no_list),
        (201, r#"{"elicitations":[]}"#, "HTTP 201"),
        (204, "", "HTTP 204"),
        (401, r#"{"error":"secret words"}"#, "HTTP 401"),
        (
            403,
            r#"{"error":{"code":"FORBIDDEN"}}"#,
            "HTTP 403 FORBIDDEN",
        ),
        (404, r#"{"elicitations":[]}"#, "HTTP 404"),
        (500, "secret words", "HTTP 500"),
    ] {
        assert_eq!(read(says(status, body)).await, Err(unread(why)), "{body}");
    }
    assert_eq!(read(redirects(302)).await, Err(unread("HTTP 302")));
    let busy = Unread {
        why: "HTTP 503".to_owned(),
        retry_after: Some(Duration::from_secs(7)),
    };
    assert_eq!(read(waits(503)).await, Err(busy));
}

#[tokio::test]
async fn a_list_is_read_up_to_sixteen_mebibytes() {
    let list = |length: usize| {
        let list = r#"{"elicitations":[1]}"#;
        format!("{list}{}", " ".repeat(length - list.len()))
    };
    let most = 16 * 1024 * 1024;
    assert_eq!(read(says(200, list(most))).await, Ok(vec![json!(1)]));
    let why = format!("the answer has more than {most} bytes");
    assert_eq!(read(says(200, list(most + 1))).await, Err(unread(&why)));
}

#[tokio::test]
async fn a_board_that_is_not_reached_is_told_without_its_address() {
    let (_stub, silent) = Stub::answering([]).await;
    let board = client(impatient(), &silent);
    assert_eq!(board.pending().await, Err(unread("timed out")));
    let push = Url::parse("https://elicit.example.org").unwrap();
    let subscribed = board.subscribe(&push, &[PENDING]).await;
    assert_eq!(subscribed, Err(unread("timed out")));
    let verdict = board.answer("elc", &option(), &mira()).await;
    assert_eq!(verdict, failed("timed out"));

    let (_held, url) = nobody();
    let away = client(http(), &url);
    let why = away.pending().await.unwrap_err().why;
    assert!(why.starts_with("no connection: "), "{why}");
    assert!(!why.contains("shh") && !why.contains("127.0.0.1"), "{why}");
    assert_eq!(away.answer("elc", &option(), &mira()).await, failed(&why));

    let broken = client(http(), &breaking_off("200 OK").await);
    let why = broken.pending().await.unwrap_err().why;
    assert!(!why.is_empty() && !why.contains("127.0.0.1"), "{why}");
}

#[tokio::test]
async fn a_subscription_names_the_address_the_first_secret_and_the_events() {
    let (stub, url) = Stub::answering([says(201, "{}"), says(204, "")]).await;
    let board = client(http(), &url);
    let push = Url::parse("https://elicit.example.org/v1/boards/brd_7c1f/push").unwrap();
    assert_eq!(board.subscribe(&push, &[PENDING]).await, Ok(()));
    assert_eq!(board.subscribe(&push, &[PENDING, "other"]).await, Ok(()));
    let target = "/v1/boards/brd_7c1f/push-configs";
    let subscribes = |events: &[&str]| {
        let body = json!({ "url": push.as_str(), "token": "newer", "events": events });
        call(Method::POST, target, &[AGENT, JSON], body)
    };
    assert_eq!(
        stub.calls(),
        [
            subscribes(&["elicitation.pending"]),
            subscribes(&["elicitation.pending", "other"])
        ]
    );
}

#[tokio::test]
async fn a_subscription_that_was_refused_says_so() {
    let push = Url::parse("http://10.0.0.7/push").unwrap();
    let private = r#"{"error":{"code":"PRIVATE_ADDRESS","message":"secret words"}}"#;
    for (answer, why) in [
        (says(400, private), "HTTP 400 PRIVATE_ADDRESS"),
        (says(401, "secret words"), "HTTP 401"),
        (redirects(307), "HTTP 307"),
    ] {
        let (stub, url) = Stub::answering([answer]).await;
        let subscribed = client(http(), &url).subscribe(&push, &[PENDING]).await;
        assert_eq!(subscribed, Err(unread(why)));
        assert_eq!(stub.calls().len(), 1);
    }
    let mut secretless = config(&push, bearers());
    secretless.push_secrets.clear();
    let board = BoardClient::new(http(), "brd_7c1f", &secretless);
    assert_eq!(
        board.subscribe(&push, &[PENDING]).await,
        Err(unread("there is no push secret"))
    );
}

#[tokio::test]
async fn an_answer_is_an_option_or_a_text_and_given_as_the_person() {
    let (stub, url) = Stub::answering([says(200, "{}"), says(204, ""), says(201, "x")]).await;
    let board = client(http(), &url);
    let text = Given::Text("in my own\nwords ✓".to_owned());
    let dev = Credential::Dev {
        tenant: "tnt_dev".to_owned(),
        user: "usr_mira".to_owned(),
    };
    for (given, as_whom) in [(option(), mira()), (text.clone(), mira()), (text, dev)] {
        let verdict = board.answer("elc_7f3c", &given, &as_whom).await;
        assert_eq!(verdict, Verdict::Taken);
    }
    let target = "/v1/boards/brd_7c1f/elicitations/elc_7f3c/answer";
    let bearer = ["authorization: Bearer mira's-token", JSON];
    let dev = [JSON, "x-tenant-id: tnt_dev", "x-user-id: usr_mira"];
    let option = json!({ "option": "run_them" });
    let text = json!({ "text": "in my own\nwords ✓" });
    assert_eq!(
        stub.calls(),
        [
            call(Method::POST, target, &bearer, option),
            call(Method::POST, target, &bearer, text.clone()),
            call(Method::POST, target, &dev, text),
        ]
    );
}

#[tokio::test]
async fn an_id_stays_one_part_of_the_address() {
    let written = [
        ("a/b", "a%2Fb"),
        ("a?b#c", "a%3Fb%23c"),
        ("a b", "a%20b"),
        ("%2e%2e", "%252e%252e"),
        ("ü", "%C3%BC"),
        ("...", "..."),
        ("a\\b", "a%5Cb"),
    ];
    for (id, part) in written {
        let (stub, url) = Stub::answering([says(200, "")]).await;
        let verdict = client(http(), &url).answer(id, &option(), &mira()).await;
        assert_eq!(verdict, Verdict::Taken);
        let target = &stub.calls()[0].target;
        assert_eq!(
            target,
            &format!("/v1/boards/brd_7c1f/elicitations/{part}/answer")
        );
    }
    let (stub, url) = Stub::answering([]).await;
    for id in ["", ".", ".."] {
        let why = "an id cannot be part of an address";
        let board = client(http(), &url);
        assert_eq!(board.answer(id, &option(), &mira()).await, failed(why));
        let board = BoardClient::new(http(), id, &config(&url, bearers()));
        assert_eq!(board.pending().await, Err(unread(why)));
        assert_eq!(board.subscribe(&url, &[PENDING]).await, Err(unread(why)));
    }
    assert_eq!(stub.calls(), []);
}

#[tokio::test]
async fn a_board_may_have_a_path_with_or_without_a_slash() {
    for (path, prefix) in [("", ""), ("/", ""), ("/api", "/api"), ("/a%20b/", "/a%20b")] {
        let (stub, url) = Stub::answering([says(200, r#"{"elicitations":[]}"#)]).await;
        let url = url.join(path).unwrap();
        assert_eq!(client(http(), &url).pending().await, Ok(vec![]));
        assert_eq!(stub.calls()[0].target, format!("{prefix}{LIST}"));
    }
}

#[tokio::test]
async fn the_verdict_is_the_boards() {
    let refusal = |code: &str| json!({ "error": { "code": code, "message": "m" } }).to_string();
    let nested = json!({ "error": { "error": { "code": "SEPARATION_OF_DUTIES" } } }).to_string();
    let not_allowed = |code: &str| Verdict::NotAllowed {
        code: code.to_owned(),
    };
    for (status, body, verdict) in [
        (400, refusal("INVALID_ANSWER"), Verdict::Invalid),
        (404, refusal("ELICITATION_NOT_FOUND"), Verdict::Settled),
        (409, refusal("ELICITATION_NOT_PENDING"), Verdict::Settled),
        (403, nested, Verdict::SeparationOfDuties),
        (403, refusal("NOT_RUN_OWNER"), not_allowed("NOT_RUN_OWNER")),
        (
            401,
            r#"{"error":"text"}"#.to_owned(),
            Verdict::UnknownPerson,
        ),
        (404, r#"{"error":"text"}"#.to_owned(), failed("HTTP 404")),
        (500, refusal("INTERNAL"), failed("HTTP 500 INTERNAL")),
    ] {
        assert_eq!(judged(says(status, body)).await, verdict);
    }
    assert_eq!(judged(redirects(307)).await, failed("HTTP 307"));
    for status in [429, 503] {
        let wait = Some(Duration::from_secs(7));
        let why = format!("HTTP {status}");
        let busy = Verdict::Failed {
            why,
            retry_after: wait,
        };
        assert_eq!(judged(waits(status)).await, busy);
    }
}

#[tokio::test]
async fn of_a_refusal_only_so_much_is_read() {
    let refusal = |length: usize| {
        let body = r#"{"error":{"code":"INVALID_ANSWER"}}"#;
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let fits = judged(says(400, refusal(MAX_REFUSAL_BYTES))).await;
    assert_eq!(fits, Verdict::Invalid);
    let long = judged(says(400, refusal(MAX_REFUSAL_BYTES + 1))).await;
    let code = "HTTP 400".to_owned();
    assert_eq!(long, Verdict::NotAllowed { code });
}

#[tokio::test]
async fn a_refusal_that_broke_off_decides_nothing() {
    let board = client(http(), &breaking_off("409 Conflict").await);
    let verdict = board.answer("elc", &option(), &mira()).await;
    let Verdict::Failed { why, retry_after } = verdict else {
        panic!("{verdict:?}");
    };
    assert!(!why.is_empty() && !why.contains("127.0.0.1"), "{why}");
    assert_eq!(retry_after, None);
    // What was taken is, however the answer ends.
    let board = client(http(), &breaking_off("200 OK").await);
    let verdict = board.answer("elc", &option(), &mira()).await;
    assert_eq!(verdict, Verdict::Taken);
}

#[test]
fn what_proves_somebody_is_never_shown() {
    let url = Url::parse("https://board.example.org").unwrap();
    let shown = format!("{:?} {:?}", client(http(), &url), mira());
    for secret in ["kbn_agent", "newer", "mira's-token"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
