//! The lenient reading of what is said to the bot.
//!
//! A closed grammar. What it does not derive to the last character is no choice:
//!
//! ```text
//! reply    = courtesy* lead-in? named courtesy*
//! named    = strict | numeral | label without its marks | list
//! numeral  = "the"? ( marker n | "no." digits | ordinal | last | cardinal ) ( "one" | "option" )?
//! marker   = "option" | "number" | "choice" | "#"
//! list     = item ( joiner item )+ | number ( " " number )+          always asks
//! ```

use super::MatchedBy;
use super::option::{Named, Options, Typed, place, strict};
use super::text;

const LEAD_INS: [&str; 4] = ["i choose", "go with", "pick", "my answer is"];
const COURTESIES: [&str; 3] = ["please", "pls", "thanks"];
/// How many courtesies are taken off either end.
const MOST_COURTESIES: usize = 2;
/// A list with more joiners than this is prose, not a list of options.
const MOST_JOINERS: usize = 16;

const CARDINALS: [&str; 10] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];
const ORDINALS: [&str; 10] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
];

/// A label without its punctuation and symbols.
#[derive(Debug, Clone)]
pub(crate) struct Bare {
    /// Marks left out: `re-run` is `rerun`.
    joined: String,
    /// Marks as blanks: `re-run` is `re run`.
    spaced: String,
    /// Whether the marks carry no meaning, so that the bare text may choose.
    harmless: bool,
}

/// What a numeral says, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numeral {
    place: usize,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// With digits, `option 2` or `2nd`: counts together with ids and labels.
    Digits,
    /// In words that can only mean a place: `option two`, `second option`.
    Place,
    /// In words that may also be a name: `two`, `the second one`.
    Word,
}

/// A part of the text that may name something, courtesies and lead-in taken off.
#[derive(Clone, Copy)]
struct Phrase<'a> {
    text: &'a str,
    /// Whether `pick` led in: `pick one` leaves the choice to the reader.
    picked: bool,
}

impl Bare {
    /// `None` if the label has no marks, or nothing else.
    pub(crate) fn of(shown: &str) -> Option<Self> {
        let chars: Vec<char> = shown.chars().collect();
        if !chars.iter().any(|&c| text::is_mark(c)) {
            return None;
        }
        let form = |mark: &str| {
            let replaced: String = chars
                .iter()
                .flat_map(|&c| {
                    let kept = (!text::is_mark(c)).then_some(c);
                    kept.into_iter()
                        .chain(mark.chars().filter(move |_| kept.is_none()))
                })
                .collect();
            text::folded(&text::shown(&replaced))
        };
        let (joined, spaced) = (form(""), form(" "));
        let is_number = joined.chars().all(|c| c.is_ascii_digit() || c == ' ');
        if joined.is_empty() {
            return None;
        }
        Some(Self {
            harmless: !is_number && marks_are_harmless(&chars),
            joined,
            spaced,
        })
    }

    fn is(&self, text: &str) -> bool {
        self.joined == text || self.spaced == text
    }
}

/// Whether leaving the marks out leaves the meaning: `C++` is not C, `1.5` is
/// not 15, `A < B` is not `A > B`, `!prod` is not prod.
fn marks_are_harmless(chars: &[char]) -> bool {
    let at = |index: Option<usize>| index.and_then(|i| chars.get(i)).copied();
    let alphanumeric = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    chars.iter().enumerate().all(|(index, &mark)| {
        if !text::is_mark(mark) {
            return true;
        }
        let before = at(index.checked_sub(1));
        let after = at(Some(index + 1));
        let sign = mark == '+' || mark == '-' || is_dash(mark);
        let compares = matches!(mark, '<' | '>' | '=' | '~' | '^') || is_relation(mark);
        let inside_number = is_digit(before) && is_digit(after);
        let signs_number =
            (sign || matches!(mark, '.' | ',' | '/')) && !alphanumeric(before) && is_digit(after);
        let ends_name =
            (sign || matches!(mark, '#' | '*')) && !alphanumeric(after) && before != Some(' ');
        let negates = mark == '!' && !alphanumeric(before) && alphanumeric(after);
        !(compares
            || inside_number
            || signs_number
            || negates
            || (ends_name && before.is_some_and(|c| c.is_alphanumeric() || c == mark)))
    })
}

