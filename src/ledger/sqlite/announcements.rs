use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Params, Row, params};

use super::{SqliteLedger, from_json, to_json};
use crate::clock::{self, Millis};
use crate::elicitation::Key;
use crate::ledger::{
    Announcements, ChosenDeliveries, Delivery, DeliveryCount, DeliveryState, Event, EventDraft,
    LONGEST_WAIT, LedgerError, Note, SoughtDeliveries, Undelivered, UndeliveredPage,
};

const EVENT: &str = "e.seq, e.event_id, e.origin, e.id, e.event_type, e.at, e.body";

fn event_from(row: &Row<'_>) -> rusqlite::Result<(Event, String)> {
    let event = Event {
        seq: row.get(0)?,
        id: row.get(1)?,
        key: Key {
            origin: row.get(2)?,
            id: row.get(3)?,
        },
        event_type: row.get(4)?,
        at: row.get(5)?,
        body: serde_json::Value::Null,
    };
    Ok((event, row.get(6)?))
}

fn with_body((event, body): (Event, String)) -> Result<Event, LedgerError> {
    Ok(Event {
        body: from_json("event", &body)?,
        ..event
    })
}

/// Which rows a [`ChosenDeliveries`] means; its parameters are those of [`chosen_params`].
const CHOSEN: &str = "state = 'parked'
    AND (?1 IS NULL OR event_seq IN
        (SELECT seq FROM events WHERE event_id IN (SELECT value FROM json_each(?1))))
    AND (?2 IS NULL OR origin IN (SELECT value FROM json_each(?2)))
    RETURNING event_seq, (SELECT event_id FROM events e WHERE e.seq = event_seq), origin";

fn chosen_params(chosen: &ChosenDeliveries) -> Result<[Option<String>; 2], LedgerError> {
    let list = |list: &Option<Vec<String>>| {
        list.as_ref()
            .map(|list| to_json("choice", list))
            .transpose()
    };
    Ok([list(&chosen.event_ids)?, list(&chosen.origins)?])
}

/// A row of [`CHOSEN`]: the place of its event, the event's id, and whose it is.
type Changed = (i64, String, String);

impl SqliteLedger {
    fn deliveries(&self, which: &str, params: impl Params) -> Result<Vec<Delivery>, LedgerError> {
        let sql = format!(
            "SELECT {EVENT}, d.seq, d.attempts, d.created_at, d.urgent
             FROM deliveries d JOIN events e ON e.seq = d.event_seq WHERE {which}"
        );
        self.all(&sql, params, |row| {
            let rest = (row.get(7)?, row.get(8)?, row.get(9)?, row.get(10)?);
            Ok((event_from(row)?, rest))
        })?
        .into_iter()
        .map(|(event, (seq, attempts, since, urgent))| {
            Ok(Delivery {
                seq,
                event: with_body(event)?,
                attempts,
                since,
                urgent,
            })
        })
        .collect()
    }

    /// The rows that a statement ending in [`CHOSEN`] changes, oldest first.
    fn change_chosen(&self, sql: &str, params: impl Params) -> Result<Vec<Changed>, LedgerError> {
        let mut changed: Vec<Changed> = self.all(sql, params, |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        changed.sort_unstable();
        Ok(changed)
    }
}

impl Announcements for SqliteLedger {
    fn announce(
        &mut self,
        draft: &EventDraft,
        deliver: bool,
        now: Millis,
    ) -> Result<(), LedgerError> {
        let key = &draft.key;
        let seq = self.number(
            "INSERT INTO events (event_id, origin, id, event_type, at, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING seq",
            params![
                clock::fresh_id("evt_"),
                key.origin,
                key.id,
                draft.event_type,
                now,
                to_json("event", &draft.body)?
            ],
        )?;
        if deliver {
            self.change(
                "INSERT INTO deliveries (event_seq, origin, id, next_at, created_at, urgent)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
                params![seq, key.origin, key.id, now, draft.urgent],
            )?;
        }
        self.note(Note::Event(key.origin.clone()));
        Ok(())
    }

