//! What makes lines spam only together, or only among these people (digest.md, 7.1 to 7.4).

use super::groups::Said;
use super::line_spam::MANY;
use super::people::People;
use super::{Line, Reason};
use crate::clock::Millis;

/// A run of so many lines in [`FLOOD_WITHIN`] is a flood.
const FLOOD: usize = 11;
/// Milliseconds that a flood spans less than.
const FLOOD_WITHIN: Millis = 60_000;

/// Marks each line that is spam by what its sender said besides it. `said` is ordered by key and
/// person.
pub(super) fn mark(
    lines: &[Line<'_>],
    said: &[Said],
    people: &People<'_>,
    reasons: &mut [Option<Reason>],
) {
    let mut note = |line: usize, reason| {
        reasons[line].get_or_insert(reason);
    };
    for copies in said.chunk_by(|a, b| a.key == b.key && a.person == b.person) {
        if copies.len() >= MANY {
            copies
                .iter()
                .for_each(|copy| note(copy.line, Reason::Copies));
        }
    }
    for line in said.iter().map(|said| said.line) {
        if mentions_many(&lines[line], people) {
            note(line, Reason::Mentions);
        }
    }
    for mut theirs in by_person(said, people.count()) {
        let only_links = |line: &&usize| lines[**line].prepared.is_only_links();
        if theirs.len() >= MANY && theirs.iter().filter(only_links).count() >= MANY {
            theirs
                .iter()
                .filter(only_links)
                .for_each(|&line| note(line, Reason::Links));
        }
        if theirs.len() >= FLOOD {
            // Lines that we were given at once are in the order they were sent in.
            theirs.sort_unstable_by_key(|&line| {
                let line = &lines[line];
                (line.stamp, line.sent_at, line.event_id)
            });
            floods(lines, &theirs, |line| note(line, Reason::Flood));
        }
    }
}

fn by_person(said: &[Said], count: usize) -> Vec<Vec<usize>> {
    let mut lines = vec![Vec::new(); count];
    for said in said {
        lines[said.person].push(said.line);
    }
    lines
}

/// Eleven in a minute by our clock and by the senders': after an outage a whole day arrives in a
/// second, and that is no flood.
fn floods(lines: &[Line<'_>], theirs: &[usize], mut note: impl FnMut(usize)) {
    for run in theirs.windows(FLOOD) {
        let span = |clock: fn(&Line<'_>) -> Millis| {
            let times = || run.iter().map(|&line| clock(&lines[line]));
            let first = times().min().unwrap_or_default();
            times().max().unwrap_or_default().saturating_sub(first)
        };
        if span(|line| line.stamp) < FLOOD_WITHIN
            && span(|line| line.sent_at.unwrap_or(line.stamp)) < FLOOD_WITHIN
        {
            run.iter().for_each(|&line| note(line));
        }
    }
}

/// Five others, not counting oneself, the agent, and whoever is replied to.
fn mentions_many(line: &Line<'_>, people: &People<'_>) -> bool {
    if line.prepared.named() + line.mentions.len() < MANY {
        return false;
    }
    let listed = line.mentions.iter().map(String::as_str);
    let mut others: Vec<&str> = line
        .prepared
        .people_named(people)
        .chain(listed.map(|id| people.id_of(id).unwrap_or(id)))
        .filter(|&id| id != line.sender && Some(id) != line.replied_to && !people.is_agent(id))
        .collect();
    others.sort_unstable();
    others.dedup();
    others.len() >= MANY
}