fn is_dash(c: char) -> bool {
    matches!(
        c,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}'
    )
}

fn is_relation(c: char) -> bool {
    matches!(c, '¬' | '±' | '×' | '÷' | '\u{2190}'..='\u{22FF}' | '\u{27C0}'..='\u{27FF}' | '\u{2900}'..='\u{2AFF}')
}

/// What the text names under the grammar; the strict reading found nothing.
pub(crate) fn read(typed: &Typed, options: &Options) -> Named {
    let phrases = phrases(typed.shown_core());
    let mut named = Named::default();
    for phrase in &phrases {
        named.add_all(&named_by(phrase, options));
    }
    if named.is_empty() {
        let lists = phrases
            .iter()
            .filter_map(|phrase| list(phrase.text, options));
        for list in lists {
            named.add_all(&list);
        }
    }
    named
}

/// The place (from 0) that a name speaks of, so that it clashes with the option there.
pub(crate) fn place_named(normal: &str, count: usize) -> Option<usize> {
    let (start, end) = text::core(normal);
    phrases(&normal[start..end]).into_iter().find_map(|phrase| {
        let text = phrase.text;
        place(text.strip_prefix('#').unwrap_or(text), count).or_else(|| {
            numeral(text, count)
                .filter(|numeral| numeral.how != How::Word)
                .map(|numeral| numeral.place)
        })
    })
}

/// One phrase: strictly, else as a numeral or a label without its marks.
fn named_by(phrase: &Phrase, options: &Options) -> Named {
    let typed = Typed::of_shown(phrase.text.to_owned());
    let mut named = strict(&typed, options);
    if !named.is_empty() {
        return named;
    }
    let spoken = typed.core();
    if let Some(numeral) = numeral(spoken, options.len())
        && !(phrase.picked && spoken == CARDINALS[0])
    {
        named.add(numeral.place, MatchedBy::Number);
        // `No. 1` may be "no", and `the second one` may be an option called Second.
        if let Some(other) = other_meaning(spoken, numeral) {
            named.add_all(&strict(&Typed::new(other), options));
        }
    }
    if let Some(index) = without_marks(spoken, options) {
        named.add(index, MatchedBy::Label);
    }
    named
}

fn other_meaning(spoken: &str, numeral: Numeral) -> Option<&str> {
    if spoken
        .strip_prefix("the ")
        .unwrap_or(spoken)
        .starts_with("no.")
    {
        return Some("no");
    }
    if numeral.how != How::Word {
        return None;
    }
    let bare = spoken.strip_prefix("the ").unwrap_or(spoken);
    Some(bare.strip_suffix(" one").unwrap_or(bare))
}

/// The one option whose label, without its marks, is this text.
fn without_marks(spoken: &str, options: &Options) -> Option<usize> {
    let unmarked: String = inner_apostrophes_removed(spoken);
    let mut found = options.entries().iter().enumerate().filter(|(_, entry)| {
        entry
            .bare
            .as_ref()
            .is_some_and(|bare| bare.is(spoken) || bare.is(&unmarked))
    });
    let (index, entry) = found.next()?;
    let alone = found.next().is_none();
    let harmless = entry.bare.as_ref().is_some_and(|bare| bare.harmless);
    (alone && harmless).then_some(index)
}

/// Keyboards write the apostrophe of `don’t` in several ways.
fn inner_apostrophes_removed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let inner = text::is_apostrophe(c)
            && out.ends_with(char::is_alphabetic)
            && chars.peek().is_some_and(|next| next.is_alphabetic());
        if !inner {
            out.push(c);
        }
    }
    out
}

/// The text with every number of courtesies and its lead-in taken off, whole first.
fn phrases(text: &str) -> Vec<Phrase<'_>> {
    let mut phrases = Vec::new();
    let mut behind = Some(text);
    for _ in 0..=MOST_COURTESIES {
        let Some(text) = behind else { break };
        let mut before = Some(text);
        for _ in 0..=MOST_COURTESIES {
            let Some(text) = before else { break };
            phrases.push(Phrase {
                text,
                picked: false,
            });
            phrases.extend(without_lead_in(text));
            before = COURTESIES
                .iter()
                .find_map(|courtesy| after_words(text, courtesy, &[' ', ',', '.', '!', ':']));
        }
        behind = COURTESIES
            .iter()
            .find_map(|courtesy| before_word(text, courtesy));
    }
    phrases
}

