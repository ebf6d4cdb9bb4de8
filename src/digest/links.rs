//! What a link is, where it ends, and whose it is (digest.md, 5).

use std::ops::Range;

use super::hosts::{
    Dots, host_after, host_before, host_of, is_idna_dot, is_listed, is_slash, parts_labels, site,
};
use super::invites::invites;
use super::letters::{
    closes, is_arabic_punctuation, is_cjk_punctuation, is_wordly, mixes_with_ascii,
};

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

/// The longest id, in bytes, as a link may write it: each of its bytes as three.
const LONGEST_ID: usize = 3 * 255;

/// Schemes whose links browsers open however many slashes stand behind them, and whichever.
const WEB: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// A link with a scheme, whose colon stands at `colon`. Nothing before `from` belongs to it.
pub(super) fn with_scheme(text: &str, from: usize, colon: usize) -> Option<Link> {
    let after = &text[colon + 1..];
    let run = after.len() - after.trim_start_matches(['/', '\\']).len();
    if run == 0 {
        return None;
    }
    let before = &text[from..colon];
    let head = before
        .trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'))
        .len();
    let scheme = before[head..].trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    if scheme.is_empty() {
        return None;
    }
    let start = colon - scheme.len();
    let web = WEB.iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let backslashed = after[..run].contains('\\');
    if after.starts_with("//") && !(web && backslashed) {
        let rest = colon + "://".len();
        let end = end_of(text, start, rest, Within::Host);
        if end == rest {
            return None;
        }
        let behind = &text[rest..end];
        // Browsers overlook slashes too many.
        let behind = if web {
            behind.trim_start_matches('/')
        } else {
            behind
        };
        return Some(link(start..end, behind));
    }
    if !web {
        return None;
    }
    let rest = colon + 1 + run;
    let within = if backslashed {
        Within::Backslashes
    } else {
        Within::Host
    };
    // Without both slashes it may be another thing than a link: `"https:\n"`. That is known before
    // its end is looked for.
    let host = text[rest..]
        .char_indices()
        .take_while(|&(at, c)| at < LONGEST_HOST && !ends_host(c) && !c.is_whitespace())
        .map(|(at, c)| at + c.len_utf8())
        .last()?;
    if !site(host_of(&text[rest..rest + host]).as_ref()).contains('.') {
        return None;
    }
    let end = end_of(text, start, rest, within);
    Some(link(start..end, &text[rest..end]))
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
    let end = end_of(text, start, start + 4, Within::Host);
    Some(link(start..end, &text[start..end]))
}

/// A link without a scheme, `host.tld/…`, whose first slash, wide or not, stands at `slash`. Its
/// suffix must be listed, so `src/main.rs` is none.
pub(super) fn bare(text: &str, from: usize, slash: usize) -> Option<Link> {
    let sign = text[slash..].chars().next()?;
    let before = &text[from..slash];
    let digits = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let host = match digits.strip_suffix(':') {
        Some(host) if digits.len() < before.len() => host,
        _ => before,
    };
    let host = site_before(host)?;
    // `host` is a part of `text`.
    let start = host.as_ptr() as usize - text.as_ptr() as usize;
    if is_in_path(&text[from..start]) {
        return None;
    }
    let end = end_of(text, start, slash + sign.len_utf8(), Within::Path);
    Some(link(start..end, &text[start..end]))
}

/// The name at the end of a text of a host under a listed suffix.
fn site_before(text: &str) -> Option<&str> {
    let is_site = |host: &str| host.contains(|c| c == '.' || is_idna_dot(c)) && is_listed(host);
    let host = host_before(text, Dots::Plain);
    if is_site(host) {
        return Some(host);
    }
    let before = &text[..text.len() - host.len()];
    if !before.ends_with(is_idna_dot) {
        return None;
    }
    let host = host_before(text, Dots::Idna);
    is_site(host).then_some(host)
}

/// A link without a scheme that stands right behind an at sign, at `start`: `@host.tld/…`. Nothing
/// before `from` belongs to it.
pub(super) fn behind_sign(text: &str, from: usize, start: usize) -> Option<Link> {
    if let Some(link) = with_www(text, start, start) {
        return Some(link);
    }
    let host = host_after(&text[start..], Dots::Idna);
    let mut slash = start + host.len();
    if let Some(port) = text[slash..].strip_prefix(':') {
        slash += 1 + port.len() - port.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    }
    if !text[slash..].starts_with(is_slash) || is_in_path(&text[from..start]) {
        return None;
    }
    bare(text, start, slash)
}