    fn events_after(
        &mut self,
        origin: &str,
        seq: i64,
        limit: usize,
    ) -> Result<Vec<Event>, LedgerError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = format!(
            "SELECT {EVENT} FROM events e WHERE e.origin = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3"
        );
        self.all(&sql, params![origin, seq, limit], event_from)?
            .into_iter()
            .map(with_body)
            .collect()
    }

    fn event_seq(&mut self, origin: &str, event_id: &str) -> Result<Option<i64>, LedgerError> {
        self.number(
            "SELECT seq FROM events WHERE origin = ?1 AND event_id = ?2",
            [origin, event_id],
        )
    }

    fn last_event_seq(&mut self) -> Result<i64, LedgerError> {
        Ok(self.number("SELECT MAX(seq) FROM events", [])?.unwrap_or(0))
    }

    fn deliveries_due(
        &mut self,
        origin: &str,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<Millis>), LedgerError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let heads = "d.state = 'pending' AND d.origin = ?1 AND d.seq IN
            (SELECT MIN(seq) FROM deliveries
                 WHERE state = 'pending' AND origin = ?1 AND urgent = 0 GROUP BY id
             UNION ALL SELECT seq FROM deliveries
                 WHERE state = 'pending' AND origin = ?1 AND urgent = 1)";
        // What is to wait for longer was put off by a clock that has been set back.
        let farthest = now.saturating_add(LONGEST_WAIT);
        let due = self.deliveries(
            &format!(
                "{heads} AND (d.next_at <= ?2 OR d.next_at > ?4)
                 ORDER BY d.urgent DESC, d.seq LIMIT ?3"
            ),
            params![origin, now, limit, farthest],
        )?;
        let sql = format!(
            "SELECT MIN(d.next_at) FROM deliveries d WHERE {heads} AND d.next_at > ?2 AND d.next_at <= ?3"
        );
        Ok((due, self.number(&sql, params![origin, now, farthest])?))
    }

    fn urgent_due(
        &mut self,
        origin: &str,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<Millis>), LedgerError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let urgent = "d.state = 'pending' AND d.urgent = 1 AND d.origin = ?1";
        let farthest = now.saturating_add(LONGEST_WAIT);
        let due = self.deliveries(
            &format!("{urgent} AND (d.next_at <= ?2 OR d.next_at > ?3) ORDER BY d.seq LIMIT ?4"),
            params![origin, now, farthest, limit],
        )?;
        let sql = format!(
            "SELECT MIN(d.next_at) FROM deliveries d
             WHERE {urgent} AND d.next_at > ?2 AND d.next_at <= ?3"
        );
        Ok((due, self.number(&sql, params![origin, now, farthest])?))
    }

    fn mark_delivered(&mut self, seq: i64, now: Millis) -> Result<(), LedgerError> {
        let origin: Option<String> = self.first(
            "UPDATE deliveries SET state = 'delivered', delivered_at = ?2
             WHERE seq = ?1 AND state = 'pending' RETURNING origin",
            [seq, now],
            |row| row.get(0),
        )?;
        // What waited behind it may go now.
        if let Some(origin) = origin {
            self.note(Note::Event(origin));
        }
        Ok(())
    }

    fn retry_delivery(&mut self, seq: i64, at: Millis, error: &str) -> Result<(), LedgerError> {
        self.change(
            "UPDATE deliveries SET next_at = ?2, attempts = attempts + 1, last_error = ?3
             WHERE seq = ?1 AND state = 'pending'",
            params![seq, at, error],
        )?;
        Ok(())
    }

    fn park_delivery(&mut self, seq: i64, error: &str) -> Result<(), LedgerError> {
        let origin: Option<String> = self.first(
            "UPDATE deliveries SET state = 'parked', attempts = attempts + 1, last_error = ?2
             WHERE seq = ?1 AND state = 'pending' RETURNING origin",
            params![seq, error],
            |row| row.get(0),
        )?;
        if let Some(origin) = origin {
            self.note(Note::Event(origin));
        }
        Ok(())
    }

    fn delivery_counts(&mut self) -> Result<(u64, u64), LedgerError> {
        let pending = self.number(
            "SELECT COUNT(*) FROM deliveries WHERE state = 'pending'",
            [],
        )?;
        let parked = self.number("SELECT COUNT(*) FROM deliveries WHERE state = 'parked'", [])?;
        Ok((
            pending.unwrap_or(0).unsigned_abs(),
            parked.unwrap_or(0).unsigned_abs(),
        ))
    }

    fn delivery_counts_by_origin(&mut self) -> Result<Vec<DeliveryCount>, LedgerError> {
        let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        // One query a state: each has an index of its own, and what is delivered is most of it.
        for (place, sql) in [
            "SELECT origin, COUNT(*) FROM deliveries WHERE state = 'pending' GROUP BY origin",
            "SELECT origin, COUNT(*) FROM deliveries WHERE state = 'parked' GROUP BY origin",
        ]
        .into_iter()
        .enumerate()
        {
            let counted = self.all(sql, [], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            })?;
            for (origin, count) in counted {
                counts.entry(origin).or_default()[place] = count.unsigned_abs();
            }
        }
        let counts = counts.into_iter();
        Ok(counts
            .map(|(origin, [pending, parked])| DeliveryCount {
                origin,
                pending,
                parked,
            })
            .collect())
    }

    fn undelivered(&mut self, sought: &SoughtDeliveries) -> Result<UndeliveredPage, LedgerError> {
        let state = sought.state;
        // Each state has an index of its own, without the many rows that are delivered. The planner
        // would rather walk over those.
        let sql = format!(
            "SELECT e.event_id, e.origin, e.id, e.event_type, e.at, d.attempts, d.next_at,
                 d.last_error, d.seq
             FROM deliveries d INDEXED BY deliveries_{word} JOIN events e ON e.seq = d.event_seq
             WHERE d.state = '{word}' AND (?1 IS NULL OR d.origin = ?1) AND d.seq > ?2
             ORDER BY d.seq LIMIT ?3",
            word = state.word()
        );
        // One more than asked for tells whether there is another page.
        let limit = i64::try_from(sought.limit).unwrap_or(i64::MAX);
        let more = limit.saturating_add(1);
        let mut rows = self.all(
            &sql,
            params![sought.origin, sought.above.unwrap_or(0), more],
            |row| {
                let next_at = Some(row.get(6)?);
                let delivery = Undelivered {
                    event_id: row.get(0)?,
                    key: Key {
                        origin: row.get(1)?,
                        id: row.get(2)?,
                    },
                    event_type: row.get(3)?,
                    at: row.get(4)?,
                    state,
                    attempts: row.get(5)?,
                    next_at: next_at.filter(|_| state == DeliveryState::Pending),
                    last_error: row.get(7)?,
                };
                Ok((delivery, row.get::<_, i64>(8)?))
            },
        )?;
        let more = rows.len() > sought.limit;
        rows.truncate(sought.limit);
        let next = rows.last().map(|(_, seq)| *seq).filter(|_| more);
        let deliveries = rows.into_iter().map(|(delivery, _)| delivery).collect();
        Ok(UndeliveredPage { deliveries, next })
    }

    fn retry_parked(
        &mut self,
        chosen: &ChosenDeliveries,
        now: Millis,
    ) -> Result<Vec<String>, LedgerError> {
        let [ids, origins] = chosen_params(chosen)?;
        let sql = format!(
            "UPDATE deliveries SET state = 'pending', attempts = 0, next_at = ?3, created_at = ?3
             WHERE {CHOSEN}"
        );
        let changed = self.change_chosen(&sql, params![ids, origins, now])?;
        let origins: BTreeSet<&String> = changed.iter().map(|(_, _, origin)| origin).collect();
        for origin in origins {
            self.note(Note::Event(origin.clone()));
        }
        Ok(changed.into_iter().map(|(_, id, _)| id).collect())
    }

    fn drop_parked(&mut self, chosen: &ChosenDeliveries) -> Result<Vec<String>, LedgerError> {
        let [ids, origins] = chosen_params(chosen)?;
        let sql = format!("DELETE FROM deliveries WHERE {CHOSEN}");
        let changed = self.change_chosen(&sql, params![ids, origins])?;
        Ok(changed.into_iter().map(|(_, id, _)| id).collect())
    }
}
