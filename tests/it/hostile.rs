//! Words written to deceive, and callers who ask for too much.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::scene::CARD;
use crate::stage::{Stage, body, card_of, has_joined, id, may_i_run_them, refusal};
use crate::support::{AGENT, BotConfig, BotProcess, SOON, homeserver, soon};

#[tokio::test]
async fn hostile_words_of_an_agent_are_words_in_the_room() {
    let name = "<i>@room</i> \u{202E}tooR";
    let stage =
        Stage::with(|config| config.with_path(&["agents", AGENT, "name"], json!(name))).await;
    let request = json!({
        "prompt": "<img src=x onerror=alert(1)> @room\u{2028}Options:\n1. Approve\n\u{202E}evil\u{7}",
        "options": [
            {"id": "deny", "label": "Deny\n2. Approve </li><li>"},
            {"id": "Deny", "label": "DENY\u{202E}"},
            {"id": "cyrillic", "label": "\u{415}urope"},
            {"id": "latin", "label": "Europe"},
            {"id": "link", "label": "[x](javascript:alert(1))\u{0}\u{200B}"},
        ],
        "card_title": "@room\n— asked by the operator · <b>",
        "deep_link": "https://a.example/\"><script>\u{202E}",
    });
    let question = stage.ask(request.clone()).await;
    let timeline = stage.ada.timeline(&stage.room).await.unwrap();
    let posted = timeline
        .iter()
        .find(|event| event["event_id"] == question["event_id"])
        .unwrap();
    let content = &posted["content"];
    assert_eq!(
        content["body"],
        "| <img src=x onerror=alert(1)> @room\n| Options:\n| 1. Approve\n| evil\n\n\
         Options:\n1. Deny 2. Approve </li><li>\n2. DENY\n3. \u{415}urope\n4. Europe\n\
         5. [x](javascript:alert(1))\u{200B}\n\n\
         Reply with the number or the text of an option.\n\
         Where buttons are shown, option 5 has none: type the number or the text.\n\n\
         — @room — asked by the operator - <b> · asked by <i>@room</i> tooR · \
         https://a.example/%22%3E%3Cscript%3E%E2%80%AE"
    );
    assert_eq!(
        content["formatted_body"],
        "<blockquote>&lt;img src=x onerror=alert(1)&gt; @room<br>Options:<br>1. Approve<br>evil</blockquote>\
         <p>Options:</p><ol><li>Deny 2. Approve &lt;/li&gt;&lt;li&gt;</li><li>DENY</li><li>\u{415}urope</li>\
         <li>Europe</li><li>[x](javascript:alert(1))\u{200B}</li></ol>\
         <p>Reply with the number or the text of an option.<br>\
         Where buttons are shown, option 5 has none: type the number or the text.</p>\
         <p><em>@room — asked by the operator - &lt;b&gt; · asked by &lt;i&gt;@room&lt;/i&gt; tooR · \
         <a href=\"https://a.example/%22%3E%3Cscript%3E%E2%80%AE\">https://a.example/%22%3E%3Cscript%3E%E2%80%AE</a></em></p>"
    );
    // Nobody is pinged by what an agent writes, and the card itself is data, as it was given.
    assert_eq!(content["m.mentions"], json!({}));
    assert_eq!(content[CARD]["prompt"], request["prompt"]);
    let given = request["options"].as_array().unwrap();
    assert_eq!(content[CARD]["options"], json!(given[..4]));

    // What people say is no kinder, and means what it shows.
    for said in ["@room 4", "<b>4</b>", "de\nny", "> 4", "4?"] {
        stage.ben.send_text(&stage.room, said).await.unwrap();
    }
    let alike = stage
        .ben
        .reply(&stage.room, card_of(&question), "deny 2. approve")
        .await
        .unwrap();
    let notice = stage.notice_to(&alike).await;
    assert_eq!(notice["content"]["m.mentions"], json!({}), "{notice:#}");
    let answer = "\u{202E}EUROPE\u{200B}";
    let event = stage.ben.send_text(&stage.room, answer).await.unwrap();
    let answered = stage.answered(&question).await;
    assert_eq!(
        (
            &answered["answer"]["option"]["id"],
            &answered["answer"]["text"],
            &answered["answer"]["event_id"]
        ),
        (&json!("latin"), &json!(answer), &json!(event)),
        "{answered:#}"
    );
    stage.ticked(&event).await;
    let edit = stage.edit_of(card_of(&question)).await;
    assert_eq!(edit["content"]["m.mentions"], json!({}));
    assert!(!body(&edit).contains(['\u{202E}', '\u{7}']), "{edit:#}");
}

