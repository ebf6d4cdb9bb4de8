//! Whether a line answers a card, and so belongs to it and not to the chat (digest.md, 3).

use super::clean::{clean, without_quotation};
use super::folded::folded;
use super::letters::{EMOJI_STYLE, KEYCAP, closes, opens};

/// An option of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its id.
    pub id: String,
    /// Its label, as the card shows it.
    pub label: String,
}

/// Whether a text names an option of a card: its number (from 1), its id or its label, and nothing
/// else. Case, script, marks at the edges and the way numbers are written do not matter; words
/// beside it do. `reply` is as in [`Written`](super::Written).
pub fn answers(body: &str, reply: bool, options: &[Choice]) -> bool {
    let body = if reply { without_quotation(body) } else { body };
    let said = comparable(body);
    if said.is_empty() {
        return false;
    }
    if let Ok(number) = said.parse::<usize>()
        && (1..=options.len()).contains(&number)
    {
        return true;
    }
    options.iter().enumerate().any(|(place, option)| {
        let label = comparable(&option.label);
        let id = comparable(&option.id);
        let number = (place + 1).to_string();
        let numbered = said
            .strip_prefix(&number)
            .filter(|rest| rest.starts_with(['.', ')', ':', ' ', '-']))
            .map(comparable);
        [Some(&said), numbered.as_ref()]
            .into_iter()
            .flatten()
            .any(|said| {
                !said.is_empty() && (*said == label || *said == id || *said == id.replace('_', " "))
            })
    })
}

/// The text folded, without the marks around it.
fn comparable(text: &str) -> String {
    let shown: String = clean(text)
        .chars()
        .filter(|c| !matches!(*c, EMOJI_STYLE | KEYCAP))
        .collect();
    let folded = folded(&shown);
    let mut words = String::with_capacity(folded.len());
    for word in folded.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    let around = |c: char| {
        c == ' '
            || matches!(
                c,
                '.' | ','
                    | ';'
                    | ':'
                    | '!'
                    | '"'
                    | '\''
                    | '`'
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '*'
                    | '_'
                    | '#'
            )
            || opens(c)
            || closes(c)
    };
    words.trim_matches(around).to_owned()
}
