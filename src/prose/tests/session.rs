//! Sessions in a room: the sentences, and what no name, title or body can do to them.

use insta::{assert_json_snapshot, assert_snapshot};
use proptest::prelude::*;
use url::Url;

use super::*;
use crate::session::{EndReason, Status};

const SHOWN: Shown<'static> = Shown {
    agent: "Builder",
    title: Some("Fix the flaky test"),
    status: Status::Active,
    doing: None,
    silent: false,
    end: None,
};

/// Both forms of a message, as they go out.
fn both(content: &Value) -> String {
    let shown = content.get("m.new_content").unwrap_or(content);
    let html = shown["formatted_body"].as_str().unwrap_or("(none)");
    format!("{}\n\n[HTML]\n{html}\n", body(shown))
}

fn several(contents: &[Value]) -> String {
    contents
        .iter()
        .map(both)
        .collect::<Vec<_>>()
        .join("\n----\n")
}

#[test]
fn the_root_says_agent_title_and_status() {
    assert_json_snapshot!("session_root", session_root(&SHOWN));
    assert_json_snapshot!("session_edit", session_edit(&SHOWN));
    let mut every = String::new();
    for (status, silent, end) in [
        (Status::Active, true, None),
        (Status::AwaitingInput, false, None),
        (Status::Stopping, false, None),
        (Status::Complete, false, None),
        (Status::Error, false, None),
        (Status::Stale, false, None),
        (Status::Complete, false, Some(EndReason::Stopped)),
        (Status::Complete, false, Some(EndReason::Undelegated)),
        (Status::Complete, false, Some(EndReason::Deleted)),
    ] {
        let shown = Shown {
            status,
            silent,
            end,
            title: None,
            ..SHOWN
        };
        every.push_str(&both(&session_root(&shown)));
        every.push_str(body(&session_edit(&shown)));
        every.push_str("\n\n");
    }
    assert_snapshot!("session_statuses", every);
}

#[test]
fn what_the_agent_is_doing_is_the_last_line_while_it_is_at_it() {
    let doing = Shown {
        doing: Some("Reading `src/main.rs`\n\n1. and **more**"),
        ..SHOWN
    };
    let root = session_root(&doing);
    assert_snapshot!("session_doing", both(&root));
    for status in [
        Status::AwaitingInput,
        Status::Stopping,
        Status::Complete,
        Status::Error,
    ] {
        let root = session_root(&Shown { status, ..doing });
        assert!(!root.to_string().contains("Reading"), "{root:#}");
    }
    let ended = session_root(&Shown {
        end: Some(EndReason::Deleted),
        ..doing
    });
    assert!(!ended.to_string().contains("Reading"), "{ended:#}");
}

#[test]
fn what_the_agent_says_is_in_the_thread() {
    let said = session_message("All **green** now.\nSee [it](https://a.example/).");
    assert_json_snapshot!("session_message", said);
    assert_json_snapshot!(
        "session_message_plain",
        session_message("Done, and it is fine.")
    );
    assert_snapshot!("session_error", several(&session_error("No `cargo` here.")));
    assert_snapshot!(
        "session_unreadable",
        several(&[session_message("\u{202e}\n"), session_error(" ")].concat())
    );
}

#[test]
fn what_could_pass_for_ours_is_set_apart() {
    for body in [
        "Options:\n1. Run it\n2. Skip it",
        "**Options:**",
        "✓ Answered by Mira",
        "Done.\n\n**✓** Answered by Mira",
        "&#10003; Answered by Mira",
        "- ✓ Answered by Mira",
        "```\n1. Run it\n```",
        "\u{200B}✅ 1. Run it",
        "> hidden",
        "a\\\n— asked by the operator",
    ] {
        for content in session_message(body).iter().chain(&session_error(body)) {
            let html = content["formatted_body"].as_str().unwrap();
            let html = html
                .strip_prefix("<p>That did not work:</p>")
                .unwrap_or(html);
            assert!(
                html.starts_with("<blockquote>") && html.ends_with("</blockquote>"),
                "{html}"
            );
            let plain = super::body(content);
            let plain = plain
                .strip_prefix("That did not work:\n\n")
                .unwrap_or(plain);
            assert!(plain.lines().all(|line| line.starts_with("| ")), "{plain}");
        }
    }
}

#[test]
fn long_bodies_are_several_messages_in_order() {
    let paragraph = |n: usize| format!("Paragraph {n}. {}", "\"words\" & <more> ".repeat(40));
    let long: Vec<String> = (0..90).map(paragraph).collect();
    let long = long.join("\n\n");
    let messages = session_error(&long);
    assert!(messages.len() > 1);
    let mut seen = String::new();
    for message in &messages {
        let mut placed = message.clone();
        relate_thread(&mut placed, "$root");
        assert!(
            event_size(&placed) <= MAX_CONTENT,
            "{}",
            event_size(&placed)
        );
        assert_eq!(placed["m.relates_to"]["event_id"], json!("$root"));
        assert_eq!(message["m.mentions"], json!({}));
        assert!(message.get("formatted_body").is_some());
        seen.push_str(body(message));
        seen.push_str("\n\n");
    }
    let expected = format!("That did not work:\n\n{long}");
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&seen), words(&expected));
}

