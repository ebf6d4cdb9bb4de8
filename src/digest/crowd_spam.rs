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
/// person, who are so many.
pub(super) fn mark(said: &mut [Said], people: usize) {
    for copies in said.chunk_by_mut(|a, b| a.key == b.key && a.person == b.person) {
        if copies.len() >= MANY {
            for copy in copies {
                note(copy, Reason::Copies);
            }
        }
    }
    let mut by_person = vec![Vec::new(); people];
    for (place, said) in said.iter().enumerate() {
        by_person[said.person as usize].push(Message {
            stamp: said.stamp,
            sent_at: said.sent_at,
            only_links: said.only_links,
            place,
        });
    }
    for mut theirs in by_person {
        let only_links = || theirs.iter().filter(|message| message.only_links);
        if only_links().count() >= MANY {
            for message in only_links() {
                note(&mut said[message.place], Reason::Links);
            }
        }
        if theirs.len() >= FLOOD {
            // Lines that we were given at once are in the order they were sent in.
            theirs.sort_unstable_by(|a, b| {
                a.stamp
                    .cmp(&b.stamp)
                    .then_with(|| a.sent_at.cmp(&b.sent_at))
            });
            floods(&theirs, |place| note(&mut said[place], Reason::Flood));
        }
    }
}

fn note(said: &mut Said, reason: Reason) {
    said.dropped.get_or_insert(reason);
}

/// A line, as its sender's others are compared with it.
#[derive(Clone)]
struct Message {
    stamp: Millis,
    sent_at: Millis,
    only_links: bool,
    /// By place among what was said.
    place: usize,
}

/// Eleven in a minute by our clock and by the senders': after an outage a whole day arrives in a
/// second, and that is no flood.
fn floods(theirs: &[Message], mut note: impl FnMut(usize)) {
    for run in theirs.windows(FLOOD) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            continue;
        };
        if last.stamp.saturating_sub(first.stamp) >= FLOOD_WITHIN {
            continue;
        }
        let sent = || run.iter().map(|message| message.sent_at);
        let earliest = sent().min().unwrap_or_default();
        let latest = sent().max().unwrap_or_default();
        if latest.saturating_sub(earliest) < FLOOD_WITHIN {
            for message in run {
                note(message.place);
            }
        }
    }
}

/// Five others, not counting oneself, the agent, and whoever is replied to.
pub(super) fn mentions_many(line: &Line<'_>, people: &People<'_>) -> bool {
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
