//! Who is named in a text (digest.md, 5): Matrix ids, e-mail addresses, `@names`.

use std::net::IpAddr;
use std::ops::Range;

use super::hosts::{Dots, host_after, is_idna_dot, is_listed, with_plain_dots};
use super::letters::{is_above, is_apostrophe, is_wordly, mixes_with_ascii, scripts_part};
use super::links::user_id;

/// A name that begins with an at sign, or an address around one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// `@name:server`.
    Id(Range<usize>),
    /// An id with its signs as links write them, `%40name%3Aserver`, and the id.
    Encoded(Range<usize>, String),
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

/// The length of the at sign that a text begins with, as keyboards or links write it.
fn sign(text: &str) -> Option<usize> {
    match text.chars().next()? {
        c if is_at(c) => Some(c.len_utf8()),
        '%' if text[1..].starts_with("40") => Some("%40".len()),
        _ => None,
    }
}

/// What is addressed by the at sign in a text, if it is one. Nothing before `from` belongs to it.
pub(super) fn address(text: &str, from: usize, at: usize) -> Option<Address> {
    let after = at + sign(&text[at..])?;
    let before = &text[from..at];
    // The whole of it is looked for only where it is an address's: there may be one sign behind
    // the other that is none's.
    let follows_word = !local_before(end_of(before)).is_empty();
    let mail = |end| {
        let local = local_before(before);
        let start = with_scheme(text, from, at - local.len());
        Some(Address::Mail(start..end))
    };
    let id = Id::after(text, after);
    if let Some(end) = id.as_ref().and_then(|id| mail_behind(text, id.end)) {
        // `x@host:mira@example.org`
        return mail(end);
    }
    if follows_word {
        let domain = mail_domain(text, after);
        let Some(end) = domain else {
            return id?.attached(text, at);
        };
        let end = mail_behind(text, end).unwrap_or(end);
        return match id {
            // `cc@mira.k:example.org`; or an address with an id's server behind it.
            Some(id) if id.is_listed(text) && end < id.end => {
                if is_listed(&text[after..end]) {
                    mail(id.end)
                } else {
                    id.attached(text, at)
                }
            }
            _ => mail(end),
        };
    }
    if let Some(id) = id {
        return match id.decoded(text, at) {
            Some(decoded) => Some(Address::Encoded(at..id.end, decoded)),
            None => Some(Address::Id(at..id.end)),
        };
    }
    if text[at..].starts_with('%') {
        return None;
    }
    let end = name(text, after)?;
    if let Some(end) = mail_behind(text, end) {
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

/// Whether the server of an id is under a listed suffix, so that it is hardly anything but an id.
pub(super) fn has_listed_server(id: &str) -> bool {
    parts(id).is_some_and(|(_, server)| is_listed(without_port(server)))
}

fn without_port(server: &str) -> &str {
    server.split(':').next().unwrap_or(server)
}

/// An id in a text, from behind its at sign on.
struct Id {
    /// Where its server begins.
    server: usize,
    end: usize,
    /// Whether its colon is written as in links.
    encoded: bool,
}

impl Id {
    /// The id whose localpart begins at `start`.
    fn after(text: &str, start: usize) -> Option<Self> {
        let rest = &text[start..];
        let mut colon = None;
        for (at, c) in rest.char_indices().take_while(|&(at, _)| at < LONGEST_ID) {
            match c {
                ':' => colon = Some((at, false)),
                '%' if is_encoded_colon(&rest[at..]) => colon = Some((at, true)),
                c if ends_localpart(c) || sign(&rest[at..]).is_some() => return None,
                _ => continue,
            }
            break;
        }
        let (at, encoded) = colon.filter(|&(at, _)| at > 0)?;
        let start_of_server = start + at + if encoded { "%3A".len() } else { 1 };
        let length = server(&text[start_of_server..]);
        let end = start_of_server + length;
        (length > 0 && end - start < LONGEST_ID).then_some(Self {
            server: start_of_server,
            end,
            encoded,
        })
    }

    fn is_listed(&self, text: &str) -> bool {
        is_listed(without_port(&text[self.server..self.end]))
    }

    /// The id that it is where it is not one as it is written. `at` is where its at sign stands.
    fn decoded(&self, text: &str, at: usize) -> Option<String> {
        let written = &text[at..self.end];
        let encoded = self.encoded || written.starts_with('%');
        let localpart = &written[sign(written)?..];
        encoded.then(|| user_id(&format!("@{localpart}"))).flatten()
    }

    /// What it is right behind a word.
    fn attached(self, text: &str, at: usize) -> Option<Address> {
        match self.decoded(text, at) {
            Some(decoded) => self
                .is_listed(text)
                .then_some(Address::Encoded(at..self.end, decoded)),
            None if text[at..].starts_with('%') || self.encoded => None,
            None => Some(Address::Attached(at..self.end)),
        }
    }
}

/// No id is longer, in bytes (Matrix specification, "User identifiers").
const LONGEST_ID: usize = 255;

fn is_encoded_colon(text: &str) -> bool {
    text.get(.."%3A".len())
        .is_some_and(|head| head.eq_ignore_ascii_case("%3A"))
}

fn ends_localpart(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '`' | '<' | '>' | '"' | '|' | '\\' | '(' | ')' | ',' | ';' | '?' | '!'
        )
}

/// The most characters before the `@` of an e-mail address (RFC 5321, 4.5.3.1.1), and two quotes.
const LONGEST_LOCAL: usize = 66;

/// What stands before the `@` of an e-mail address.
fn local_before(before: &str) -> &str {
    let opening = match before.chars().next_back() {
        Some('"') => Some('"'),
        Some('}') => Some('{'),
        _ => None,
    };
    if let Some(opening) = opening {
        // `"Mira K"@…`, `{mira}@…`
        let mut inner = before.char_indices().rev().skip(1).take(LONGEST_LOCAL);
        let start = inner
            .find(|&(_, c)| c == opening || (opening == '{' && c == ' '))
            .filter(|&(_, c)| c == opening);
        return start.map_or("", |(start, _)| &before[start..]);
    }
    // These are marks in a sentence too, but not right before the sign.
    let marks = |c: char| matches!(c, '!' | '#' | '$' | '&' | '*' | '^' | '~') || is_apostrophe(c);
    let local = before.trim_end_matches(marks).trim_end_matches(|c: char| {
        mixes_with_ascii(c)
            || is_above(c)
            || is_apostrophe(c)
            || is_idna_full_stop(c)
            || matches!(c, '.' | '_' | '%' | '+' | '-')
    });
    let local = before[local.len()..]
        .trim_start_matches(|c| c == '.' || is_apostrophe(c) || is_idna_full_stop(c));
    if local.ends_with('.') || !local.contains(is_wordly) {
        return "";
    }
    local
}

/// The full stop of wide letters, which ends no sentence.
fn is_idna_full_stop(c: char) -> bool {
    c == '\u{FF0E}'
}

/// As much of the end of a text as such a name has.
fn end_of(before: &str) -> &str {
    let start = before.char_indices().rev().nth(LONGEST_LOCAL);
    &before[start.map_or(0, |(at, _)| at)..]
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

/// The end of the e-mail domain that stands with its at sign at `end`, unless the sign begins an
/// id.
fn mail_behind(text: &str, end: usize) -> Option<usize> {
    let after = end + sign(&text[end..])?;
    let id = Id::after(text, after).filter(|id| id.is_listed(text));
    mail_domain(text, after).filter(|_| id.is_none())
}

/// The end of an e-mail address's domain.
fn mail_domain(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start..];
    if let Some(inner) = rest.strip_prefix('[') {
        // `mira@[192.0.2.1]`; no literal is longer than `IPv6:` and eight groups.
        let close = inner.bytes().take(64).position(|b| b == b']')?;
        let address = &inner[..close];
        let address = address.strip_prefix("IPv6:").unwrap_or(address);
        address.parse::<IpAddr>().ok()?;
        return Some(start + close + 2);
    }
    let domain = host_after(rest, Dots::Plain);
    if is_mail_domain(domain) {
        return Some(start + domain.len());
    }
    if rest[domain.len()..].starts_with(is_idna_dot) {
        let domain = host_after(rest, Dots::Idna);
        let plain = with_plain_dots(domain);
        return (is_mail_domain(&plain) && is_listed(&plain)).then_some(start + domain.len());
    }
    // What somebody put behind an address does not make it none: `mira@example.org.1`.
    let mut shorter = domain;
    for _ in 0..MOST_LABELS_BEHIND {
        shorter = shorter.rsplit_once('.')?.0;
        if is_mail_domain(shorter) && is_listed(shorter) {
            return Some(start + shorter.len());
        }
    }
    None
}

/// How many labels are overlooked behind the domain of an address.
const MOST_LABELS_BEHIND: usize = 8;

/// Whether a name is a domain that addresses have: its last label is letters, so `4.17.21` is
/// none.
fn is_mail_domain(domain: &str) -> bool {
    let Some((name, top)) = domain.rsplit_once('.') else {
        return false;
    };
    let is_letter = |c: char| !c.is_ascii_digit() && c != '-';
    let punycode = top.get(..4).map(|head| head.eq_ignore_ascii_case("xn--"));
    // What somebody put behind an address does not make it none: `mira@example.org1`. What begins
    // with a digit is the version of something.
    let begins_lettered =
        top.chars().take(2).all(is_letter) && !domain.starts_with(|c: char| c.is_ascii_digit());
    let lettered = top.chars().count() >= 2
        && (top.chars().all(is_letter) || begins_lettered || punycode == Some(true));
    lettered && name.starts_with(is_wordly)
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