#[test]
fn an_account_is_connected_in_a_room_of_its_own() {
    let url =
        Url::parse("https://scout.acme.example:8443/connect/github?session=sess_01J9").unwrap();
    let request = connect_request("Scout", "GitHub", &url);
    assert_json_snapshot!("connect_request", request);
    assert_eq!(body(&request).matches("https://").count(), 1);
    let html = request["formatted_body"].as_str().unwrap();
    assert_eq!(html.matches("<a ").count(), 1);
    assert_json_snapshot!("connect_over", connect_over("Scout", "GitHub"));
    assert_json_snapshot!(
        "connect_asked",
        connect_asked("@mira:example.org", "Scout", "GitHub")
    );
}

#[test]
fn answers_to_the_commands_of_sessions() {
    let place = &Place {
        to: "$reply",
        thread: Some("$root"),
    };
    let calls: Vec<String> = (0..22).map(|n| format!("agent{n}")).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let notices = [
        no_session(place, "!stop"),
        session_over(place, "Builder", EndReason::Stopped),
        session_over(place, "Builder", EndReason::Undelegated),
        session_over(place, "Builder", EndReason::Deleted),
        may_not_steer(place, "Builder"),
        cannot_delegate(
            place,
            &NotDelegated::Nobody {
                command: "!delegate",
            },
        ),
        cannot_delegate(place, &NotDelegated::Same { agent: "Builder" }),
        cannot_delegate(place, &NotDelegated::NotHere { agent: "Scout" }),
        no_such_agent(place, "scuot", &["scout", "builder"]),
        no_such_agent(place, "", &calls),
        no_such_agent(place, "scout", &[]),
    ];
    assert_snapshot!("session_notices", several(&notices));
    for notice in &notices {
        assert_eq!(notice["msgtype"], json!("m.notice"));
        assert_eq!(notice["m.mentions"], json!({}));
        assert_eq!(
            notice["m.relates_to"]["m.in_reply_to"]["event_id"],
            json!("$reply")
        );
    }
}

/// Names that would rather be something else.
const HOSTILE: [&str; 9] = [
    "1. Deploy\n2. Wait",
    "✓ 1. Deploy — Mira",
    "Options:",
    "\u{202e}\u{2066}x",
    "<b>x</b> @room",
    "x · ● Working …",
    "https://evil.example/",
    "x”. Type your password here. “",
    "> x",
];

#[test]
fn no_name_or_title_is_a_list_a_tick_or_a_link() {
    let url = Url::parse("https://a.example/").unwrap();
    let place = PLACE;
    for hostile in HOSTILE {
        // What an agent is doing may well be with an address, which then leads where it says.
        let doing = hostile.replace("://", ":");
        let shown = Shown {
            agent: hostile,
            title: Some(hostile),
            doing: Some(&doing),
            ..SHOWN
        };
        for content in [
            session_root(&shown),
            session_edit(&shown),
            connect_request(hostile, hostile, &url),
            connect_over(hostile, hostile),
            connect_asked("@mira:example.org", hostile, hostile),
            session_over(place, hostile, EndReason::Stopped),
            may_not_steer(place, hostile),
            no_such_agent(place, hostile, &[hostile]),
            cannot_delegate(place, &NotDelegated::NotHere { agent: hostile }),
        ] {
            let shown = content.get("m.new_content").unwrap_or(&content);
            for form in [&content, shown] {
                let plain = body(form);
                assert!(!plain.lines().any(text::poses), "{plain}");
                assert_eq!(form["m.mentions"], json!({}));
                let html = form["formatted_body"].as_str().unwrap();
                assert!(!html.contains("<b>") && !html.contains("<li>"), "{html}");
                assert!(
                    !plain.contains("://evil") && !html.contains("://evil"),
                    "{html}"
                );
                assert!(!plain.contains("“x”. Type"), "{plain}");
            }
        }
        let root = session_root(&shown);
        let lines: Vec<&str> = body(&root).lines().collect();
        assert!(lines.len() == 3 && lines[1] == "● Working …", "{lines:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn every_message_fits_and_the_words_are_kept(
        unit in prop::sample::select(vec![
            "x", "\"", "\\", "a b\n", "a\n\n", "<&>'", "`x` ", "é", "🦀", "ש ", "```\nx y\n```\n", "\n\n1. x", "**b** ", "&lt;",
        ]),
        bytes in 0_usize..=65_536,
    ) {
        let body_text = unit.repeat(bytes / unit.len());
        for messages in [session_message(&body_text), session_error(&body_text)] {
            prop_assert!(!messages.is_empty());
            let mut seen = String::new();
            for message in &messages {
                prop_assert!(event_size(message) <= MAX_CONTENT, "{}", event_size(message));
                seen.push_str(body(message));
            }
            let kept = |text: &str| -> String {
                text.chars().filter(|&c| !c.is_whitespace() && !"|`".contains(c)).collect()
            };
            if !kept(&body_text).is_empty() {
                let seen = kept(&seen);
                let seen = seen.strip_prefix("Thatdidnotwork:").unwrap_or(&seen);
                prop_assert_eq!(seen, kept(&body_text));
            }
        }
    }
}
