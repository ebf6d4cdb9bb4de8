//! The cards that other carriers put into rooms: open elicitations here, answered by the same rules.

use super::hearing::{Batch, Hearing};
use crate::clock::Millis;
use crate::config::{CarrierAnswer, CarrierConfig};
use crate::desk::{self, Carried, Change, Heard, Manners};
use crate::elicitation::{Elicitation, Key, Question, State};
use crate::ledger::{Ledger, LedgerError};

/// Why there is no question for a card.
const NOT_TWICE: &str = "its elicitation is known from elsewhere";

impl Hearing<'_> {
    /// What the bot does in a room about a question.
    pub(super) fn manners(&self, question: &Question) -> Manners {
        let Some(carrier) = question.key.carrier() else {
            return Manners::default();
        };
        let config = self.config.carriers.get(carrier);
        Manners {
            notices: config.is_some_and(|config| config.notices),
            // An answer that goes nowhere from here is not taken here.
            reacts: question.routed_to.is_some() && config.is_some_and(|config| config.react),
        }
    }

    /// A carrier put a card into a room, or edited one.
    pub(super) fn carried(
        &mut self,
        heard: &Heard,
        carried: &Carried,
        replaces: Option<&str>,
        batch: &Batch,
    ) -> Result<Vec<Change>, LedgerError> {
        let carrier = &heard.sender.user_id;
        let Some(config) = self.config.carriers.get(carrier) else {
            return Ok(Vec::new());
        };
        if !is_trusted(heard, batch) {
            return Ok(Vec::new());
        }
        if let Some(card) = replaces {
            if let Some(open) = self.open_card_of(heard, card)?
                && let Some(question) = desk::revised(&open, carried)
            {
                self.ledger.revise(&question)?;
            }
            return Ok(Vec::new());
        }
        let key = Key::of_carrier(carrier, carried.card.elicitation_id());
        if let Some(known) = self.ledger.find(&key)? {
            return self.put_up_again(heard, &known);
        }
        if let Some(other) = self.known_elsewhere(carried)? {
            // Whoever replies to this card means that question.
            if other.question.room_id == heard.room_id {
                self.ledger
                    .note_about(other.key(), &heard.room_id, &heard.event_id)?;
            }
            ignored(heard, NOT_TWICE);
            return Ok(Vec::new());
        }
        let tag = self.ledger.next_tag(&heard.room_id)?;
        let open = desk::from_carrier(
            carrier,
            carried,
            self.routed_to(config, carried.card.asked_by()),
            &heard.room_id,
            &heard.event_id,
            tag,
            self.now,
        );
        self.ledger.insert(&open, "", None)?;
        self.ledger
            .note_about(&key, &heard.room_id, &heard.event_id)?;
        Ok(desk::announcement(&open)
            .map(Change::Announce)
            .into_iter()
            .collect())
    }

    /// A carrier edited a message into one without a card.
    pub(super) fn card_gone(
        &mut self,
        heard: &Heard,
        card: &str,
        batch: &Batch,
    ) -> Result<Vec<Change>, LedgerError> {
        if !is_trusted(heard, batch) {
            return Ok(Vec::new());
        }
        let open = self.open_card_of(heard, card)?;
        let gone = open.map(|open| desk::gone(&open, self.now));
        Ok(gone.into_iter().collect())
    }

    /// The open question whose card is this event of the carrier that was heard.
    fn open_card_of(
        &mut self,
        heard: &Heard,
        card: &str,
    ) -> Result<Option<Elicitation>, LedgerError> {
        for key in self.ledger.about(&heard.room_id, card)? {
            if key.carrier() != Some(&heard.sender.user_id) {
                continue;
            }
            let found = self.ledger.find(&key)?.filter(|found| {
                found.state == State::Open && found.event_id.as_deref() == Some(card)
            });
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A carrier's card that is known has come once more: after an upgrade of its room it is put up
    /// in the new one.
    fn put_up_again(
        &mut self,
        heard: &Heard,
        known: &Elicitation,
    ) -> Result<Vec<Change>, LedgerError> {
        let (key, room_id, event_id) = (known.key(), &heard.room_id, &heard.event_id);
        self.ledger.note_about(key, room_id, event_id)?;
        if known.question.room_id != *room_id {
            // Or its carrier is the first to follow an upgrade of its room.
            ignored(heard, NOT_TWICE);
            return Ok(Vec::new());
        }
        let open = stands(self.ledger, key, room_id, event_id, self.now)?;
        Ok(open.into_iter().collect())
    }

    /// The same question, asked by another carrier, by its board or by its agent.
    fn known_elsewhere(&mut self, carried: &Carried) -> Result<Option<Elicitation>, LedgerError> {
        let card = &carried.card;
        let id = card.elicitation_id();
        if let Some(other) = self.ledger.carried_as(id)?.into_iter().next() {
            return Ok(Some(other));
        }
        for key in [
            Key::of_board(card.board_id(), id),
            Key::new(card.asked_by(), id),
        ] {
            if let Some(found) = self.ledger.find(&key)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The agent that gets the answer.
    fn routed_to(&self, config: &CarrierConfig, asked_by: &str) -> Option<String> {
        let routed = config.answer == CarrierAnswer::Route;
        (routed && self.config.agents.contains_key(asked_by)).then(|| asked_by.to_owned())
    }
}

/// A carrier's card stands in the room of its question. What its agent is told, if it did not stand
/// there before.
fn stands(
    ledger: &mut dyn Ledger,
    key: &Key,
    room_id: &str,
    event_id: &str,
    now: Millis,
) -> Result<Option<Change>, LedgerError> {
    let posted = ledger.mark_posted(key, event_id)?;
    ledger.mark_visible(room_id, event_id, now)?;
    let open = posted.filter(|posted| posted.state == State::Open);
    Ok(open
        .and_then(|open| desk::announcement(&open))
        .map(Change::Announce))
}

/// A carrier's question has gone on in another room, where its carrier may have put its card up
/// already. What its agent is told then.
pub(super) fn came_before(
    ledger: &mut dyn Ledger,
    key: &Key,
    room_id: &str,
    now: Millis,
) -> Result<Option<Change>, LedgerError> {
    for event_id in ledger.events_about(key)? {
        if ledger.about(room_id, &event_id)?.contains(key) {
            return stands(ledger, key, room_id, &event_id, now);
        }
    }
    Ok(None)
}

/// Whether a carrier's message is from who it says, by the rules of its room.
fn is_trusted(heard: &Heard, batch: &Batch) -> bool {
    let rules = batch.rooms.get(&heard.room_id).map(|(rules, _)| rules);
    let trusted = rules.is_some_and(|rules| desk::untrusted(heard, rules).is_none());
    if !trusted {
        ignored(heard, "its encryption does not prove who sent it");
    }
    trusted
}

fn ignored(heard: &Heard, why: &str) {
    let (event_id, carrier) = (&heard.event_id, &heard.sender.user_id);
    tracing::debug!(
        event.id = %event_id, carrier = %carrier,
        "the card {event_id} of {carrier} is not read: {why}"
    );
}
