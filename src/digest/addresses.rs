//! Who is named in a text (digest.md, 5): Matrix ids, e-mail addresses, `@names`.

use std::ops::Range;

use super::letters::{is_above, is_wordly, mixes_with_ascii, scripts_part};
use super::links::host_after;

/// A name that begins with an at sign, or an address around one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// `@name:server`.
    Id(Range<usize>),
    /// `@name:server` right behind a word, so maybe something else: `image@sha256:1f2e`.
    Attached(Range<usize>),
    /// `@name`.
    Typed(Range<usize>),
    /// An e-mail address.
    Mail(Range<usize>),
}

/// The sign that addresses are made with, as keyboards write it.
pub(super) fn is_at(c: char) -> bool {
    matches!(c, '@' | '＠' | '﹫')
}

/// What is addressed by the at sign in a text, if it is one. Nothing before `from` belongs to it.
pub(super) fn address(text: &str, from: usize, at: usize) -> Option<Address> {
    let sign = text[at..].chars().next()?;
    let after = at + sign.len_utf8();
    let local = local_before(&text[from..at]);
    if !local.is_empty() {
        if let Some(end) = mail_domain(text, after) {
            let start = at - local.len();
            return Some(Address::Mail(with_scheme(text, from, start)..end));
        }
        return id(text, after).map(|end| Address::Attached(at..end));
    }
    if let Some(end) = id(text, after) {
        return Some(Address::Id(at..end));
    }
    let end = name(text, after)?;
    let follows = text[end..].chars().next();
    if let Some(sign) = follows.filter(|&c| is_at(c))
        && let Some(end) = mail_domain(text, end + sign.len_utf8())
    {
        // `@name@server`, as other networks write addresses.
        return Some(Address::Mail(at..end));
    }
    Some(Address::Typed(at..end))
}

/// The name and the server of an id that is one on its face.
pub(super) fn parts(id: &str) -> Option<(&str, &str)> {
    let sign = id.chars().next().filter(|&c| is_at(c))?;
    id[sign.len_utf8()..].split_once(':')
}

/// Whether a text holds a Matrix id or an e-mail address.
pub(super) fn holds_any(text: &str) -> bool {
    let mut from = 0;
    for (at, _) in text.char_indices().filter(|&(_, c)| is_at(c)) {
        if at < from {
            continue;
        }
        match address(text, from, at) {
            Some(Address::Id(_) | Address::Attached(_) | Address::Mail(_)) => return true,
            Some(Address::Typed(range)) => from = range.end,
            None => {}
        }
    }
    false
}

/// What stands before the `@` of an e-mail address.
fn local_before(before: &str) -> &str {
    let local = before.trim_end_matches(|c: char| {
        mixes_with_ascii(c) || is_above(c) || matches!(c, '.' | '_' | '%' | '+' | '-')
    });
    let local = before[local.len()..].trim_start_matches('.');
    if local.ends_with('.') || !local.contains(is_wordly) {
        return "";
    }
    local
}

fn with_scheme(text: &str, from: usize, start: usize) -> usize {
    let before = &text[from..start];
    let scheme = "mailto:";
    before
        .len()
        .checked_sub(scheme.len())
        .filter(|&at| {
            before
                .get(at..)
                .is_some_and(|tail| tail.eq_ignore_ascii_case(scheme))
        })
        .map_or(start, |at| from + at)
}

/// The end of an e-mail address's domain. Its last label is letters, so `lodash@4.17.21` has none.
fn mail_domain(text: &str, start: usize) -> Option<usize> {
    let domain = host_after(&text[start..]);
    let (name, top) = domain.rsplit_once('.')?;
    let is_letter = |c: char| !c.is_ascii_digit() && c != '-';
    let punycode = top.get(..4).map(|head| head.eq_ignore_ascii_case("xn--"));
    // What somebody put behind an address does not make it none: `mira@example.org1`. What begins
    // with a digit is the version of something.
    let begins_lettered =
        top.chars().take(2).all(is_letter) && !domain.starts_with(|c: char| c.is_ascii_digit());
    let lettered = top.chars().count() >= 2
        && (top.chars().all(is_letter) || begins_lettered || punycode == Some(true));
    (lettered && name.starts_with(is_wordly)).then_some(start + domain.len())
}

/// The end of the id whose localpart begins at `start`.
fn id(text: &str, start: usize) -> Option<usize> {
    let length = text[start..].find(|c: char| {
        c.is_whitespace()
            || is_at(c)
            || matches!(
                c,
                ':' | '`' | '<' | '>' | '"' | '|' | '\\' | '(' | ')' | ',' | ';' | '?' | '!'
            )
    })?;
    let colon = start + length;
    if length == 0 || !text[colon..].starts_with(':') {
        return None;
    }
    let server = server(&text[colon + 1..]);
    let end = colon + 1 + server;
    (server > 0 && end - start < 255).then_some(end)
}

/// How long the name of a server is at the beginning of a text.
fn server(text: &str) -> usize {
    let host = if let Some(inner) = text.strip_prefix('[') {
        let after =
            inner.trim_start_matches(|c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.'));
        if !after.starts_with(']') {
            return 0;
        }
        text.len() - after.len() + 1
    } else {
        let end = text
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-')))
            .unwrap_or(text.len());
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return 0;
        }
        text[..end].trim_end_matches(['.', '-']).len()
    };
    let port = text[host..].strip_prefix(':').map_or(0, |port| {
        port.len() - port.trim_start_matches(|c: char| c.is_ascii_digit()).len()
    });
    if (1..=5).contains(&port) {
        host + 1 + port
    } else {
        host
    }
}

/// The end of the name that begins at `start`: letters, digits and `_`, with single `.` and `-`
/// within.
fn name(text: &str, start: usize) -> Option<usize> {
    let of_name = |c: char| c == '_' || is_wordly(c) || is_above(c);
    let mut end = start;
    let mut last: Option<char> = None;
    let mut chars = text[start..].chars().peekable();
    while let Some(c) = chars.next() {
        let inner = matches!(c, '.' | '-')
            && last.is_some_and(of_name)
            && chars.peek().is_some_and(|&next| of_name(next));
        if !(of_name(c) || inner) || last.is_some_and(|last| scripts_part(last, c)) {
            break;
        }
        end += c.len_utf8();
        last = Some(c);
    }
    // A script may have parted right behind the inner mark.
    let end = start + text[start..end].trim_end_matches(['.', '-']).len();
    (end > start).then_some(end)
}
