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

/// A line that someone said who may be in the digest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    pub(super) key: Key,
    /// By place among the people.
    pub(super) person: usize,
    /// By place among the lines.
    pub(super) line: usize,
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
    let mut said = Vec::with_capacity(lines.len());
    for (place, line) in lines.iter().enumerate() {
        let inside =
            window.since.is_none_or(|since| since <= line.stamp) && line.stamp < window.until;
        if !inside {
            continue;
        }
        match people.eligible(line.sender) {
            Some(person) => said.push(Said {
                key: line.prepared.key(&people),
                person,
                line: place,
            }),
            None => dropped.count(Reason::Excluded),
        }
    }
    said.sort_unstable_by_key(|said| (said.key, said.person));

    let mut reasons: Vec<Option<Reason>> = lines.iter().map(|line| line.prepared.spam()).collect();
    crowd_spam::mark(lines, &said, &people, &mut reasons);
    for line in said.iter().map(|said| said.line) {
        if reasons[line].is_none() && lines[line].prepared.greets(people.names()) {
            reasons[line] = Some(Reason::Greeting);
        }
        if let Some(reason) = reasons[line] {
            dropped.count(reason);
        }
    }

    let mut groups: Vec<Group> = said
        .chunk_by(|a, b| a.key == b.key)
        .filter_map(|all| group(all, lines, &reasons, &people))
        .collect();
    let found = groups.len();
    first_few(&mut groups, lines);
    let mut items = Vec::new();
    let mut chars = 0;
    for group in groups.iter().take(MOST_ITEMS) {
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

/// Those of one key that are left, if any are.
fn group(
    all: &[Said],
    lines: &[Line<'_>],
    reasons: &[Option<Reason>],
    people: &People<'_>,
) -> Option<Group> {
    let left = || all.iter().filter(|said| reasons[said.line].is_none());
    let first = *left().min_by_key(|said| place(&lines[said.line]))?;
    let kind = left()
        .map(|said| lines[said.line].prepared.kind())
        .min_by_key(|&kind| rank(kind))?;
    // Ordered by person, as `all` is.
    let mut sayers: Vec<usize> = left().map(|said| said.person).collect();
    sayers.dedup();
    let mut voters: Vec<usize> = left()
        .flat_map(|said| lines[said.line].votes)
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
        repeated: u32::try_from(sayers.len()).unwrap_or(u32::MAX),
        upvotes: u32::try_from(voters.len()).unwrap_or(u32::MAX),
    })
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Question => 0,
        Kind::Suggestion => 1,
        Kind::Reaction => 2,
    }
}

fn place<'a>(line: &Line<'a>) -> (i64, &'a str) {
    (line.stamp, line.event_id)
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
            .then_with(|| place(&lines[a.first.line]).cmp(&place(&lines[b.first.line])))
    };
    if groups.len() > MOST_ITEMS {
        groups.select_nth_unstable_by(MOST_ITEMS, order);
        groups.truncate(MOST_ITEMS);
    }
    groups.sort_unstable_by(order);
}

fn item(group: &Group, lines: &[Line<'_>], people: &People<'_>) -> Item {
    let person = people.person(group.first.person);
    let (what, links) = lines[group.first.line].prepared.rendered(people);
    Item {
        display_name: display_name(person),
        handle: person.handle.clone(),
        what: cut(what, &links, LONGEST_WHAT),
        kind: group.kind,
        upvotes: group.upvotes,
        repeated: (group.repeated > 1).then_some(group.repeated),
    }
}