/// A place to clone from, `git@host:path`, whose `@` stands at `at`.
pub(super) fn of_git(text: &str, from: usize, at: usize) -> Option<Link> {
    let start = at.checked_sub("git".len()).filter(|&start| start >= from)?;
    let who = text.get(start..at)?;
    if !who.eq_ignore_ascii_case("git") || !may_begin(text, from, start) {
        return None;
    }
    let host = host_after(&text[at + 1..], Dots::Plain);
    let colon = at + 1 + host.len();
    if host.is_empty() || !text[colon..].starts_with(':') {
        return None;
    }
    let end = end_of(text, start, colon + 1, Within::Path);
    if end == colon + 1 {
        return None;
    }
    Some(Link {
        range: start..end,
        person: None,
        site: site(host_of(host).as_ref()),
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
    // What is no id is not looked at to its end: there may be one such behind the other.
    let written = &text[slash + 1..];
    let length = written
        .char_indices()
        .take_while(|&(at, c)| at <= LONGEST_ID && !ends_id(c))
        .map(|(at, c)| at + c.len_utf8())
        .last()?;
    let short = user_id(&format!("@{}", &written[..length]))?;
    let end = end_of(text, start, slash + 1, Within::Path);
    let person = user_id(&format!("@{}", &text[slash + 1..end])).unwrap_or(short);
    Some(Link {
        range: start..end,
        person: Some(person),
        site: String::new(),
        invites: false,
    })
}

/// Whether a link without a scheme may begin here: not in the middle of a word or a path.
fn may_begin(text: &str, from: usize, start: usize) -> bool {
    // What is before `from` is something else, and may touch.
    let before = without_lead(&text[from..start]);
    !before.ends_with(mixes_with_ascii) && !is_in_path(before)
}

/// The text without the marks at its end that people put before a link, and that no host begins
/// with.
fn without_lead(before: &str) -> &str {
    before.trim_end_matches(['.', '-', '_', '~', '%', '@', '＠', '﹫'])
}

/// Whether what stands behind a text goes on with a path: `dir/host.tld/…`. `//host.tld/…` leads
/// to the host.
fn is_in_path(before: &str) -> bool {
    let before = without_lead(before);
    if before.ends_with('/') {
        return before.strip_suffix("//").is_none_or(|before| {
            before.ends_with(|c| is_wordly(c) || matches!(c, '/' | ':' | '.'))
        });
    }
    before.ends_with('\\')
}

fn link(range: Range<usize>, behind: &str) -> Link {
    let authority = behind.find(ends_host).unwrap_or(behind.len());
    let (authority, rest) = behind.split_at(authority);
    let host = host_of(authority);
    let site = site(host.as_ref());
    let person = if site == MATRIX_TO {
        person_in(rest)
    } else {
        None
    };
    Link {
        range,
        person,
        site,
        invites: invites(behind, host.as_ref(), rest),
    }
}

/// What a link goes on with where it is known to go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Its host.
    Host,
    /// Its host, and backslashes instead of slashes.
    Backslashes,
    /// Its path.
    Path,
}

/// The end of the link that begins at `start` and goes on at least to `end`, within what.
fn end_of(text: &str, start: usize, end: usize, within: Within) -> usize {
    let length = length_of(&text[end..], within);
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

/// How far a link goes on at the beginning of a text, before closing marks are given back.
fn length_of(text: &str, within: Within) -> usize {
    let mut in_host = within != Within::Path;
    let mut last = None;
    for (at, c) in text.char_indices() {
        let after = &text[at + c.len_utf8()..];
        match c {
            ',' | ';' if scheme_begins(after) => return at,
            '\\' if within == Within::Backslashes => in_host = false,
            '/' | '?' | '#' | '／' | '＃' => in_host = false,
            c if is_idna_dot(c) && in_host => {
                // A host that is whole without it ends a sentence with it.
                let goes_on = parts_labels(last, c, after.chars().next());
                if !goes_on || at > LONGEST_HOST || is_listed(host_in(&text[..at])) {
                    return at;
                }
            }
            c if ends(c) => return at,
            _ => {}
        }
        last = Some(c);
    }
    text.len()
}

/// The longest that the host of a link is looked for in, in bytes, where it may be none.
const LONGEST_HOST: usize = 256;

/// What the host of a link ends with.
fn ends_host(c: char) -> bool {
    is_slash(c) || matches!(c, '\\' | '?' | '#' | '＃')
}

fn host_in(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

/// Whether a text begins with a scheme: another link, when it stands behind a comma.
fn scheme_begins(text: &str) -> bool {
    const LONGEST: usize = 32;
    let mut bytes = text.bytes().take(LONGEST);
    let scheme =
        bytes.position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-')));
    scheme.is_some_and(|end| text[end..].starts_with("://"))
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// What a part of a link that names someone ends with.
fn ends_id(c: char) -> bool {
    matches!(c, '?' | ',' | ';') || ends(c)
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

/// The user a `matrix.to` link leads to, from its path on.
fn person_in(rest: &str) -> Option<String> {
    user_id(rest.split_once("#/")?.1)
}

/// A user id as a link writes it.
pub(super) fn user_id(written: &str) -> Option<String> {
    let id = written.split('?').next().unwrap_or_default();
    let id = decoded(id.trim_end_matches('/'))?;
    let (localpart, server) = id.strip_prefix('@')?.split_once(':')?;
    let sound = !localpart.is_empty()
        && server.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && server.bytes().all(|b| b.is_ascii_graphic())
        && !id.contains(|c: char| c.is_whitespace() || c.is_control());
    sound.then_some(id)
}

/// The text with its percent-encoded bytes decoded. `None` where they are no text.
pub(super) fn decoded(text: &str) -> Option<String> {
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
