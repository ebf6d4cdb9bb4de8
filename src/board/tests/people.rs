//! Who somebody is to a board.

use super::*;

const NOW: i64 = 1_790_000_000_000;

fn asserted(http: reqwest::Client, service: &Url) -> People {
    let board = Url::parse("https://board.example.org/api/").unwrap();
    let people = PeopleConfig {
        bearer: None,
        assertion: Some(AssertionConfig {
            url: service.join("/assertions?for=boards").unwrap(),
            token: Secret::from("our-token"),
        }),
        dev: None,
    };
    People::new(http, &config(&board, people))
}

fn issues(token: &str, expires_in: impl Into<Value>) -> Response {
    says(
        200,
        json!({ "token": token, "expires_in": expires_in.into() }).to_string(),
    )
}

fn bearer(token: &str) -> Credential {
    Credential::Bearer(Secret::from(token))
}

fn down(why: &str) -> Result<Credential, NoCredential> {
    Err(NoCredential::Down {
        why: why.to_owned(),
        retry_after: None,
    })
}

/// What is asked for a person.
fn asks(matrix_user: &str) -> Call {
    call(
        Method::POST,
        "/assertions?for=boards",
        &[
            "authorization: Bearer our-token",
            "content-type: application/json",
        ],
        json!({ "matrix_user_id": matrix_user, "audience": "https://board.example.org/api" }),
    )
}

/// What comes of asking for Mira when this is the answer.
async fn asked(answer: Response) -> Result<Credential, NoCredential> {
    let (stub, url) = Stub::answering([answer]).await;
    let found = asserted(http(), &url).credential_of(MIRA, NOW).await;
    assert_eq!(stub.calls(), [asks(MIRA)]);
    found
}

#[tokio::test]
async fn a_token_from_the_configuration_is_that_persons_alone() {
    let url = Url::parse("https://board.example.org").unwrap();
    let people = People::new(http(), &config(&url, bearers()));
    assert_eq!(
        people.credential_of(MIRA, NOW).await,
        Ok(bearer("mira's-token"))
    );
    people.forget(MIRA);
    assert_eq!(
        people.credential_of(MIRA, NOW).await,
        Ok(bearer("mira's-token"))
    );
    for other in ["@ada:example.org", "@MIRA:example.org", ""] {
        let found = people.credential_of(other, NOW).await;
        assert_eq!(found, Err(NoCredential::Unknown));
    }
    assert!(!people.is_cached_kind());
}

#[tokio::test]
async fn in_development_a_person_is_two_headers() {
    let url = Url::parse("http://localhost:8080").unwrap();
    let dev = DevConfig {
        tenant: "tnt_dev".to_owned(),
        users: [(MIRA.to_owned(), "usr_mira".to_owned())].into(),
    };
    let people = PeopleConfig {
        bearer: None,
        assertion: None,
        dev: Some(dev),
    };
    let people = People::new(http(), &config(&url, people));
    let credential = Credential::Dev {
        tenant: "tnt_dev".to_owned(),
        user: "usr_mira".to_owned(),
    };
    assert_eq!(people.credential_of(MIRA, NOW).await, Ok(credential));
    assert_eq!(
        people.credential_of("@ada:example.org", NOW).await,
        Err(NoCredential::Unknown)
    );
    assert!(!people.is_cached_kind());
}