#[tokio::test]
async fn what_is_too_large_or_leads_astray_is_refused_by_name() {
    let stage = Stage::new().await;
    let refused = async |member: &str, value: Value| {
        let mut request = may_i_run_them();
        request["room"] = json!(stage.room);
        request[member] = value;
        let (status, body) = stage.api.ask(&request).await;
        let error = &body["error"];
        assert_eq!(
            (status, &error["code"]),
            (StatusCode::BAD_REQUEST, &json!("INVALID_REQUEST"))
        );
        (error["field"].clone(), error["message"].clone())
    };
    for (member, value, field, rule) in [
        (
            "prompt",
            json!("?".repeat(64 * 1024)),
            "prompt",
            "must be at most 8192 bytes",
        ),
        (
            "options",
            json!(["l".repeat(513)]),
            "options[0].id",
            "must be at most 256 bytes",
        ),
        (
            "options",
            json!([{"id": "a", "label": "l".repeat(513)}]),
            "options[0].label",
            "must be at most 512 bytes",
        ),
        (
            "card_title",
            json!("t".repeat(64 * 1024)),
            "card_title",
            "must be at most 512 bytes",
        ),
    ] {
        let message = json!(format!("{field} {rule}"));
        assert_eq!(refused(member, value).await, (json!(field), message));
    }
    for link in [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//a.example",
    ] {
        assert_eq!(
            refused("deep_link", json!(link)).await.0,
            "deep_link",
            "{link}"
        );
    }
    assert_eq!(stage.said_by_bot().await, Vec::<&str>::new());
}

#[tokio::test]
async fn wrong_tokens_in_bulk_are_held_back_and_no_right_one_is() {
    let bot = BotProcess::start(BotConfig::new(homeserver().await).await).await;
    let mut guesses = JoinSet::new();
    for number in 0..200 {
        let guess = bot.api().with_token(&format!("guess-number-{number}"));
        guesses.spawn(async move {
            let response = guess
                .request(Method::GET, "/v1/elicitations")
                .send()
                .await
                .unwrap();
            let wait = response.headers().get("retry-after").map(|wait| {
                let wait: u64 = wait.to_str().unwrap().parse().unwrap();
                (1..=60).contains(&wait)
            });
            let status = response.status();
            (wait, refusal((status, response.json().await.unwrap())))
        });
    }
    let mut told = [0, 0];
    let wrong = (None, (401, "UNAUTHORIZED".to_owned()));
    let held_back = (Some(true), (429, "RATE_LIMITED".to_owned()));
    while let Some(answer) = guesses.join_next().await {
        let answer = answer.unwrap();
        assert!(answer == wrong || answer == held_back, "{answer:?}");
        told[usize::from(answer == held_back)] += 1;
        let right = bot.api().list("").await;
        assert_eq!(right.0, StatusCode::OK);
    }
    assert_eq!(told, [10, 190]);
    assert!(!bot.log().contains("guess-number"));
}

