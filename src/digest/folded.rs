//! Texts made comparable: match text (digest.md, 6) and the folded text that keys are made of
//! (digest.md, 9).

use std::borrow::Cow;
use std::sync::LazyLock;

use icu_casemap::CaseMapper;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use super::letters::{
    EMOJI_STYLE, KEYCAP, TEXT_STYLE, ZWJ, ZWNJ, digit, is_above, is_apostrophe, is_arabic_mark,
    is_arabic_punctuation, is_cjk_punctuation, is_emoji, is_flag_tag, is_mark, is_sign, is_wordly,
    takes_style,
};

/// Arabic's lengthening stroke.
const TATWEEL: char = '\u{640}';

/// The match text of a text without its `@names` (digest.md, 6): words parted by single blanks.
pub(super) fn match_text(text: &str) -> String {
    if text.is_ascii() {
        return words(&text.to_ascii_lowercase());
    }
    words(&MATCHED.of(text))
}

/// The text as keys compare it, before its words are trimmed (digest.md, 9).
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    FOLDED.of(text)
}

static MATCHED: LazyLock<Table> = LazyLock::new(|| Table::new(matched_by_the_book));
static FOLDED: LazyLock<Table> = LazyLock::new(|| Table::new(folded_by_the_book));

/// Match text before its signs go.
fn matched_by_the_book(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    without_emoji(text, |c| {
        shown.push(match c {
            '\u{2212}' => '-',
            c if is_apostrophe(c) => '\'',
            c => c,
        });
    });
    let shown = ComposingNormalizerBorrowed::new_nfkc().normalize(&shown);
    let mut bare = String::with_capacity(shown.len());
    for c in CaseMapper::new().fold_string(&shown).chars() {
        if !is_arabic_mark(c) && c != TATWEEL {
            bare.push(digit(c).unwrap_or(c));
        }
    }
    bare
}

fn folded_by_the_book(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    without_emoji(text, |c| {
        shown.push(match c {
            '٪' => '%',
            '٫' => '.',
            '٬' => ',',
            c if is_apostrophe(c) => '\'',
            c if is_cjk_punctuation(c) || is_arabic_punctuation(c) => ' ',
            c => c,
        });
    });
    let apart = DecomposingNormalizerBorrowed::new_nfkd().normalize(&shown);
    let mut out = String::with_capacity(apart.len());
    // Whether the letter that marks follow is Latin, Greek or Cyrillic.
    let mut accented = false;
    for c in CaseMapper::new().fold_string(&apart).chars() {
        if is_arabic_mark(c) || c == TATWEEL || (accented && is_above(c)) {
            continue;
        }
        if !is_above(c) {
            accented = c.is_alphabetic() && c < '\u{530}';
        }
        out.push(digit(c).unwrap_or_else(|| of_one_shape(c)));
    }
    out
}

/// What the characters become whose neighbours do not matter: almost all that are written. A text
/// with any other is folded by the book (a test holds that both ways end alike).
struct Table {
    /// By code point.
    low: Vec<Becomes>,
    by_the_book: fn(&str) -> String,
}

/// What a character becomes by itself.
enum Becomes {
    One(char),
    Text(Box<str>),
    /// It depends on its neighbours.
    Unknown,
}

impl Table {
    /// Beyond the letters of most scripts and general punctuation.
    const END: u32 = 0x2100;
    /// Kana.
    const FROM_AGAIN: u32 = 0x3000;
    const END_AGAIN: u32 = 0x3100;

    fn new(by_the_book: fn(&str) -> String) -> Self {
        let codes = (0..Self::END).chain(Self::FROM_AGAIN..Self::END_AGAIN);
        let low = codes
            .map(|code| match char::from_u32(code) {
                Some(c) if stands_alone(c) => {
                    let text = by_the_book(c.encode_utf8(&mut [0; 4]));
                    let mut chars = text.chars();
                    match (chars.next(), chars.next()) {
                        (Some(one), None) => Becomes::One(one),
                        _ => Becomes::Text(text.into()),
                    }
                }
                _ => Becomes::Unknown,
            })
            .collect();
        Self { low, by_the_book }
    }

    fn of(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\u{4E00}'..='\u{9FFF}' => out.push(c),
                '\u{1F300}'..='\u{1FAFF}' if is_emoji(c, None) => out.push(' '),
                EMOJI_STYLE => {}
                c => match self.alone(c) {
                    Becomes::One(one) => out.push(*one),
                    Becomes::Text(text) => out.push_str(text),
                    Becomes::Unknown => return (self.by_the_book)(text),
                },
            }
        }
        out
    }

    fn alone(&self, c: char) -> &Becomes {
        let code = u32::from(c);
        let place = match code {
            0..Self::END => code,
            Self::FROM_AGAIN..Self::END_AGAIN => code - Self::FROM_AGAIN + Self::END,
            _ => return &Becomes::Unknown,
        };
        self.low.get(place as usize).unwrap_or(&Becomes::Unknown)
    }
}

/// Whether neither what is before a character nor what is behind it changes what it becomes, in a
/// composed text: no mark, no part of a syllable, nothing that is an emoji only sometimes.
fn stands_alone(c: char) -> bool {
    let composes = is_mark(c) && !is_arabic_mark(c);
    // These combine with others, or are combined with.
    let hamza_and_madda = matches!(c, '\u{653}'..='\u{655}');
    let jamo = matches!(c, '\u{1100}'..='\u{11FF}');
    !(composes || hamza_and_madda || jamo || takes_style(c) && !c.is_ascii())
}

/// The text with what stands for a word's sound alone, NFKC and case-folded, signs kept: what the
/// patterns of solicitation are looked for in.
pub(super) fn with_signs(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let shown = ComposingNormalizerBorrowed::new_nfkc().normalize(text);
    CaseMapper::new().fold_string(&shown).into_owned()
}

/// The text with plain letters for those that are only shaped otherwise (NFKC).
pub(super) fn plain_letters(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfkc().normalize(text)
}

/// Letters of Arabic writing that keyboards differ in.
fn of_one_shape(c: char) -> char {
    match c {
        'ي' | 'ى' | 'ئ' => 'ی',
        'ك' => 'ک',
        'أ' | 'إ' | 'آ' | 'ٱ' => 'ا',
        'ة' => 'ه',
        'ؤ' => 'و',
        c => c,
    }
}

/// Gives every character but emoji, which are blanks, and what only shapes characters. A keycap
/// is the digit it is made of: one vote is not another.
fn without_emoji(text: &str, mut give: impl FnMut(char)) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ZWNJ | ZWJ | EMOJI_STYLE | TEXT_STYLE | KEYCAP => {}
            c if is_flag_tag(c) || c == super::letters::END_OF_TAGS => {}
            c if is_emoji(c, chars.peek().copied()) => give(' '),
            c => give(c),
        }
    }
}

/// Lower-case text with its signs as blanks, except an apostrophe inside a word and the sign of a
/// number.
fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut last = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        let stays = match c {
            'a'..='z' | '0'..='9' => true,
            '\'' => is_wordly(last) && is_wordly(next),
            '+' | '-' => !is_wordly(last) && next.is_ascii_digit(),
            c => !(c.is_whitespace() || is_sign(c)),
        };
        if stays {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        last = c;
    }
    out.truncate(out.trim_end_matches(' ').len());
    out
}

/// Both forms as they are made where no short cut is taken.
#[cfg(test)]
pub(super) fn by_the_book(text: &str) -> (String, String) {
    (words(&matched_by_the_book(text)), folded_by_the_book(text))
}
