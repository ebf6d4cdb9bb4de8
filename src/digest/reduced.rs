//! A text as it is shown, except for who is named in it (digest.md, 5).

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::key;
use super::letters::{closes, is_arabic_punctuation, is_cjk_punctuation, opens};
use super::pieces::{Piece, What, pieces};

/// Someone named in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mention {
    /// Where it stands, in bytes.
    #[serde(rename = "a")]
    pub(super) at: u32,
    #[serde(rename = "b")]
    pub(super) len: u32,
    #[serde(rename = "h")]
    pub(super) how: How,
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_code: bool,
}

/// How someone is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum How {
    /// By an id.
    #[serde(rename = "i")]
    Id,
    /// By what is an id only if someone has it.
    #[serde(rename = "a")]
    Attached,
    /// By a name behind an at sign.
    #[serde(rename = "t")]
    Typed,
}

/// A text with its links and addresses reduced (digest.md, 5).
#[derive(Default)]
pub(super) struct Reduced {
    pub(super) text: String,
    pub(super) mentions: Vec<Mention>,
    /// Where `a link to …` stands in it, in bytes.
    pub(super) links: Vec<(u32, u32)>,
    /// Where code stands in it.
    code: Vec<Range<usize>>,
}

impl Reduced {
    /// The text that these are the parts of, reduced.
    pub(super) fn of(text: &str, pieces: &[Piece]) -> Self {
        let mut reduced = Self::default();
        // Whether the last part was a phrase of ours, which what follows must not touch.
        let mut set_off = false;
        for piece in pieces {
            let written = &text[piece.range.clone()];
            let phrase = match &piece.what {
                What::Link { site, .. } => Some(format!("a link to {site}")),
                What::Mail => Some("an email address".to_owned()),
                _ => None,
            };
            let touches = if phrase.is_some() {
                reduced.text.ends_with(touches_behind)
            } else {
                set_off && written.starts_with(touches_before)
            };
            if touches || (set_off && phrase.is_some()) {
                reduced.text.push(' ');
            }
            let start = reduced.text.len();
            match &piece.what {
                What::Id(Some(id)) => reduced.text.push_str(id),
                _ => reduced.text.push_str(phrase.as_deref().unwrap_or(written)),
            }
            set_off = phrase.is_some();
            reduced.note(piece, start);
        }
        reduced
    }

    fn note(&mut self, piece: &Piece, start: usize) {
        let end = self.text.len();
        let how = match piece.what {
            What::Id(_) => Some(How::Id),
            What::Attached => Some(How::Attached),
            What::Typed => Some(How::Typed),
            What::Link { .. } => {
                self.links.push((place(start), place(end)));
                None
            }
            What::Plain | What::Mail => None,
        };
        if let Some(how) = how {
            self.mentions.push(Mention {
                at: place(start),
                len: place(end - start),
                how,
                in_code: piece.code,
            });
        }
        if piece.code {
            self.code.push(start..end);
        }
    }

    /// A blank where code stands.
    pub(super) fn outside_code(&self) -> Cow<'_, str> {
        if self.code.is_empty() {
            return self.text.as_str().into();
        }
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for code in &self.code {
            out.push_str(&self.text[at..code.start]);
            out.push(' ');
            at = code.end;
        }
        out.push_str(&self.text[at..]);
        out.into()
    }

    /// People as [`key::PERSON`].
    pub(super) fn with_placeholders(&self) -> Cow<'_, str> {
        if self.mentions.is_empty() {
            return self.text.as_str().into();
        }
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for mention in &self.mentions {
            let start = mention.at as usize;
            out.push_str(&self.text[at..start]);
            out.push(key::PERSON);
            at = start + mention.len as usize;
        }
        out.push_str(&self.text[at..]);
        out.into()
    }
}

/// A place in a text, which Matrix keeps far below 4 GiB.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// What a phrase of ours must not follow without a blank.
fn touches_behind(c: char) -> bool {
    !(c.is_whitespace()
        || matches!(
            c,
            '(' | '[' | '{' | '<' | '>' | '"' | '\'' | '`' | '*' | '_' | '~' | '¿' | '¡'
        )
        || opens(c)
        || is_cjk_punctuation(c))
}

/// What must not follow a phrase of ours without a blank.
fn touches_before(c: char) -> bool {
    !(c.is_whitespace()
        || matches!(
            c,
            '.' | ','
                | ';'
                | ':'
                | '!'
                | '?'
                | '…'
                | ')'
                | ']'
                | '}'
                | '>'
                | '"'
                | '\''
                | '`'
                | '*'
                | '_'
                | '~'
        )
        || closes(c)
        || is_cjk_punctuation(c)
        || is_arabic_punctuation(c))
}

/// A clean name with its links reduced, and where they stand in it.
pub(super) fn reduced_name(name: &str) -> (String, Vec<Range<usize>>) {
    let reduced = Reduced::of(name, &pieces(name));
    let links = reduced
        .links
        .iter()
        .map(|&(start, end)| start as usize..end as usize);
    (reduced.text, links.collect())
}
