//! Who is in the room: who may be in the digest (digest.md, 2), and whom a name means.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use super::addresses::parts;
use super::clean::clean;
use super::folded::match_text;
use super::greeting::Names;
use super::handles::RESERVED;
use super::{LONGEST_NAME, Person, Settings, Standing};
use crate::clock::Millis;

/// How an agent is named to itself.
const AGENT: &str = "agent";

/// The longest id, in bytes, however its at sign is written.
const LONGEST_ID: usize = 257;

/// The people of a room at one moment.
pub(super) struct People<'a> {
    all: &'a [Person],
    /// By place in `all`: whether they may be in the digest.
    eligible: Vec<bool>,
    by_id: HashMap<Cow<'a, str>, usize>,
    /// By handle, and, for those who are left out, by localpart too.
    by_name: HashMap<Cow<'a, str>, usize>,
    agents: HashSet<&'a str>,
    /// Made where a line may greet someone by name.
    names: OnceCell<Names>,
}

/// Whom a name means.
pub(super) enum Named<'a> {
    /// Someone who is shown, by this handle.
    Shown(&'a str),
    /// Someone who is not.
    Hidden,
    /// Nobody known.
    Nobody,
}

impl<'a> People<'a> {
    pub(super) fn new(all: &'a [Person], settings: &'a Settings, until: Millis) -> Self {
        let agents: HashSet<&str> = settings.agents.iter().map(String::as_str).collect();
        let eligible: Vec<bool> = all
            .iter()
            .map(|person| {
                let old = person
                    .first_seen
                    .is_some_and(|seen| until.saturating_sub(seen) >= settings.min_age);
                old && person.standing == Standing::In && !agents.contains(person.user.as_str())
            })
            .collect();
        let mut people = Self {
            all,
            eligible,
            by_id: HashMap::with_capacity(all.len()),
            by_name: HashMap::with_capacity(all.len()),
            agents,
            names: OnceCell::new(),
        };
        people.enter();
        people
    }

    fn enter(&mut self) {
        for (place, person) in self.all.iter().enumerate() {
            self.by_id.insert(person.user.as_str().into(), place);
            self.by_name.insert(person.handle.as_str().into(), place);
        }
        // What is nobody's exactly may be someone's roughly.
        for (place, person) in self.all.iter().enumerate() {
            if person.user.bytes().any(|b| b.is_ascii_uppercase()) {
                let lower = person.user.to_ascii_lowercase();
                self.by_id.entry(lower.into()).or_insert(place);
            }
            if self.eligible[place] {
                continue;
            }
            if let Some((localpart, _)) = parts(&person.user) {
                let lower = localpart.to_lowercase();
                if !RESERVED.contains(&lower.as_str()) {
                    self.by_name.entry(lower.into()).or_insert(place);
                }
            }
        }
    }

    /// The place of someone who may be in the digest.
    pub(super) fn eligible(&self, user: &str) -> Option<u32> {
        let place = *self.by_id.get(user)?;
        // An id in other letters is another account's.
        let theirs = self.eligible[place] && self.all[place].user == user;
        u32::try_from(place).ok().filter(|_| theirs)
    }

    /// Who is at a place that [`Self::eligible`] gave.
    pub(super) fn person(&self, place: u32) -> &'a Person {
        &self.all[place as usize]
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// What those are called in greetings who may be in the digest: nobody else's name decides
    /// what is.
    pub(super) fn names(&self) -> &Names {
        self.names.get_or_init(|| {
            let mut names = Names::with_room_for(self.all.len());
            let eligible = self.all.iter().zip(&self.eligible);
            for (person, _) in eligible.filter(|&(_, &eligible)| eligible) {
                names.add(match_text(&person.handle));
                if let Some(name) = person.display_name.as_deref().and_then(as_shown) {
                    names.add(match_text(&name));
                }
            }
            names
        })
    }

    pub(super) fn is_agent(&self, user: &str) -> bool {
        self.agents.contains(user)
    }

    /// Whom an id means, as it was written.
    pub(super) fn by_id(&self, written: &str) -> Named<'a> {
        let id = plain(written);
        if self.agents.contains(id.as_ref()) {
            return Named::Shown(AGENT);
        }
        self.shown(self.place_of(&id))
    }

    /// Where the longest id ends that someone has and that a text begins with.
    pub(super) fn id_at_start(&self, written: &str) -> Option<usize> {
        // No id is longer (Matrix specification, "User identifiers").
        let ends = written.char_indices().map(|(at, _)| at).skip(1);
        let ends = ends
            .chain([written.len()])
            .take_while(|&end| end <= LONGEST_ID);
        let ends: Vec<usize> = ends.collect();
        let is_someones = |end: &usize| self.id_of(&written[..*end]).is_some();
        ends.into_iter().rev().find(is_someones)
    }

    /// Whom a name means that was typed behind an at sign.
    pub(super) fn by_name(&self, name: &str) -> Named<'a> {
        let name = name.to_lowercase();
        match self.by_name.get(name.as_str()) {
            None if RESERVED.contains(&name.as_str()) => Named::Shown(AGENT),
            place => self.shown(place.copied()),
        }
    }

    /// Whom a name means in code, where only a handle is one: `@types` is a scope of packages.
    pub(super) fn by_handle(&self, name: &str) -> Named<'a> {
        let name = name.to_lowercase();
        let place = self.by_name.get(name.as_str()).copied();
        self.shown(place.filter(|&place| self.all[place].handle == name))
    }

    /// The id that someone's id is, however it was written.
    pub(super) fn id_of(&self, written: &str) -> Option<&'a str> {
        let id = plain(written);
        if let Some(agent) = self.agents.get(id.as_ref()) {
            return Some(agent);
        }
        self.place_of(&id)
            .map(|place| self.all[place].user.as_str())
    }

    /// The id of whoever has the handle.
    pub(super) fn id_of_name(&self, name: &str) -> Option<&'a str> {
        let place = *self.by_name.get(name.to_lowercase().as_str())?;
        Some(&self.all[place].user)
    }

    fn place_of(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied().or_else(|| {
            let lower = id.to_ascii_lowercase();
            self.by_id.get(lower.as_str()).copied()
        })
    }

    fn shown(&self, place: Option<usize>) -> Named<'a> {
        match place {
            Some(place) if self.eligible[place] => Named::Shown(&self.all[place].handle),
            Some(_) => Named::Hidden,
            None => Named::Nobody,
        }
    }
}

/// A display name that is shown whole, clean. None is looked at further than that takes.
fn as_shown(name: &str) -> Option<String> {
    let end = if name.len() > 4 * LONGEST_NAME {
        name.char_indices().nth(4 * LONGEST_NAME)
    } else {
        None
    };
    let name = clean(&name[..end.map_or(name.len(), |(at, _)| at)]);
    let short = name.len() <= LONGEST_NAME || name.chars().nth(LONGEST_NAME).is_none();
    short.then_some(name)
}

/// The id with the at sign that ids have.
fn plain(written: &str) -> Cow<'_, str> {
    if written.starts_with('@') {
        return written.into();
    }
    let mut chars = written.chars();
    chars.next();
    format!("@{}", chars.as_str()).into()
}
