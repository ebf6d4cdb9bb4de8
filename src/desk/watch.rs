//! The quick way out: most messages of most rooms are about no question at all.
//!
//! A [`Watch`] holds the rooms in which something was asked. It may hold too much, never too
//! little: a room is added *before* its question is committed, and taken out only when the ledger
//! says that nothing of it is left.

use std::collections::HashMap;

use super::hear::Said;

/// What may matter in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interest {
    /// Every question is over: only what points at one matters.
    Over,
    /// A question is queued or open: everything matters.
    Pending,
}

/// The rooms in which something was asked.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    rooms: HashMap<String, Watched>,
}

#[derive(Debug, Clone)]
struct Watched {
    interest: Interest,
    /// How often something was asked here since the start.
    asked: u64,
    /// Questions on their way into the ledger.
    on_their_way: u32,
}

impl Watch {
    /// Notes that a room has questions, as the ledger says at the start.
    pub fn note(&mut self, room_id: &str, interest: Interest) {
        let watched = self.entry(room_id);
        watched.interest = interest.max(watched.interest);
    }

    /// Notes that a question for this room is on its way into the ledger.
    pub fn begin(&mut self, room_id: &str) {
        let watched = self.entry(room_id);
        watched.interest = Interest::Pending;
        watched.asked += 1;
        watched.on_their_way += 1;
    }

    /// Notes that a question has come to the ledger, or will not.
    pub fn end(&mut self, room_id: &str) {
        let watched = self.entry(room_id);
        watched.on_their_way = watched.on_their_way.saturating_sub(1);
    }

    /// How often something was asked in a room. Read it before looking into the ledger, and give
    /// it to [`Watch::calm`].
    pub fn asked(&self, room_id: &str) -> u64 {
        self.rooms.get(room_id).map_or(0, |watched| watched.asked)
    }

    /// Notes that no question of a room is queued or open, as the ledger said. It is not believed
    /// when something was asked since, or is being asked.
    pub fn calm(&mut self, room_id: &str, asked: u64) {
        let watched = self.entry(room_id);
        if watched.asked == asked && watched.on_their_way == 0 {
            watched.interest = Interest::Over;
        }
    }

    fn entry(&mut self, room_id: &str) -> &mut Watched {
        self.rooms
            .entry(room_id.to_owned())
            .or_insert_with(|| Watched {
                interest: Interest::Over,
                asked: 0,
                on_their_way: 0,
            })
    }

    /// The rooms in which something may be pending.
    pub fn pending(&self) -> Vec<String> {
        let pending = self
            .rooms
            .iter()
            .filter(|(_, watched)| watched.interest == Interest::Pending);
        pending.map(|(room_id, _)| room_id.clone()).collect()
    }

    /// The rooms in which something was asked.
    pub fn rooms(&self) -> Vec<String> {
        self.rooms.keys().cloned().collect()
    }

    /// What may matter in a room; `None` for a room in which nothing was asked.
    pub fn interest(&self, room_id: &str) -> Option<Interest> {
        self.rooms.get(room_id).map(|watched| watched.interest)
    }

    /// Whether a message may matter. This is asked of every message of every room, before
    /// anything is looked up.
    pub fn wants(&self, room_id: &str, said: &Said) -> bool {
        match self.interest(room_id) {
            None => false,
            Some(Interest::Pending) => true,
            Some(Interest::Over) => {
                said.in_reply_to.is_some()
                    || said.thread.is_some()
                    || said.replaces.is_some()
                    || !possible_tags(&said.body).is_empty()
            }
        }
    }
}

/// The words of a text that are written like a tag, at most four: `q3` in `q3 2`. Whether one is
/// a tag, and stands where a tag counts, is for the reader to say.
pub fn possible_tags(body: &str) -> Vec<String> {
    let mut tags = Vec::new();
    for word in body.split(|c: char| !c.is_alphanumeric()) {
        let Some(digits) = word.strip_prefix(['q', 'Q']) else {
            continue;
        };
        let plain =
            !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|b| b.is_ascii_digit());
        let tag = format!("q{digits}");
        if plain && !tags.contains(&tag) {
            tags.push(tag);
            if tags.len() == 4 {
                break;
            }
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> Said {
        Said {
            body: body.to_owned(),
            ..Said::default()
        }
    }

    #[test]
    fn words_like_tags_are_found_and_few() {
        assert_eq!(possible_tags("> old\n\n@bot: Q12: 3"), ["q12"]);
        assert_eq!(possible_tags("q1 q2 q2 q3 q4 q5"), ["q1", "q2", "q3", "q4"]);
        assert!(possible_tags("quite q qx q1x 1q1").is_empty());
    }

    #[test]
    fn a_room_without_questions_wants_nothing() {
        assert!(!Watch::default().wants("!a", &said("1")));
    }

    #[test]
    fn a_room_with_a_pending_question_wants_everything() {
        let mut watch = Watch::default();
        watch.note("!a", Interest::Pending);
        watch.note("!a", Interest::Over);
        assert!(watch.wants("!a", &said("good morning")));
    }

    #[test]
    fn a_room_whose_questions_are_over_wants_only_what_points_at_one() {
        let mut watch = Watch::default();
        watch.note("!a", Interest::Pending);
        watch.calm("!a", watch.asked("!a"));
        assert!(!watch.wants("!a", &said("1")));
        assert!(watch.wants("!a", &said("q3 1")));
        let reply = Said {
            in_reply_to: Some("$card".to_owned()),
            ..said("1")
        };
        assert!(watch.wants("!a", &reply));
        let edit = Said {
            replaces: Some("$answer".to_owned()),
            ..said("2")
        };
        assert!(watch.wants("!a", &edit));
    }

    #[test]
    fn a_question_that_is_asked_while_the_ledger_is_looked_at_keeps_its_room_on_the_watch() {
        let mut watch = Watch::default();
        let before = watch.asked("!a");
        watch.begin("!a");
        watch.calm("!a", before);
        assert_eq!(watch.interest("!a"), Some(Interest::Pending));
        watch.calm("!a", watch.asked("!a"));
        assert_eq!(watch.interest("!a"), Some(Interest::Pending));
        watch.end("!a");
        watch.calm("!a", watch.asked("!a"));
        assert_eq!(watch.interest("!a"), Some(Interest::Over));
    }
}
