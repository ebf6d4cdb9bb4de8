//! What a link is, where it ends, and whose it is (digest.md, 5).

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use url::Host;

use super::letters::{
    closes, is_arabic_punctuation, is_cjk_punctuation, is_mark, is_wordly, mixes_with_ascii,
    scripts_part,
};
use super::lexicon;

/// What is said of a site whose name cannot be read.
const UNKNOWN_SITE: &str = "an unknown site";

/// A link in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Where it stands, in bytes.
    pub(super) range: Range<usize>,
    /// The id of the person it leads to, if it leads to one.
    pub(super) person: Option<String>,
    /// The site: a registrable domain, an address or a single label.
    pub(super) site: String,
    /// Whether it invites to a chat elsewhere (digest.md, 7.8).
    pub(super) invites: bool,
}

/// Not a link but one that opens in a Matrix client: an id written differently.
const MATRIX_TO: &str = "matrix.to";

/// A link with a scheme, whose `://` stands at `colon`. Nothing before `from` belongs to it.
pub(super) fn with_scheme(text: &str, from: usize, colon: usize) -> Option<Link> {
    let before = &text[from..colon];
    let run = before
        .trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'))
        .len();
    let scheme = before[run..].trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    if scheme.is_empty() {
        return None;
    }
    let start = colon - scheme.len();
    let rest = colon + "://".len();
    let end = end_of(text, start, rest);
    if end == rest {
        return None;
    }
    let mut behind = &text[rest..end];
    if ["http", "https", "ws", "wss", "ftp"]
        .iter()
        .any(|web| scheme.eq_ignore_ascii_case(web))
    {
        // Browsers overlook slashes too many.
        behind = behind.trim_start_matches('/');
    }
    Some(link(start..end, behind))
}

/// A link that begins with `www.`, at `start`.
pub(super) fn with_www(text: &str, from: usize, start: usize) -> Option<Link> {
    let head = text.get(start..start + 4)?;
    if !head.eq_ignore_ascii_case("www.") || !may_begin(text, from, start) {
        return None;
    }
    if !text[start + 4..].starts_with(is_wordly) {
        return None;
    }
    let end = end_of(text, start, start + 4);
    Some(link(start..end, &text[start..end]))
}

/// A link without a scheme, `host.tld/…`, whose first slash stands at `slash`. Its suffix must be
/// listed, so `src/main.rs` is none.
pub(super) fn bare(text: &str, from: usize, slash: usize) -> Option<Link> {
    let before = &text[from..slash];
    let digits = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let host = match digits.strip_suffix(':') {
        Some(host) if digits.len() < before.len() => host,
        _ => before,
    };
    let host = host_before(host);
    if !host.trim_end_matches('.').contains('.') {
        return None;
    }
    // `host` is a part of `text`.
    let start = host.as_ptr() as usize - text.as_ptr() as usize;
    let Ok(Host::Domain(domain)) = Host::parse(host) else {
        return None;
    };
    let domain = domain.trim_end_matches('.');
    let listed = psl::suffix(domain.as_bytes())
        .is_some_and(|suffix| suffix.is_known() && domain.contains('.'));
    if !listed || !may_begin(text, from, start) {
        return None;
    }
    let end = end_of(text, start, slash + 1);
    Some(link(start..end, &text[start..end]))
}

/// A place to clone from, `git@host:path`, whose `@` stands at `at`.
pub(super) fn of_git(text: &str, from: usize, at: usize) -> Option<Link> {
    let start = at.checked_sub("git".len()).filter(|&start| start >= from)?;
    let who = text.get(start..at)?;
    if !who.eq_ignore_ascii_case("git") || !may_begin(text, from, start) {
        return None;
    }
    let host = host_after(&text[at + 1..]);
    let colon = at + 1 + host.len();
    if host.is_empty() || !text[colon..].starts_with(':') {
        return None;
    }
    let end = end_of(text, start, colon + 1);
    if end == colon + 1 {
        return None;
    }
    Some(Link {
        range: start..end,
        person: None,
        site: site(host),
        invites: false,
    })
}

/// `matrix:u/name:server`, which clients open as they do a `matrix.to` link. Its slash stands at
/// `slash`.
pub(super) fn of_matrix(text: &str, from: usize, slash: usize) -> Option<Link> {
    let before = &text[from..slash];
    let head = ["matrix:u", "matrix:user"].into_iter().find(|head| {
        before
            .len()
            .checked_sub(head.len())
            .and_then(|at| before.get(at..))
            .is_some_and(|tail| tail.eq_ignore_ascii_case(head))
    })?;
    let start = slash - head.len();
    if !may_begin(text, from, start) {
        return None;
    }
    let end = end_of(text, start, slash + 1);
    let person = user_id(&format!("@{}", &text[slash + 1..end]))?;
    Some(Link {
        range: start..end,
        person: Some(person),
        site: String::new(),
        invites: false,
    })
}

