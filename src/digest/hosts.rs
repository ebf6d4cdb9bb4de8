//! The names of hosts in a text, and whose sites they are (digest.md, 5).

use std::borrow::Cow;

use url::Host;

use super::letters::{is_mark, is_wordly, mixes_with_ascii, scripts_part};

/// What is said of a site whose name cannot be read.
const UNKNOWN_SITE: &str = "an unknown site";

/// The longest name a host has, in bytes, as it may be written: no host's is longer than 253
/// characters (RFC 1035, 2.3.4).
const LONGEST: usize = 4 * 253;

/// Which characters part the labels of a host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dots {
    /// The full stop alone.
    Plain,
    /// What browsers take for one too, between letters that host names are written with.
    Idna,
}

/// What browsers take for the full stop of a host (UTS 46, 2.3).
pub(super) fn is_idna_dot(c: char) -> bool {
    matches!(c, '\u{3002}' | '\u{FF0E}' | '\u{FF61}')
}

/// A slash as keyboards write it: browsers take the wide one for the other within a host.
pub(super) fn is_slash(c: char) -> bool {
    matches!(c, '/' | '／')
}

/// The name of a host at the beginning of a text, without its dots and hyphens at the end.
pub(super) fn host_after(text: &str, dots: Dots) -> &str {
    let mut last = None;
    let mut end = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        let idna = dots == Dots::Idna && parts_labels(last, c, next);
        let goes_on = is_of_host(c) && last.is_none_or(|last| !scripts_part(last, c));
        if !(idna || goes_on) {
            break;
        }
        last = Some(if idna { '.' } else { c });
        end = at + c.len_utf8();
    }
    text[..end].trim_end_matches(['.', '-'])
}

/// The name of a host at the end of a text, without the marks it cannot begin with.
pub(super) fn host_before(text: &str, dots: Dots) -> &str {
    let mut next = None;
    let mut start = text.len();
    let mut chars = text.char_indices().rev().peekable();
    while let Some((at, c)) = chars.next() {
        let before = chars.peek().map(|&(_, before)| before);
        let idna = dots == Dots::Idna && parts_labels(before, c, next);
        let of_host = is_of_host(c) || c == '_';
        let goes_on = of_host && next.is_none_or(|next| !scripts_part(c, next));
        if !(idna || goes_on) {
            break;
        }
        next = Some(if idna { '.' } else { c });
        start = at;
    }
    text[start..].trim_start_matches(['.', '-', '_'])
}

fn is_of_host(c: char) -> bool {
    matches!(c, '.' | '-') || is_wordly(c) || is_mark(c)
}

/// Whether a dot between two characters parts labels: in a Chinese sentence it ends the sentence.
pub(super) fn parts_labels(before: Option<char>, dot: char, after: Option<char>) -> bool {
    is_idna_dot(dot)
        && [before, after]
            .into_iter()
            .all(|c| c.is_some_and(mixes_with_ascii))
}

/// Whether a name is one that hosts have which anyone may register: of two labels or more, under
/// a suffix that the Public Suffix List has.
pub(super) fn is_listed(name: &str) -> bool {
    if name.len() > LONGEST {
        return false;
    }
    let name = with_plain_dots(name);
    let Ok(Host::Domain(domain)) = Host::parse(&name) else {
        return false;
    };
    let domain = domain.trim_end_matches('.');
    domain.contains('.') && psl::suffix(domain.as_bytes()).is_some_and(|suffix| suffix.is_known())
}

/// The name with full stops between its labels.
pub(super) fn with_plain_dots(name: &str) -> Cow<'_, str> {
    if name.contains(is_idna_dot) {
        name.replace(is_idna_dot, ".").into()
    } else {
        name.into()
    }
}

/// The host of an authority (`user@host:port`), where it can be read: of a domain, without a dot
/// at the end.
pub(super) fn host_of(authority: &str) -> Option<Host> {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.rsplit_once(':') {
        Some((before, port)) if port.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => host,
    };
    let domain = match Host::parse(host).ok()? {
        Host::Domain(domain) => domain,
        address => return Some(address),
    };
    let domain = domain.trim_end_matches('.');
    let readable = domain.len() <= 253
        && domain
            .split('.')
            .all(|label| (1..=63).contains(&label.len()))
        && domain
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    readable.then(|| Host::Domain(domain.to_owned()))
}

/// Whose site a host is.
pub(super) fn site(host: Option<&Host>) -> String {
    match host {
        Some(Host::Domain(domain)) => psl::domain_str(domain).unwrap_or(domain).to_owned(),
        Some(address) => address.to_string(),
        None => UNKNOWN_SITE.to_owned(),
    }
}
