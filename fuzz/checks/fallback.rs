//! What holds for every text: without its reply fallback, and in its normal form.

use crate::reply::{is_blank, normal_form, without_fallback};

/// Takes any text.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    stripping(&text);
    normal(&text);
}

/// Whether a text begins with a line that a fallback could be made of.
fn begins_quoted(text: &str) -> bool {
    let line = text.split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.starts_with("> ") || line == ">"
}

fn stripping(text: &str) {
    let rest = without_fallback(text);
    // What is left is the end of the text, and what went is quoted lines and one blank one.
    let gone = text
        .strip_suffix(rest)
        .expect("stripping never invents text");
    let mut lines: Vec<&str> = gone.split_inclusive('\n').collect();
    if lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    assert!(lines.iter().all(|line| begins_quoted(line)), "{gone:?}");
    if !begins_quoted(text) {
        assert_eq!(rest, text, "nothing was quoted");
    } else if !begins_quoted(rest) {
        assert_eq!(without_fallback(rest), rest, "stripped twice");
    }
    // Whatever a person writes survives being quoted at, quotations of their own included.
    for fallback in [
        "> <@bot:example.org> 1. Red\n\n",
        "> a\r\n>\r\n\r\n",
        ">\n\n",
    ] {
        assert_eq!(without_fallback(&format!("{fallback}{text}")), text);
    }
    if !begins_quoted(text)
        && !text
            .split('\n')
            .next()
            .unwrap_or_default()
            .trim()
            .is_empty()
    {
        assert_eq!(without_fallback(&format!("> a\n> b\n{text}")), text);
    }
}

fn normal(text: &str) {
    let normal = normal_form(text);
    assert_eq!(normal_form(&normal), normal, "the normal form is at rest");
    assert_eq!(is_blank(text), normal.is_empty(), "{text:?} is {normal:?}");
    assert_eq!(normal.trim(), normal);
    assert!(!normal.contains("  "), "{normal:?}");
    for c in normal.chars() {
        assert!(!c.is_control(), "{normal:?}");
        assert!(c == ' ' || !c.is_whitespace(), "{normal:?}");
        let steers = matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}');
        assert!(!steers, "{normal:?}");
    }
    // What cannot be seen makes no difference.
    let veiled: String = text.chars().flat_map(|c| ['\u{200B}', c]).collect();
    assert_eq!(normal_form(&veiled), normal);
    // Nor do blanks around it, nor the kind of blanks within it.
    assert_eq!(normal_form(&format!(" \t{text}\u{3000}\n")), normal);
    assert_eq!(normal_form(&text.replace(' ', "\u{2003}\n")), normal);
    // A quotation stays one.
    assert!(normal_form(&format!("> {text}")).starts_with('>'));
}
