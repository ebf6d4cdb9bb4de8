//! The digest: lines that say the same grouped, ordered, and as many taken as there is room for
//! (digest.md, 9 and 10).

use std::cmp::{Ordering, Reverse};

use super::crowd_spam;
use super::cut::{cut, length};
use super::key::Key;
use super::names::display_name;
use super::people::People;
use super::{
    Digest, Dropped, Item, Kind, LONGEST_WHAT, Line, MOST_CHARS, MOST_ITEMS, Reason, Settings,
    Window,
};
use crate::clock::Millis;

/// A line that someone said who may be in the digest.
///
/// What is asked of all lines is here, side by side: a hundred thousand of them are sorted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    pub(super) key: Key,
    pub(super) stamp: Millis,
    /// By place among the people.
    pub(super) person: u32,
    /// By place among the lines.
    pub(super) line: u32,
    pub(super) sent_at: Millis,
    pub(super) only_links: bool,
    kind: Kind,
    has_votes: bool,
    /// Whether it is a greeting; `None` until that is asked for.
    greets: Option<bool>,
    /// Why it is not in the digest.
    pub(super) dropped: Option<Reason>,
}

impl Said {
    pub(super) fn line<'w, 'a>(&self, lines: &'w [Line<'a>]) -> &'w Line<'a> {
        // It was made from a line that is there.
        &lines[self.line as usize]
    }
}

/// Everyone who said one thing, and everyone who wants it.
struct Group {
    /// The earliest line of it.
    first: Said,
    kind: Kind,
    repeated: u32,
    upvotes: u32,
}

/// What the room said in the window (digest.md, 2 and 7 to 11).
///
/// The same for the same window in whatever order its people, lines and votes are given.
pub fn digest(window: &Window<'_>, settings: &Settings) -> Digest {
    let people = People::new(window.people, settings, window.until);
    let lines = &window.lines;
    let mut dropped = Dropped::default();
    let mut said = said(window, &people, &mut dropped);
    said.sort_unstable_by(|a, b| {
        if a.key.0 == b.key.0 {
            a.person.cmp(&b.person)
        } else {
            a.key.0.cmp(&b.key.0)
        }
    });
    crowd_spam::mark(&mut said, people.count());
    for said in &mut said {
        let greets = || {
            said.greets
                .unwrap_or_else(|| said.line(lines).prepared.greets(&people))
        };
        if said.dropped.is_none() && greets() {
            said.dropped = Some(Reason::Greeting);
        }
        if let Some(reason) = said.dropped {
            dropped.count(reason);
        }
    }

    let mut groups: Vec<Group> = said
        .chunk_by(|a, b| a.key == b.key)
        .filter_map(|all| group(all, lines, &people))
        .collect();
    let found = groups.len();
    first_few(&mut groups, lines);
    let mut items = Vec::new();
    let mut chars = 0;
    for group in &groups {
        let item = item(group, lines, &people);
        let more = [&item.what, &item.display_name, &item.handle].map(|text| length(text));
        let with_it = chars + more.iter().sum::<u32>();
        if with_it > MOST_CHARS {
            break;
        }
        chars = with_it;
        items.push(item);
    }
    Digest {
        truncated: items.len() < found,
        items,
        chars,
        dropped,
    }
}

/// What is said inside the window by those who may be in the digest.
fn said(window: &Window<'_>, people: &People<'_>, dropped: &mut Dropped) -> Vec<Said> {
    let mut said = Vec::with_capacity(window.lines.len());
    // Places fit: nobody has four thousand million lines in memory.
    for (place, line) in (0u32..).zip(&window.lines) {
        let begun = window.since.is_none_or(|since| since <= line.stamp);
        if !begun || window.until <= line.stamp {
            continue;
        }
        let Some(person) = people.eligible(line.sender) else {
            dropped.count(Reason::Excluded);
            continue;
        };
        said.push(Said {
            key: line.prepared.key(people),
            stamp: line.stamp,
            person,
            line: place,
            kind: line.prepared.kind(),
            has_votes: !line.votes.is_empty(),
            sent_at: line.sent_at.unwrap_or(line.stamp),
            only_links: line.prepared.is_only_links(),
            greets: line.prepared.greets_anyone(),
            dropped: line
                .prepared
                .spam()
                .or_else(|| crowd_spam::mentions_many(line, people).then_some(Reason::Mentions)),
        });
    }
    said
}

/// Those of one key that are left, if any are.
fn group(all: &[Said], lines: &[Line<'_>], people: &People<'_>) -> Option<Group> {
    let left = || all.iter().filter(|said| said.dropped.is_none());
    let first = *left().min_by(|a, b| in_time(a, b, lines))?;
    let kind = left()
        .map(|said| said.kind)
        .min_by_key(|&kind| rank(kind))?;
    // `all` is ordered by person.
    let mut repeated = 0;
    let mut last = None;
    for said in left() {
        repeated += u32::from(last != Some(said.person));
        last = Some(said.person);
    }
    let mut voters: Vec<u32> = left()
        .filter(|said| said.has_votes)
        .flat_map(|said| said.line(lines).votes)
        .filter_map(|user| people.eligible(user))
        // Whoever said it has said so already, even in lines that were dropped.
        .filter(|person| {
            all.binary_search_by_key(person, |said| said.person)
                .is_err()
        })
        .collect();
    voters.sort_unstable();
    voters.dedup();
    Some(Group {
        first,
        kind,
        repeated,
        upvotes: u32::try_from(voters.len()).unwrap_or(u32::MAX),
    })
}

/// Which line was first.
fn in_time(a: &Said, b: &Said, lines: &[Line<'_>]) -> Ordering {
    a.stamp
        .cmp(&b.stamp)
        .then_with(|| a.line(lines).event_id.cmp(b.line(lines).event_id))
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Question => 0,
        Kind::Suggestion => 1,
        Kind::Reaction => 2,
    }
}

/// Leaves the groups that may be taken, in order.
fn first_few(groups: &mut Vec<Group>, lines: &[Line<'_>]) {
    let order = |a: &Group, b: &Group| -> Ordering {
        let weight = |group: &Group| {
            (
                group.kind == Kind::Reaction,
                Reverse(group.upvotes),
                Reverse(group.repeated),
                rank(group.kind),
            )
        };
        weight(a)
            .cmp(&weight(b))
            .then_with(|| in_time(&a.first, &b.first, lines))
    };
    if groups.len() > MOST_ITEMS {
        groups.select_nth_unstable_by(MOST_ITEMS, order);
        groups.truncate(MOST_ITEMS);
    }
    groups.sort_unstable_by(order);
}

fn item(group: &Group, lines: &[Line<'_>], people: &People<'_>) -> Item {
    let person = people.person(group.first.person);
    let (what, links) = group.first.line(lines).prepared.rendered(people);
    Item {
        display_name: display_name(person),
        handle: person.handle.clone(),
        what: cut(what, &links, LONGEST_WHAT),
        kind: group.kind,
        upvotes: group.upvotes,
        repeated: (group.repeated > 1).then_some(group.repeated),
    }
}
