//! What a board made of an answer.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn verdict(status: u16, body: &Value) -> Verdict {
    Verdict::of(status, None, body.to_string().as_bytes())
}

fn refusal(code: &str) -> Value {
    json!({ "error": { "code": code, "message": "secret words" } })
}

fn not_allowed(code: &str) -> Verdict {
    Verdict::NotAllowed {
        code: code.to_owned(),
    }
}

fn failed(why: &str) -> Verdict {
    Verdict::Failed {
        why: why.to_owned(),
        retry_after: None,
    }
}

#[test]
fn a_success_is_taken_whatever_it_says() {
    for status in [200, 201, 202, 204, 299] {
        assert_eq!(Verdict::of(status, None, b""), Verdict::Taken);
        let contradicts = refusal("ELICITATION_NOT_PENDING");
        assert_eq!(verdict(status, &contradicts), Verdict::Taken);
    }
}

#[test]
fn each_refusal_of_a_board_has_its_meaning() {
    for (status, code, means) in [
        (400, "INVALID_ANSWER", Verdict::Invalid),
        (404, "ELICITATION_NOT_FOUND", Verdict::Settled),
        (409, "ELICITATION_NOT_PENDING", Verdict::Settled),
        (403, "SEPARATION_OF_DUTIES", Verdict::SeparationOfDuties),
        (403, "NOT_RUN_OWNER", not_allowed("NOT_RUN_OWNER")),
        (409, "STALE_LEASE", not_allowed("STALE_LEASE")),
    ] {
        assert_eq!(verdict(status, &refusal(code)), means, "{code}");
        // Where it is known, the code says more than the status.
        for status in [400, 401, 403, 404, 408, 409, 410, 422, 429, 499] {
            assert_eq!(verdict(status, &refusal(code)), means, "{status} {code}");
        }
        // But a server that failed, or sent us elsewhere, has decided nothing.
        for status in [302, 308, 500, 502, 503, 504, 599] {
            let why = format!("HTTP {status} {code}");
            assert_eq!(verdict(status, &refusal(code)), failed(&why));
        }
    }
}

#[test]
fn whom_the_board_will_not_have_without_saying_why_it_does_not_know() {
    for status in [401, 403] {
        for body in [
            json!({ "error": "text" }),
            json!({}),
            refusal("UNAUTHORIZED"),
            refusal("FORBIDDEN"),
        ] {
            assert_eq!(verdict(status, &body), Verdict::UnknownPerson, "{body}");
        }
        assert_eq!(Verdict::of(status, None, b"<html>"), Verdict::UnknownPerson);
    }
}

#[test]
fn any_other_refusal_is_one_for_good_and_keeps_the_boards_word_for_it() {
    for status in [400, 402, 405, 409, 410, 413, 422, 451] {
        let word = not_allowed("RUN_PAUSED");
        assert_eq!(verdict(status, &refusal("RUN_PAUSED")), word);
        let flat = verdict(status, &json!({ "error": "secret words" }));
        assert_eq!(flat, not_allowed(&format!("HTTP {status}")));
    }
}

#[test]
fn what_is_no_decision_is_tried_again() {
    for status in [
        0, 100, 301, 302, 307, 404, 408, 429, 500, 502, 503, 504, 600,
    ] {
        let why = format!("HTTP {status}");
        assert_eq!(
            verdict(status, &json!({ "error": "secret words" })),
            failed(&why)
        );
        assert_eq!(Verdict::of(status, None, b"secret words"), failed(&why));
        let why = format!("HTTP {status} NOT_FOUND");
        assert_eq!(verdict(status, &refusal("NOT_FOUND")), failed(&why));
    }
}

#[test]
fn how_long_to_wait_is_kept_where_there_is_something_to_wait_for() {
    let wait = Some(Duration::from_secs(7));
    for status in [429, 503] {
        let expected = Verdict::Failed {
            why: format!("HTTP {status}"),
            retry_after: wait,
        };
        assert_eq!(Verdict::of(status, wait, b""), expected);
    }
    assert_eq!(Verdict::of(409, wait, b""), not_allowed("HTTP 409"));
}

#[test]
fn a_code_may_be_nested_and_one_that_is_known_counts_first() {
    for error in [
        json!({ "code": "INVALID_ANSWER" }),
        json!({ "error": { "code": "INVALID_ANSWER" } }),
        json!({ "code": { "code": "INVALID_ANSWER" } }),
        json!({ "code": 400, "cause": { "code": "INVALID_ANSWER" } }),
        json!({ "code": "BAD_REQUEST", "cause": { "code": "INVALID_ANSWER" } }),
        json!({ "a": { "code": "BAD_REQUEST" }, "b": { "code": "INVALID_ANSWER" } }),
    ] {
        let body = json!({ "error": error });
        assert_eq!(verdict(400, &body), Verdict::Invalid, "{body}");
    }
    // No deeper, and nowhere else.
    for body in [
        json!({ "error": { "a": { "b": { "code": "INVALID_ANSWER" } } } }),
        json!({ "code": "INVALID_ANSWER" }),
        json!({ "error": "INVALID_ANSWER" }),
        json!({ "error": [{ "code": "INVALID_ANSWER" }] }),
        json!({ "error": { "code": "invalid_answer " } }),
    ] {
        assert_eq!(verdict(400, &body), not_allowed("HTTP 400"), "{body}");
    }
    assert_eq!(
        verdict(
            400,
            &json!({ "error": { "code": "FIRST", "a": { "code": "SECOND" } } })
        ),
        not_allowed("FIRST")
    );
}

#[test]
fn only_what_looks_like_a_code_is_repeated() {
    let longest = "C".repeat(64);
    assert_eq!(verdict(400, &refusal(&longest)), not_allowed(&longest));
    for code in [
        "",
        "two words",
        "a\u{7}",
        "é",
        "a\n",
        &format!("{longest}C"),
    ] {
        assert_eq!(
            verdict(400, &refusal(code)),
            not_allowed("HTTP 400"),
            "{code:?}"
        );
        assert_eq!(verdict(500, &refusal(code)), failed("HTTP 500"), "{code:?}");
    }
}

#[test]
fn a_refusal_that_is_too_long_says_nothing() {
    let body = |length: usize| {
        let mut body = refusal("INVALID_ANSWER").to_string();
        body.push_str(&" ".repeat(length - body.len()));
        body
    };
    let (fits, long) = (body(MAX_REFUSAL_BYTES), body(MAX_REFUSAL_BYTES + 1));
    assert_eq!(Verdict::of(400, None, fits.as_bytes()), Verdict::Invalid);
    assert_eq!(
        Verdict::of(400, None, long.as_bytes()),
        not_allowed("HTTP 400")
    );
    let deep = "[".repeat(30_000);
    assert_eq!(
        Verdict::of(400, None, deep.as_bytes()),
        not_allowed("HTTP 400")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_body_comes_to_a_verdict_that_repeats_none_of_its_text(
        status in any::<u16>(),
        error in any_json(),
    ) {
        let body = json!({ "error": error }).to_string();
        let said = match Verdict::of(status, None, body.as_bytes()) {
            Verdict::Failed { why, .. } => why,
            Verdict::NotAllowed { code } => code,
            _ => String::new(),
        };
        prop_assert!(said.len() <= 64 + "HTTP 65535 ".len());
        prop_assert!(said.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
    }
}