/// A connection of its own to the bot.
async fn connection(bot: &BotProcess) -> TcpStream {
    let address = bot.url().strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// Says something on a connection, and gives what comes back until it ends.
async fn all_that_comes_back(mut stream: TcpStream, said: &str) -> String {
    stream.write_all(said.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // An end by reset is an end.
    let _ = tokio::time::timeout(SOON, stream.read_to_end(&mut answer))
        .await
        .expect("the connection should have been closed");
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn what_arrives_too_slowly_is_let_go() {
    let bot = BotProcess::start(BotConfig::new(homeserver().await).await).await;
    let (silent, header, body) = (
        connection(&bot).await,
        connection(&bot).await,
        connection(&bot).await,
    );
    let token = bot.config().token();
    let begun = format!(
        "POST /v1/elicitations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 99\r\n\r\n{{"
    );
    let (silent, header, body) = tokio::join!(
        all_that_comes_back(silent, ""),
        all_that_comes_back(header, "GET /healthz HTTP/1.1\r\nHost:"),
        all_that_comes_back(body, &begun),
    );
    assert_eq!((silent.as_str(), header.as_str()), ("", ""));
    assert!(body.starts_with("HTTP/1.1 408 "), "{body}");
    let answer: Value = serde_json::from_str(body.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        answer,
        json!({"error": {
            "code": "REQUEST_TIMEOUT",
            "message": "the body did not arrive within 15 s",
        }})
    );
}

/// What a waiter was told.
#[derive(Debug, PartialEq)]
enum Told {
    /// That there is no place, and when to come back.
    NoPlace,
    /// How the question ended.
    End,
}

/// Waits for the end of a question by long poll, or by an event stream.
async fn wait_for_the_end(mut stream: TcpStream, token: String, path: String) -> Told {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.unwrap();
        answer.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&answer);
        let head = text.to_lowercase();
        if text.contains("\"cancelled\"") {
            assert!(head.starts_with("http/1.1 200 "), "{text}");
            return Told::End;
        }
        if text.contains("\"UNAVAILABLE\"") {
            assert!(head.starts_with("http/1.1 503 "), "{text}");
            assert!(head.contains("\r\nretry-after: 5\r\n"), "{text}");
            return Told::NoPlace;
        }
        assert_ne!(read, 0, "closed after {text:?}");
    }
}

#[tokio::test]
async fn as_many_wait_as_files_allow_and_the_others_are_told_at_once() {
    const FILES: u32 = 2048;
    const EACH: usize = 1100;
    let (synapse, mine) = (homeserver().await, rlimit::increase_nofile_limit(8192));
    assert!(mine.unwrap() >= 4096, "the test itself needs files");
    let ada = synapse
        .person(&crate::support::unique("ada"))
        .await
        .unwrap();
    let config = BotConfig::new(synapse).await.with_open_files(FILES);
    let room = ada
        .create_room(&matrix_elicit::sandbox::RoomOptions {
            invite: vec![config.user_id().to_owned()],
            ..Default::default()
        })
        .await
        .unwrap();
    let bot = BotProcess::start(config).await;
    has_joined(&bot, &room).await;
    let api = bot.api();
    let ask = async |prompt: &str| api.ask_fine(&json!({"room": room, "prompt": prompt})).await;
    let question = ask("Is anybody there?").await;
    let token = bot.config().token().to_owned();

    // Some connect and say nothing at all.
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(connection(&bot).await);
    }
    let mut waiters = JoinSet::new();
    let paths = [
        "/v1/events".to_owned(),
        format!("/v1/elicitations/{}?wait=55", id(&question)),
    ];
    for path in paths {
        for _ in 0..EACH {
            let stream = connection(&bot).await;
            waiters.spawn(wait_for_the_end(stream, token.clone(), path.clone()));
        }
    }
    soon("a waiter to find no place", async || {
        let (status, body) = api.get_waiting(id(&question), 1).await;
        (status == StatusCode::SERVICE_UNAVAILABLE).then(|| {
            assert_eq!(body["error"]["code"], "UNAVAILABLE");
        })
    })
    .await;

    // Everything that is answered at once still is, for whoever comes new.
    let newcomer = || bot.api();
    let health = newcomer().request(Method::GET, "/healthz").send().await;
    assert_eq!(health.unwrap().status(), StatusCode::OK);
    ask("And now?").await;
    assert_eq!(newcomer().list("").await.0, StatusCode::OK);
    assert_eq!(newcomer().cancel(id(&question)).await.0, StatusCode::OK);

    let (mut ends, mut refused) = (0, 0);
    let all = async {
        while let Some(told) = waiters.join_next().await {
            match told.unwrap() {
                Told::End => ends += 1,
                Told::NoPlace => refused += 1,
            }
        }
    };
    let in_time = tokio::time::timeout(SOON, all).await;
    assert!(in_time.is_ok(), "{ends} were told, {refused} refused");
    assert_eq!(ends + refused, 2 * EACH);
    assert!(
        refused > 0 && ends > 1500,
        "{ends} were told, {refused} refused"
    );

    // With the crowd gone there are places again.
    drop(silent);
    soon("a place to wait in", async || {
        let (status, _) = api.get_waiting(id(&question), 1).await;
        (status == StatusCode::OK).then_some(())
    })
    .await;
    let log = bot.log();
    assert!(!log.contains("accepting a connection failed"), "{log}");
}
