//! A clean text taken apart (digest.md, 5): plain words, links, people, addresses, code.

use std::ops::Range;

use super::addresses::{self, Address, is_at};
use super::code;
use super::hosts::is_slash;
use super::links::{self, Link};

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it stands, in bytes.
    pub(super) range: Range<usize>,
    /// What it is.
    pub(super) what: What,
    /// Whether it stands in code.
    pub(super) code: bool,
}

/// What a part of a text is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Nothing but words.
    Plain,
    /// A link: whose site it is, and whether it invites to a chat elsewhere.
    Link { site: String, invites: bool },
    /// A person's id, as written in the text; or what it is, where a link writes it.
    Id(Option<String>),
    /// What may be a person's id.
    Attached,
    /// `@name`.
    Typed,
    /// An e-mail address.
    Mail,
}

impl What {
    /// Whether it is what nobody is to be reached by: an id, or an e-mail address.
    pub(super) fn reaches_someone(&self) -> bool {
        matches!(self, Self::Id(_) | Self::Attached | Self::Mail)
    }
}

/// The parts of a clean text: all of it, in order.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let whole = Piece {
        range: 0..text.len(),
        what: What::Plain,
        code: false,
    };
    if !may_hold_any(text) {
        return vec![whole];
    }
    let code = code::spans(text);
    let mut pieces = Vec::new();
    let mut at = 0;
    for (range, what) in found(text) {
        plain(&mut pieces, at..range.start, &code);
        at = range.end;
        // Nothing found holds a backtick, so it is in code wholly or not at all.
        let next = code.partition_point(|span| span.end <= range.start);
        let code = code
            .get(next)
            .is_some_and(|span| span.contains(&range.start));
        pieces.push(Piece { range, what, code });
    }
    plain(&mut pieces, at..text.len(), &code);
    pieces
}

/// The short cut: most texts have nothing to be found.
fn may_hold_any(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(at, b)| match b {
        // 0xEF begins the at signs of other widths.
        b'@' | b'/' | b'\\' | b'`' | 0xEF => true,
        b'%' => bytes[at + 1..].starts_with(b"40"),
        b'w' | b'W' => bytes[at..]
            .get(..4)
            .is_some_and(|four| four.eq_ignore_ascii_case(b"www.")),
        _ => false,
    })
}

fn found(text: &str) -> Vec<(Range<usize>, What)> {
    let mut found = Vec::new();
    let mut from = 0;
    for (at, c) in text.char_indices() {
        if at < from {
            continue;
        }
        let hit = match c {
            ':' => links::with_scheme(text, from, at).map(of_link),
            c if is_slash(c) => links::bare(text, from, at)
                .or_else(|| links::of_matrix(text, from, at))
                .map(of_link),
            'w' | 'W' => links::with_www(text, from, at).map(of_link),
            '@' => links::of_git(text, from, at)
                .map(of_link)
                .or_else(|| addressed(text, from, at)),
            '%' => addressed(text, from, at),
            c if is_at(c) => addressed(text, from, at),
            _ => None,
        };
        if let Some((range, what)) = hit {
            from = range.end;
            found.push((range, what));
        }
    }
    found
}

/// What is addressed by an at sign, or the link right behind it.
fn addressed(text: &str, from: usize, at: usize) -> Option<(Range<usize>, What)> {
    let address = addresses::address(text, from, at);
    if let None | Some(Address::Typed(_)) = address {
        let sign = text[at..].chars().next().filter(|&c| is_at(c))?;
        let link = links::behind_sign(text, from, at + sign.len_utf8());
        if let Some(link) = link {
            return Some(of_link(link));
        }
    }
    address.map(of_address)
}

fn of_link(link: Link) -> (Range<usize>, What) {
    let what = match link.person {
        Some(id) => What::Id(Some(id)),
        None => What::Link {
            site: link.site,
            invites: link.invites,
        },
    };
    (link.range, what)
}

fn of_address(address: Address) -> (Range<usize>, What) {
    match address {
        Address::Id(range) => (range, What::Id(None)),
        Address::Encoded(range, id) => (range, What::Id(Some(id))),
        Address::Attached(range) => (range, What::Attached),
        Address::Typed(range) => (range, What::Typed),
        Address::Mail(range) => (range, What::Mail),
    }
}

/// Adds a stretch of words, code and the rest apart.
fn plain(pieces: &mut Vec<Piece>, stretch: Range<usize>, code: &[Range<usize>]) {
    let mut at = stretch.start;
    let mut add = |range: Range<usize>, code| {
        if !range.is_empty() {
            pieces.push(Piece {
                range,
                what: What::Plain,
                code,
            });
        }
    };
    let first = code.partition_point(|span| span.end <= at);
    for span in &code[first..] {
        if stretch.end <= span.start {
            break;
        }
        let inside = span.start.max(at)..span.end.min(stretch.end);
        add(at..inside.start, false);
        at = inside.end;
        add(inside, true);
    }
    add(at..stretch.end, false);
}