#[tokio::test]
async fn a_service_is_asked_for_a_person_and_a_board() {
    assert_eq!(asked(issues("abc", 600)).await, Ok(bearer("abc")));
    assert_eq!(
        asked(says(201, r#"{"token":"abc"}"#)).await,
        Ok(bearer("abc"))
    );
}

#[tokio::test]
async fn the_audience_is_the_board_without_a_slash_at_the_end() {
    for (base_url, audience) in [
        ("https://board.example.org", "https://board.example.org"),
        ("https://board.example.org/", "https://board.example.org"),
        ("http://localhost:8080/a/b/", "http://localhost:8080/a/b"),
    ] {
        let (stub, url) = Stub::answering([issues("abc", 600)]).await;
        let assertion = AssertionConfig {
            url,
            token: Secret::from("our-token"),
        };
        let people = PeopleConfig {
            bearer: None,
            assertion: Some(assertion),
            dev: None,
        };
        let base_url = Url::parse(base_url).unwrap();
        let people = People::new(http(), &config(&base_url, people));
        assert_eq!(people.credential_of(MIRA, NOW).await, Ok(bearer("abc")));
        assert_eq!(stub.calls()[0].body["audience"], audience);
    }
}

#[tokio::test]
async fn whom_the_service_does_not_know_is_unknown() {
    for status in [403, 404, 422] {
        let answer = says(status, r#"{"token":"abc"}"#);
        assert_eq!(asked(answer).await, Err(NoCredential::Unknown), "{status}");
    }
}

#[tokio::test]
async fn a_service_that_does_not_do_its_work_says_nothing_about_the_person() {
    let no_token = "the answer has no token";
    let not_json = "the answer is not JSON";
    for (status, body, why) in [
        (400, r#"{"token":"abc"}"#, "HTTP 400"),
        (401, "secret words", "HTTP 401"),
        (408, "", "HTTP 408"),
        (409, "", "HTTP 409"),
        (500, "secret words", "HTTP 500"),
        (200, "", not_json),
        (200, "secret words", not_json),
        (200, r#"{"token":"secret" words"#, not_json),
        (200, "{}", no_token),
        (200, r#"["token"]"#, no_token),
        (200, r#""token""#, no_token),
        (200, r#"{"token":""}"#, no_token),
        (200, r#"{"token":null}"#, no_token),
        (200, r#"{"token":5}"#, no_token),
        (200, r#"{"token":"two words"}"#, no_token),
        (200, r#"{"token":"a\r\nX-User-Id: usr"}"#, no_token),
        (200, r#"{"token":"é"}"#, no_token),
    ] {
        assert_eq!(asked(says(status, body)).await, down(why), "{body}");
    }
    assert_eq!(asked(redirects(302)).await, down("HTTP 302"));
    assert_eq!(asked(redirects(308)).await, down("HTTP 308"));
    let busy = NoCredential::Down {
        why: "HTTP 503".to_owned(),
        retry_after: Some(Duration::from_secs(7)),
    };
    assert_eq!(asked(waits(503)).await, Err(busy));
    let long = format!("{{\"token\":\"abc\"{}}}", " ".repeat(64 * 1024));
    let why = "the answer has more than 65536 bytes";
    assert_eq!(asked(says(200, long)).await, down(why));
}

#[tokio::test]
async fn a_service_that_is_not_reached_is_told_without_its_address() {
    let (_stub, silent) = Stub::answering([]).await;
    let found = asserted(impatient(), &silent)
        .credential_of(MIRA, NOW)
        .await;
    assert_eq!(found, down("timed out"));

    let (_held, away) = nobody();
    for url in [away, breaking_off("200 OK").await] {
        let found = asserted(http(), &url).credential_of(MIRA, NOW).await;
        let Err(NoCredential::Down { why, retry_after }) = found else {
            panic!("{found:?}");
        };
        for secret in ["127.0.0.1", "for=boards", "our-token"] {
            assert!(!why.contains(secret), "{why}");
        }
        assert!(!why.is_empty());
        assert_eq!(retry_after, None);
    }
}

/// When a token that lasts so long is asked for again: the last moment at which it is not, and
/// the first at which it is.
async fn is_used_until(expires_in: Value, lasts: i64) {
    let answers = [issues("first", expires_in.clone()), issues("second", 600)];
    let (stub, url) = Stub::answering(answers).await;
    let people = asserted(http(), &url);
    for at in [NOW, NOW + 1, NOW + lasts - 1] {
        let found = people.credential_of(MIRA, at).await;
        assert_eq!(found, Ok(bearer("first")), "{expires_in} {at}");
    }
    assert_eq!(stub.calls().len(), 1, "{expires_in}");
    let found = people.credential_of(MIRA, NOW + lasts).await;
    assert_eq!(found, Ok(bearer("second")), "{expires_in}");
    assert_eq!(stub.calls(), [asks(MIRA), asks(MIRA)]);
}

#[tokio::test]
async fn a_token_is_used_again_until_shortly_before_its_end() {
    // A tenth less, and thirty seconds at most.
    is_used_until(json!(100), 90_000).await;
    is_used_until(json!(300), 270_000).await;
    is_used_until(json!(3600), 3_570_000).await;
    is_used_until(json!(0.5), 450).await;
    // Nothing is believed for more than a year.
    is_used_until(json!(1e300), 365 * 86_400_000 - 30_000).await;
}

#[tokio::test]
async fn a_token_that_does_not_say_how_long_it_lasts_is_used_once() {
    for expires_in in [
        Value::Null,
        json!(0),
        json!(-600),
        json!(-1e300),
        json!("600"),
        json!([600]),
    ] {
        let answers = [issues("first", expires_in.clone()), issues("second", 600)];
        let (stub, url) = Stub::answering(answers).await;
        let people = asserted(http(), &url);
        let first = people.credential_of(MIRA, NOW).await;
        let second = people.credential_of(MIRA, NOW).await;
        assert_eq!((first, second), (Ok(bearer("first")), Ok(bearer("second"))));
        assert_eq!(stub.calls().len(), 2, "{expires_in}");
    }
}

#[tokio::test]
async fn a_token_is_kept_for_one_person_and_outlives_those_of_others() {
    let ada = "@ada:example.org";
    let answers = [
        issues("mira's", 100),
        issues("ada's", 600),
        issues("new", 600),
    ];
    let (stub, url) = Stub::answering(answers).await;
    let people = asserted(http(), &url);
    assert!(people.is_cached_kind());
    assert_eq!(people.credential_of(MIRA, NOW).await, Ok(bearer("mira's")));
    assert_eq!(people.credential_of(ada, NOW).await, Ok(bearer("ada's")));
    let later = NOW + 90_000;
    assert_eq!(people.credential_of(MIRA, later).await, Ok(bearer("new")));
    assert_eq!(people.credential_of(ada, later).await, Ok(bearer("ada's")));
    assert_eq!(stub.calls(), [asks(MIRA), asks(ada), asks(MIRA)]);
}

#[tokio::test]
async fn a_token_that_was_refused_is_asked_for_anew() {
    let ada = "@ada:example.org";
    let answers = [
        issues("mira's", 600),
        issues("ada's", 600),
        issues("new", 600),
    ];
    let (stub, url) = Stub::answering(answers).await;
    let people = asserted(http(), &url);
    assert_eq!(people.credential_of(MIRA, NOW).await, Ok(bearer("mira's")));
    assert_eq!(people.credential_of(ada, NOW).await, Ok(bearer("ada's")));
    people.forget(MIRA);
    assert_eq!(people.credential_of(ada, NOW).await, Ok(bearer("ada's")));
    assert_eq!(people.credential_of(MIRA, NOW).await, Ok(bearer("new")));
    assert_eq!(stub.calls(), [asks(MIRA), asks(ada), asks(MIRA)]);
}

#[tokio::test]
async fn what_went_wrong_is_not_kept() {
    let answers = [says(404, ""), says(500, ""), issues("abc", 600)];
    let (_stub, url) = Stub::answering(answers).await;
    let people = asserted(http(), &url);
    let unknown = people.credential_of(MIRA, NOW).await;
    assert_eq!(unknown, Err(NoCredential::Unknown));
    assert_eq!(people.credential_of(MIRA, NOW).await, down("HTTP 500"));
    assert_eq!(people.credential_of(MIRA, NOW).await, Ok(bearer("abc")));
    assert!(!format!("{people:?}").contains("abc"));
    assert!(!format!("{people:?}").contains("our-token"));
}
