//! Other people's text, made harmless before it stands among ours.
//!
//! Prompts, labels and titles come from agents, names and answers from people, and
//! any of them may carry text written to deceive: a line break that begins a second
//! list, a direction override that turns a line around, markup, a link to somewhere
//! else. What these functions return can do none of that.

use std::fmt::Write as _;

use url::Url;

use crate::reply::is_blank;

/// Begins a run of text whose direction is its own and affects nothing around it.
const ISOLATE: char = '\u{2068}';
/// Ends what [`ISOLATE`] began.
const END_ISOLATE: char = '\u{2069}';

/// A text as a part of one line: breaks and runs of white space become one space,
/// other controls and those of direction are dropped (both as the reading of replies
/// has it, so that a label typed as it is shown is that label), and right-to-left
/// text is isolated so that it does not change places with what stands beside it.
pub fn line(text: &str) -> String {
    line_of(text, usize::MAX)
}

/// The same, at most `most` characters and an ellipsis long.
pub fn line_of(text: &str, most: usize) -> String {
    let mut kept = String::with_capacity(text.len());
    for word in text
        .split_whitespace()
        .map(|word| word.replace(|c: char| steers(c) || c.is_control(), ""))
        .filter(|word| !word.is_empty())
    {
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(&word);
    }
    isolated(shortened(kept, most))
}

/// A user id as a part of one line, at most the 255 characters that one may have.
pub fn user_id(text: &str) -> String {
    line_of(text, 255)
}

/// A text as lines of its own: every kind of line break breaks, blank lines at the
/// ends are dropped and runs of them become one, controls (but tabs) and those of
/// direction are dropped. Empty if nothing is left.
pub fn lines(text: &str) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for raw in text.replace("\r\n", "\n").split(breaks) {
        let clean: String = raw
            .chars()
            .filter(|&c| c == '\t' || !(steers(c) || c.is_control()))
            .collect();
        let clean = clean.trim_end();
        if !clean.is_empty() || kept.last().is_some_and(|last| !last.is_empty()) {
            kept.push(clean.to_owned());
        }
    }
    if kept.last().is_some_and(String::is_empty) {
        kept.pop();
    }
    kept
}

/// A text with its lines and their white space as they are: every kind of line break becomes one,
/// controls (but tabs) and those of direction are dropped, and so are blank lines at the ends.
pub fn cleaned(text: &str) -> String {
    let text: String = text
        .replace("\r\n", "\n")
        .chars()
        .filter_map(|c| match c {
            _ if breaks(c) => Some('\n'),
            '\t' => Some(c),
            _ if steers(c) || c.is_control() => None,
            _ => Some(c),
        })
        .collect();
    without_blank_ends(&text).to_owned()
}

/// A text without the blank lines before and after it, and the white space of its last line. How
/// far its first line is indented stays.
pub fn without_blank_ends(text: &str) -> &str {
    let text = text.trim_end();
    let begins = text.len() - text.trim_start().len();
    text.get(..begins)
        .and_then(|before| before.rfind('\n'))
        .map_or(text, |last| &text[last + 1..])
}

/// A text cut to at most `most` characters, an ellipsis in place of the rest.
pub fn shortened(mut text: String, most: usize) -> String {
    if let Some((cut, _)) = text.char_indices().nth(most) {
        text.truncate(cut);
        text.truncate(text.trim_end().len());
        text.push('…');
    }
    text
}

/// A text that shows as itself in HTML, inside an element or a quoted attribute.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

/// A link that may be shown, in its normal form (so with everything that is not
/// plain ASCII percent-encoded). `None` for a scheme other than `https`, `http` and
/// `matrix`, and for a link with a user or password in it, whose only use here is
/// to make one host look like another.
pub fn link(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let known = matches!(url.scheme(), "https" | "http" | "matrix");
    let honest = url.username().is_empty() && url.password().is_none();
    // An opaque path, as `matrix:` has, keeps spaces as they are.
    (known && honest).then(|| url.as_str().replace(' ', "%20"))
}