fn without_lead_in(text: &str) -> Option<Phrase<'_>> {
    let phrase = |text, picked| Phrase { text, picked };
    if let Some(rest) = after_words(text, "answer", &[':']) {
        return Some(phrase(rest, false));
    }
    let text = without_lets(text);
    LEAD_INS.iter().find_map(|lead_in| {
        after_words(text, lead_in, &[' ', ':']).map(|rest| phrase(rest, *lead_in == "pick"))
    })
}

/// `let's go with` as the several apostrophes write it; other words keep their `let's`.
fn without_lets(text: &str) -> &str {
    let rest = strip_word_start(text, "let").map(|rest| {
        let rest = rest.strip_prefix(text::is_apostrophe).unwrap_or(rest);
        strip_word_start(rest, "s ").unwrap_or("")
    });
    match rest {
        Some(rest) if after_words(rest, "go with", &[' ', ':']).is_some() => rest,
        _ => text,
    }
}

fn strip_word_start<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let head = text.get(..start.len())?;
    head.eq_ignore_ascii_case(start)
        .then(|| &text[start.len()..])
}

/// What follows the words, if one of `boundaries` does; its outer blanks and
/// wrapping marks gone.
fn after_words<'a>(text: &'a str, words: &str, boundaries: &[char]) -> Option<&'a str> {
    let rest = strip_word_start(text, words)?;
    let inner = rest.strip_prefix(boundaries)?;
    let (start, end) = text::core(inner);
    (start < end).then(|| &inner[start..end])
}

fn before_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let at = text.len().checked_sub(word.len())?;
    let tail = text.get(at..)?;
    let head = text.get(..at)?;
    if !tail.eq_ignore_ascii_case(word) || !head.ends_with([' ', ',']) {
        return None;
    }
    let (start, end) = text::core(head);
    (start < end).then(|| &head[start..end])
}

fn numeral(spoken: &str, count: usize) -> Option<Numeral> {
    let (the, text) = match spoken.strip_prefix("the ") {
        Some(rest) => (true, rest),
        None => (false, spoken),
    };
    if let Some(numeral) = plain_numeral(text, count) {
        // "the one" points at something said before; it does not count.
        return (!(the && text == CARDINALS[0])).then_some(numeral);
    }
    if let Some(numeral) = text
        .strip_suffix(" option")
        .and_then(|text| plain_numeral(text, count))
    {
        let how = match numeral.how {
            How::Word => How::Place,
            how => how,
        };
        return Some(Numeral { how, ..numeral });
    }
    let counted = text.strip_suffix(" one")?;
    let numeral = plain_numeral(counted, count)?;
    // Without "the", `two one` and `option 2 one` are two numbers.
    let ordinal = !ends_in_cardinal(counted);
    (the || ordinal).then_some(numeral)
}

fn ends_in_cardinal(text: &str) -> bool {
    let last = text.rsplit([' ', '.', '#']).next().unwrap_or(text);
    CARDINALS.contains(&last) || last.bytes().all(|byte| byte.is_ascii_digit())
}

fn plain_numeral(text: &str, count: usize) -> Option<Numeral> {
    let in_range = |place: usize, how| (place < count).then_some(Numeral { place, how });
    for marker in ["option ", "number ", "choice "] {
        if let Some(n) = text.strip_prefix(marker) {
            if let Some(place) = place(n.strip_prefix('#').unwrap_or(n), count) {
                return in_range(place, How::Digits);
            }
            return in_range(position(&CARDINALS, n)?, How::Place);
        }
    }
    for marker in ["no.", "#"] {
        if let Some(n) = text.strip_prefix(marker) {
            let n = n.strip_prefix(' ').unwrap_or(n);
            return in_range(place(n, count)?, How::Digits);
        }
    }
    if let Some(place) = position(&CARDINALS, text).or_else(|| position(&ORDINALS, text)) {
        return in_range(place, How::Word);
    }
    match text {
        "last" => return in_range(count.checked_sub(1)?, How::Word),
        "second to last" | "second-to-last" => {
            return in_range(count.checked_sub(2)?, How::Word);
        }
        _ => {}
    }
    in_range(ordinal_in_digits(text, count)?, How::Digits)
}

