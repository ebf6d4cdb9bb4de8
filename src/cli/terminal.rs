//! What may reach a terminal: texts of others as nothing but characters that are to be seen.

use std::fmt::Write as _;

use serde_json::Value;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// Columns with two spaces between them, a line a row.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..widest).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing into a string does not fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A value in a column; null is a dash.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => plain(text),
        other => other.to_string(),
    }
}

/// A text whose characters are all to be seen: no line break, no colour, nothing that turns the
/// direction of what follows.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\'' | '"' | '\\') {
            plain.push(character);
        } else {
            plain.extend(character.escape_debug());
        }
    }
    plain
}

/// What people said, as they wrote it: their marks, joiners and emoji stay, which [`plain`] would
/// take apart. What moves the cursor, breaks the line or turns its direction is escaped.
pub(super) fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for character in text.chars() {
        if acts(character) {
            words.extend(character.escape_unicode());
        } else {
            words.push(character);
        }
    }
    words
}

/// A line of JSON that is the same JSON, without a character in it that does something.
pub(super) fn json_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for character in json.chars() {
        if acts(character) {
            // In JSON of one line such a character stands only within a string.
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(character);
        }
    }
    line
}

/// Whether a terminal might do something with it other than show it. Joiners only shape what is
/// beside them, and the tags of a flag only choose it.
fn acts(character: char) -> bool {
    if matches!(
        character,
        '\u{200c}' | '\u{200d}' | '\u{e0020}'..='\u{e007f}'
    ) {
        return false;
    }
    matches!(
        character.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::PrivateUse
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_people_stay_readable_and_do_nothing() {
        for as_it_is in [
            "plain 'é' \"\\\"",
            "\u{1f44d}\u{1f3fd} \u{1f468}\u{200d}\u{1f680} \u{2764}\u{fe0f}",
            "\u{646}\u{645}\u{6cc}\u{200c}\u{62f}\u{627}\u{646}\u{645}",
            "\u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947} e\u{301}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        ] {
            assert_eq!(words(as_it_is), as_it_is);
        }
        for (said, shown) in [
            ("a\u{1b}[2Jb", r"a\u{1b}[2Jb"),
            ("a\r\nb\u{9b}c\u{7f}", r"a\u{d}\u{a}b\u{9b}c\u{7f}"),
            (
                "\u{202e}a\u{2066}b\u{2028}c",
                r"\u{202e}a\u{2066}b\u{2028}c",
            ),
            ("\u{2029}a\u{e000}", r"\u{2029}a\u{e000}"),
        ] {
            assert_eq!(words(said), shown);
        }
    }

    #[test]
    fn json_stays_the_same_json_and_does_nothing() {
        let value = serde_json::json!({
            "a\u{202e}": ["\u{1b}[2J\n", "\u{9b}\u{7f}", "\u{f0000}", "é\u{1f44d}"],
        });
        let line = json_line(&value.to_string());
        let escaped = r#"{"a\u202e":["\u001b[2J\n","\u009b\u007f","\udb80\udc00","é"#;
        assert_eq!(line, format!("{escaped}\u{1f44d}\"]}}"));
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["A", "B", "C"], ["", "éé", ""], ["xyz", "-", "."]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(&rows), "A    B   C\n     éé\nxyz  -   .\n");
        assert_eq!(columns(&[]), "");
    }
}