/// The address that clients show as a user's pill.
pub fn user_link(user_id: &str) -> String {
    let mut address = "https://matrix.to/#/".to_owned();
    for byte in user_id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

/// Whether a line of a prompt could be taken for one of ours: an item of the list,
/// its heading, an outcome, a quotation, or the line of context. Or for the quoted
/// reply (`> …`) that clients hide at the head of a message.
pub fn poses(line: &str) -> bool {
    let seen = line.trim_start_matches(|c: char| is_blank(c.encode_utf8(&mut [0; 4])));
    if seen.starts_with(['✓', '✔', '✅', '☑', '🗸', '√', '—', '|', '>']) {
        return true;
    }
    let words = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    if words.to_lowercase().starts_with("options") {
        return true;
    }
    let after = words.trim_start_matches(char::is_numeric);
    let Some(number) = words
        .strip_suffix(after)
        .filter(|number| !number.is_empty())
    else {
        return false;
    };
    // `①` and `⒈` are items without a mark, `1` is one only with it: "2 tests fail"
    // is a sentence.
    let marked = after
        .trim_start()
        .starts_with(|c: char| !c.is_alphanumeric());
    marked || !number.is_ascii()
}

fn breaks(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Embeddings, overrides, isolates, and the deprecated formatting characters: what
/// can move text other than itself. The marks of Arabic and Hebrew cannot, and stay.
pub fn steers(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}')
}

/// A text whose direction affects nothing around it.
pub fn isolated(text: String) -> String {
    if text.contains(right_to_left) {
        format!("{ISOLATE}{text}{END_ISOLATE}")
    } else {
        text
    }
}

/// The blocks that Unicode reserves for right-to-left scripts (UAX #9, table 4, R
/// and AL), and the mark that behaves like one.
fn right_to_left(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8ff}' | '\u{200f}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_break_survives_in_a_line() {
        for end in [
            "\n", "\r\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}",
        ] {
            assert_eq!(
                line(&format!("Deny{end}2. Approve")),
                "Deny 2. Approve",
                "{end:?}"
            );
        }
        assert_eq!(line(" \u{a0}a \t b\u{3000} "), "a b");
        assert_eq!(line("\0a\u{1c}b\u{7f}\u{9b}c \u{1} d"), "abc d");
        assert_eq!(lines("\0a\u{1c}b\u{1b}[2J\tc"), ["ab[2J\tc"]);
    }

    #[test]
    fn nothing_steers_what_stands_beside_it() {
        for c in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}') {
            assert_eq!(line(&format!("a{c}b")), "ab");
            assert_eq!(lines(&format!("a{c}b\nc")), ["ab", "c"]);
        }
    }

    #[test]
    fn right_to_left_text_keeps_its_place() {
        assert_eq!(line("اجرا کن"), "\u{2068}اجرا کن\u{2069}");
        assert_eq!(line("שלום\u{2069}"), "\u{2068}שלום\u{2069}");
        assert_eq!(line("Straße 東京 🏳️‍🌈"), "Straße 東京 🏳️‍🌈");
    }

    #[test]
    fn lines_break_at_every_break_and_lose_empty_ends() {
        assert_eq!(
            lines("\n\na\r\nb\u{2028}c\n\n\n\n\td \n\n"),
            ["a", "b", "c", "", "\td"].map(str::to_owned)
        );
        assert_eq!(lines(" \n\u{202e}\n"), Vec::<String>::new());
    }

    #[test]
    fn a_cleaned_text_keeps_its_white_space() {
        assert_eq!(
            cleaned("\n \r\n  a  \r\tb\u{2028}\n\n\u{1b}[2Jc\u{202e} \n"),
            "  a  \n\tb\n\n\n[2Jc"
        );
        assert_eq!(cleaned(" \n\u{202e}\u{0}"), "");
        assert_eq!(cleaned("    a"), "    a");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened("äöü".to_owned(), 3), "äöü");
        assert_eq!(shortened("äöü".to_owned(), 2), "äö…");
        assert_eq!(line_of("one two", 4), "one…");
        assert_eq!(line_of("שלום", 2), "\u{2068}של…\u{2069}");
    }

    #[test]
    fn only_web_and_matrix_links_are_shown() {
        assert_eq!(
            link("https://a.example/b?c=d").as_deref(),
            Some("https://a.example/b?c=d")
        );
        assert_eq!(
            link("HTTP://A.example").as_deref(),
            Some("http://a.example/")
        );
        assert_eq!(
            link("matrix:r/room:a.example").as_deref(),
            Some("matrix:r/room:a.example")
        );
        assert_eq!(
            link("https://a.example/\u{202e}\"><b>").as_deref(),
            Some("https://a.example/%E2%80%AE%22%3E%3Cb%3E")
        );
        for refused in [
            "javascript:alert(1)",
            "data:text/html,x",
            "ftp://a.example/",
            "file:///etc/passwd",
            "https://a.example@b.example/",
            "https://:secret@b.example/",
            "/relative",
            "not a link",
            "",
        ] {
            assert_eq!(link(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_user_link_is_wholly_encoded() {
        assert_eq!(
            user_link("@mira+1/\"x:a.example"),
            "https://matrix.to/#/%40mira%2B1%2F%22x%3Aa.example"
        );
    }

    #[test]
    fn a_prompt_line_that_looks_like_ours_is_known() {
        for ours in [
            "1. Approve",
            " 2) Deny",
            "**3.** x",
            "#4: y",
            "1️⃣ Approve",
            "① Approve",
            "⒈Approve",
            "١. نعم",
            "5 - five",
            "Options:",
            "**OPTIONS**",
            "✓ Approved by Mira",
            "✔\u{FE0F} Approved by Mira",
            "✅ 1. Approve",
            "\u{200B} ✓ Approved by Mira",
            "\u{2800}> hidden",
            "— asked by the operator",
            "> hidden",
            "| quoted",
        ] {
            assert!(poses(ours), "{ours}");
        }
        for plain in [
            "",
            "May I?",
            "2 tests fail. Merge?",
            "2nd try?",
            "The options are few",
            "- a point",
        ] {
            assert!(!poses(plain), "{plain}");
        }
    }
}
