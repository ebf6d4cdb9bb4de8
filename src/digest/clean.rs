//! Text as it is shown (digest.md, 4): NFC, one blank for white space of any kind, and nothing
//! that cannot be seen.

use std::iter::Peekable;
use std::str::Chars;

use icu_normalizer::ComposingNormalizerBorrowed;

use super::letters::{
    BLACK_FLAG, EMOJI_STYLE, END_OF_TAGS, TEXT_STYLE, ZWJ, ZWNJ, is_emoji, is_flag_tag, is_letter,
    is_mark, is_plain_letter, is_unseen, takes_style,
};

/// The text as it is shown. Cleaning a clean text changes nothing.
pub(super) fn clean(text: &str) -> String {
    if text.is_ascii() {
        return sift(text).0;
    }
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    let (kept, whole) = sift(&nfc.normalize(text));
    if whole {
        return kept;
    }
    // What went may have stood between a letter and its mark.
    match nfc.normalize(&kept) {
        std::borrow::Cow::Borrowed(_) => kept,
        std::borrow::Cow::Owned(composed) => composed,
    }
}

/// The text without the quotation that a reply begins with (digest.md, 3): leading `>` lines, and
/// one blank line after them. Whatever cannot be seen before it does not make it the reply's own.
pub(super) fn without_quotation(body: &str) -> &str {
    let seen = |c: char| !(c.is_whitespace() || is_unseen(c));
    let is_quoted = |text: &str| text.trim_start_matches(|c| !seen(c)).starts_with('>');
    let mut rest = body;
    while is_quoted(rest) {
        // The first line may be blank; the quoted one is the next that is not.
        let line = rest.find('>').unwrap_or(0);
        rest = rest[line..].split_once('\n').map_or("", |(_, after)| after);
        if !rest.split('\n').next().is_some_and(is_quoted) {
            break;
        }
    }
    if rest.len() < body.len() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if !line.contains(seen) {
            rest = after;
        }
    }
    rest
}

/// The text without what cannot be seen, and whether it had nothing of the kind but white space.
fn sift(text: &str) -> (String, bool) {
    let mut whole = true;
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    // A joiner that stays if what comes next joins too.
    let mut held = None;
    let mut last = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_ascii_graphic() || is_plain_letter(c) {
            // The short cut for almost all there is.
            if let Some(joiner) = held.take().filter(|_| !c.is_ascii()) {
                out.push(joiner);
            }
            if blank {
                out.push(' ');
                blank = false;
            }
            out.push(c);
            last = Some(c);
            continue;
        }
        if c.is_whitespace() {
            (blank, held) = (last.is_some(), None);
            continue;
        }
        match c {
            ZWNJ | ZWJ => {
                if held.is_none() && !blank && last.is_some_and(joins) {
                    held = Some(c);
                }
                whole = false;
                continue;
            }
            TEXT_STYLE | EMOJI_STYLE => {
                if held.is_none() && !blank && last.is_some_and(takes_style) {
                    out.push(c);
                    last = Some(c);
                }
                whole = false;
                continue;
            }
            _ if is_unseen(c) => {
                whole = false;
                continue;
            }
            _ => {}
        }
        if let Some(joiner) = held.take().filter(|_| joins(c)) {
            out.push(joiner);
        }
        if blank {
            out.push(' ');
            blank = false;
        }
        out.push(c);
        last = Some(c);
        if c == BLACK_FLAG {
            take_tags(&mut chars, &mut out);
        }
    }
    (out, whole)
}

/// Takes the tags of one of the flags that have some; any others are left to be sifted out.
fn take_tags(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    let mut ahead = chars.clone();
    let mut tags = 0;
    while ahead.peek().is_some_and(|&tag| is_flag_tag(tag)) {
        ahead.next();
        tags += 1;
    }
    if (3..=6).contains(&tags) && ahead.next() == Some(END_OF_TAGS) {
        out.extend(chars.take(tags + 1));
    }
}

/// What a joiner may stand beside.
fn joins(c: char) -> bool {
    !c.is_ascii() && (is_letter(c) || is_mark(c) || is_emoji(c, Some(EMOJI_STYLE)))
}