fn position(words: &[&str], text: &str) -> Option<usize> {
    words.iter().position(|&word| word == text)
}

/// `1st`, `2nd`, `3rd`, `11th`: with the ending that belongs to the number.
fn ordinal_in_digits(text: &str, count: usize) -> Option<usize> {
    let end = text.len().checked_sub(2)?;
    let (digits, ending) = (text.get(..end)?, text.get(end..)?);
    let place = place(digits, count)?;
    let number = place + 1;
    let expected = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    (ending == expected).then_some(place)
}

/// Two or more options in a row: never a choice, always a question back.
fn list(shown: &str, options: &Options) -> Option<Named> {
    let text = text::folded(shown);
    let whole = numbers(&text, options).or_else(|| {
        let text = text.strip_prefix("the ").unwrap_or(&text);
        let text = [" ones", " options"]
            .iter()
            .find_map(|ending| text.strip_suffix(ending))
            .unwrap_or(text);
        joined(text, options)
    })?;
    (whole.indexes().len() > 1).then_some(whole)
}

/// Numbers by white space: `1 2`, `#1 #3`.
fn numbers(text: &str, options: &Options) -> Option<Named> {
    let mut named = Named::default();
    for word in text.split(' ') {
        let digits = word.strip_prefix('#').unwrap_or(word);
        named.add(place(digits, options.len())?, MatchedBy::Number);
    }
    Some(named)
}

fn joined(text: &str, options: &Options) -> Option<Named> {
    let joiners = joiners(text);
    if joiners.is_empty() || joiners.len() > MOST_JOINERS {
        return None;
    }
    // `rest[i]` is what the items after joiner i name, if all of them are options. A
    // label may hold joiners itself, so an item may reach across several; from the
    // back, each is looked at once.
    let mut starts: Vec<usize> = joiners.iter().map(|&(_, end)| end).collect();
    starts.insert(0, 0);
    let mut ends: Vec<usize> = joiners.iter().map(|&(start, _)| start).collect();
    ends.push(text.len());
    let mut rest: Vec<Option<Named>> = vec![None; starts.len()];
    for from in (0..starts.len()).rev() {
        rest[from] = (from..ends.len()).rev().find_map(|to| {
            let mut named = item(text.get(starts[from]..ends[to])?, options)?;
            if to + 1 < ends.len() {
                named.add_all(rest[to + 1].as_ref()?);
            }
            Some(named)
        });
    }
    rest.swap_remove(0)
}

/// One item of a list; inside a list `the red one` may stand for red, since it cannot choose.
fn item(text: &str, options: &Options) -> Option<Named> {
    let text = text.trim();
    let plain = text.strip_prefix("the ").unwrap_or(text);
    let plain = plain.strip_suffix(" one").unwrap_or(plain);
    [text, plain].into_iter().find_map(|text| {
        let phrase = Phrase {
            text,
            picked: false,
        };
        let named = named_by(&phrase, options);
        if named.is_empty() {
            numbers(text, options)
        } else {
            Some(named)
        }
    })
}

/// Where joiners begin and end; `, or` is one.
fn joiners(text: &str) -> Vec<(usize, usize)> {
    const WORDS: [&str; 3] = [" or maybe ", " or ", " and "];
    let mut joiners: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let length = if matches!(c, ',' | '/' | '&') {
            c.len_utf8()
        } else {
            let word = WORDS.iter().find(|word| text[at..].starts_with(**word));
            word.map_or(0, |word| word.len())
        };
        if length == 0 {
            at += c.len_utf8();
            continue;
        }
        match joiners.last_mut() {
            // A comma and the word right after it.
            Some((start, end)) if *end == at && text[*start..].starts_with(',') => {
                *end = at + length;
            }
            _ => joiners.push((at, at + length)),
        }
        at += length;
    }
    joiners
}