/// The name of a host at the beginning of a text, without its dots and hyphens at the end.
pub(super) fn host_after(text: &str) -> &str {
    let mut last = None;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        if !is_of_host(c) || last.is_some_and(|last| scripts_part(last, c)) {
            break;
        }
        last = Some(c);
        end = at + c.len_utf8();
    }
    text[..end].trim_end_matches(['.', '-'])
}

/// The name of a host at the end of a text.
fn host_before(text: &str) -> &str {
    let mut next = None;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        if !is_of_host(c) || next.is_some_and(|next| scripts_part(c, next)) {
            break;
        }
        next = Some(c);
        start = at;
    }
    text[start..].trim_start_matches(['.', '-'])
}

fn is_of_host(c: char) -> bool {
    matches!(c, '.' | '-') || is_wordly(c) || is_mark(c)
}

/// Whether a link without a scheme may begin here: not in the middle of a word or a path.
fn may_begin(text: &str, from: usize, start: usize) -> bool {
    // What is before `from` is something else, and may touch.
    let before = &text[from..start];
    let Some(last) = before.chars().next_back() else {
        return true;
    };
    if last == '/' {
        // `//host.tld/…` leads to the host, `dir/host.tld/…` is a path.
        return before.strip_suffix("//").is_some_and(|before| {
            !before
                .chars()
                .next_back()
                .is_some_and(|c| is_wordly(c) || matches!(c, '/' | ':' | '.'))
        });
    }
    !(mixes_with_ascii(last)
        || matches!(last, '.' | '-' | '_' | '@' | '＠' | '﹫' | '\\' | '%' | '~'))
}

fn link(range: Range<usize>, behind: &str) -> Link {
    let (authority, rest) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
    let site = site(authority);
    let person = if site == MATRIX_TO {
        person_in(rest)
    } else {
        None
    };
    let bare = match behind.get(..4) {
        Some(www) if www.eq_ignore_ascii_case("www.") => &behind[4..],
        _ => behind,
    };
    Link {
        range,
        person,
        site,
        invites: INVITES.is_match(bare),
    }
}

static INVITES: LazyLock<Regex> =
    LazyLock::new(|| lexicon::pattern(&format!("^(?i:{})", lexicon::WRITTEN.invite_regex)));

/// The end of the link that begins at `start` and goes on at least to `end`.
fn end_of(text: &str, start: usize, end: usize) -> usize {
    let length = text[end..].find(ends).unwrap_or(text.len() - end);
    let mut rest = &text[end..end + length];
    let whole = &text[start..end + length];
    let mut open = [('(', ')'), ('[', ']'), ('{', '}')].map(|(open, close)| {
        let count = |c: char| whole.matches(c).count();
        (close, count(close).saturating_sub(count(open)))
    });
    let wrapping = text[..start].chars().next_back();
    while let Some(c) = rest.chars().next_back() {
        let given_back = match c {
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '…' => true,
            '*' | '_' | '~' => wrapping == Some(c),
            ')' | ']' | '}' => open
                .iter_mut()
                .find(|(close, left)| *close == c && *left > 0)
                .map(|(_, left)| *left -= 1)
                .is_some(),
            _ => closes(c),
        };
        if !given_back {
            break;
        }
        rest = &rest[..rest.len() - c.len_utf8()];
    }
    end + rest.len()
}

fn ends(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '<' | '>' | '"' | '`' | '|' | '\\' | '«' | '»' | '‹' | '›'
        )
        || is_cjk_punctuation(c)
        || is_arabic_punctuation(c)
}

/// Whose site an authority (`user@host:port`) is.
fn site(authority: &str) -> String {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.rsplit_once(':') {
        Some((before, port)) if port.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => host,
    };
    let unknown = || UNKNOWN_SITE.to_owned();
    let domain = match Host::parse(host) {
        Ok(Host::Domain(domain)) => domain,
        Ok(address) => return address.to_string(),
        Err(_) => return unknown(),
    };
    let domain = domain.trim_end_matches('.');
    let readable = domain.len() <= 253
        && domain
            .split('.')
            .all(|label| (1..=63).contains(&label.len()))
        && domain
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if !readable {
        return unknown();
    }
    psl::domain_str(domain).unwrap_or(domain).to_owned()
}

/// The user a `matrix.to` link leads to, from its path on.
fn person_in(rest: &str) -> Option<String> {
    user_id(rest.split_once("#/")?.1)
}

/// A user id as a link writes it.
fn user_id(written: &str) -> Option<String> {
    let id = written.split('?').next().unwrap_or_default();
    let id = decoded(id.trim_end_matches('/'))?;
    let (localpart, server) = id.strip_prefix('@')?.split_once(':')?;
    let sound = !localpart.is_empty()
        && server.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && !id.contains(|c: char| c.is_whitespace() || c.is_control());
    sound.then_some(id)
}

/// The text with its percent-encoded bytes decoded. `None` where they are no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        if let (b'%', [high, low, after @ ..]) = (first, after)
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            bytes.push(high << 4 | low);
            rest = after;
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}
