use rusqlite::{Row, params};

use super::{SqliteLedger, from_json, to_json};
use crate::clock::{self, Millis};
use crate::elicitation::Key;
use crate::ledger::{Announcements, Delivery, Event, EventDraft, LedgerError, Note};

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
                "INSERT INTO deliveries (event_seq, origin, id, next_at, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?4)",
                params![seq, key.origin, key.id, now],
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
            (SELECT MIN(seq) FROM deliveries WHERE state = 'pending' AND origin = ?1 GROUP BY id)";
        let sql = format!(
            "SELECT {EVENT}, d.seq, d.attempts, d.created_at
             FROM deliveries d JOIN events e ON e.seq = d.event_seq
             WHERE {heads} AND d.next_at <= ?2 ORDER BY d.seq LIMIT ?3"
        );
        let due = self
            .all(&sql, params![origin, now, limit], |row| {
                Ok((event_from(row)?, row.get(7)?, row.get(8)?, row.get(9)?))
            })?
            .into_iter()
            .map(|(event, seq, attempts, created_at)| {
                Ok(Delivery {
                    seq,
                    event: with_body(event)?,
                    attempts,
                    created_at,
                })
            })
            .collect::<Result<_, LedgerError>>()?;
        let sql =
            format!("SELECT MIN(d.next_at) FROM deliveries d WHERE {heads} AND d.next_at > ?2");
        Ok((due, self.number(&sql, params![origin, now])?))
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
}
