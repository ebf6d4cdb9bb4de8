//! Whether a message is said to an agent: `scout: look at the flaky test`.

use super::text;

/// How much longer a call may be written than it is: capitals and composed characters may take
/// several times the room, and invisible ones come on top.
const ROOM: usize = 4;

/// The agent that a message addresses by what it is called, as its place in `calls`, and what is
/// said to it.
///
/// The call is followed by `:` or `,`, in any case, with or without an `@`: `scout look` is talk
/// about it, and `@scout:example.org` is somebody else. Of several calls that fit, the longest.
/// `None` where nothing is said.
pub fn addressed<'a>(body: &'a str, calls: &[&str]) -> Option<(usize, &'a str)> {
    let text = text::trim_unseen_start(body);
    let (text, as_id) = match text.strip_prefix('@') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let longest = calls.iter().map(|call| call.len()).max()?;
    let farthest = longest.saturating_add(1).saturating_mul(ROOM);
    // Most messages have no mark this early, and this is asked of every one.
    let mut found = None;
    for (at, mark) in text.char_indices() {
        if at > farthest || matches!(mark, '\n' | '\r') {
            break;
        }
        if !matches!(mark, ':' | ',') {
            continue;
        }
        let rest = &text[at + mark.len_utf8()..];
        let is_user_id = as_id && mark == ':' && rest.starts_with(|c: char| !c.is_whitespace());
        if is_user_id {
            continue;
        }
        let written = normal(&text[..at]);
        let index = calls
            .iter()
            .position(|call| !written.is_empty() && normal(call) == written);
        if let Some(index) = index {
            // What joins characters at the end, as in an emoji, is part of what is said.
            found = Some((index, text::trim_unseen_start(rest).trim_end()));
        }
    }
    found.filter(|(_, rest)| !text::is_blank(rest))
}

fn normal(text: &str) -> String {
    text::folded(&text::shown(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CALLS: [&str; 4] = ["scout", "Builder", "straße", "a:b"];

    fn said(body: &str) -> Option<(usize, &str)> {
        addressed(body, &CALLS)
    }

    #[test]
    fn an_agent_is_addressed_by_its_call_and_a_mark() {
        assert_eq!(said("scout: look at it"), Some((0, "look at it")));
        assert_eq!(said("@scout, look"), Some((0, "look")));
        assert_eq!(said("  Scout:look\n\nat it \n"), Some((0, "look\n\nat it")));
        assert_eq!(said("SCOUT : look"), Some((0, "look")));
        assert_eq!(said("@scout: look"), Some((0, "look")));
        assert_eq!(said("builder, scout: look"), Some((1, "scout: look")));
        assert_eq!(said("scout: 2"), Some((0, "2")));
        assert_eq!(said("scout: ❤\u{FE0F} "), Some((0, "❤\u{FE0F}")));
    }

    #[test]
    fn a_call_is_compared_as_replies_are() {
        assert_eq!(said("STRASSE: los"), Some((2, "los")));
        assert_eq!(said("ｓｃｏｕｔ: x"), Some((0, "x")));
        assert_eq!(said("s\u{200B}cout\u{FE0F}: x"), Some((0, "x")));
        assert_eq!(said("\u{200F}scout: x"), Some((0, "x")));
        let spread = "s\u{200B}c\u{200B}o\u{200B}u\u{200B}t";
        assert_eq!(said(&format!("{spread}: x")), Some((0, "x")));
    }

    #[test]
    fn talk_about_an_agent_is_talk() {
        for body in [
            "scout look at it",
            "scout",
            "scout - look",
            "scout; look",
            "scouting: look",
            "my scout: look",
            "ask scout: look",
            "look, scout: now",
            "scout\n: look",
            "@scout:example.org look",
            "@scout:example.org: look",
            "@@scout: look",
            "> scout: look",
            ": look",
            "",
        ] {
            assert_eq!(said(body), None, "{body}");
        }
        assert_eq!(addressed("scout: look", &[]), None);
        assert_eq!(addressed(": look", &["", "\u{200B}"]), None);
    }

    #[test]
    fn nothing_said_is_nobody_addressed() {
        for body in ["scout:", "scout: ", "@scout,\n \u{200B}", "scout:\u{3164}"] {
            assert_eq!(said(body), None, "{body:?}");
        }
    }

    #[test]
    fn the_longest_call_that_fits_is_meant() {
        assert_eq!(said("a:b: x"), Some((3, "x")));
        let calls = ["a", "a:b"];
        assert_eq!(addressed("a:b: x", &calls), Some((1, "x")));
        assert_eq!(addressed("a:b x", &calls), Some((0, "b x")));
        assert_eq!(addressed("A: b: x", &calls), Some((0, "b: x")));
        // The longer one has nothing said to it: then the shorter one does not either.
        assert_eq!(addressed("a:b:", &calls), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_said_is_the_end_of_the_message(
            before in "[@ \u{200B}]{0,2}", call in "[a-zß:,]{1,6}", mark in "[:, ]{0,2}", rest in any::<String>(),
        ) {
            let body = format!("{before}{call}{mark}{rest}");
            if let Some((index, said)) = addressed(&body, &[&call, "scout"]) {
                prop_assert!(index < 2 && !text::is_blank(said));
                prop_assert!(body.trim_end().ends_with(said));
            }
            let plain = format!("{call}: x{rest}");
            // A call that ends in a mark of its own, or has one, may be read in more ways than one.
            if !call.contains([':', ',']) {
                let said = text::trim_unseen_start(&plain[call.len() + 1..]).trim_end();
                prop_assert_eq!(addressed(&plain, &[&call]), Some((0, said)));
            }
        }
    }
}
