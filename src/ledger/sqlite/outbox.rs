use rusqlite::{Row, params};

use super::{SqliteLedger, from_json, key_params, to_json};
use crate::clock::{self, Millis};
use crate::elicitation::Key;
use crate::ledger::{
    LONGEST_WAIT, LedgerError, Note, Noticed, Outbox, SendDraft, SendKind, Sending,
};

const COLUMNS: &str =
    "seq, txn_id, room_id, origin, id, also, kind, content, attempts, attempted_at, created_at";

/// A row of `outbox` before its JSON is read.
struct Stored {
    seq: i64,
    txn_id: String,
    room_id: String,
    key: Key,
    also: String,
    kind: String,
    content: String,
    attempts: u32,
    attempted_at: Option<Millis>,
    created_at: Millis,
}

impl Stored {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            txn_id: row.get(1)?,
            room_id: row.get(2)?,
            key: Key {
                origin: row.get(3)?,
                id: row.get(4)?,
            },
            also: row.get(5)?,
            kind: row.get(6)?,
            content: row.get(7)?,
            attempts: row.get(8)?,
            attempted_at: row.get(9)?,
            created_at: row.get(10)?,
        })
    }

    fn read(self) -> Result<Sending, LedgerError> {
        let kind = SendKind::from_word(&self.kind).ok_or_else(|| LedgerError::Unreadable {
            what: "kind of sending",
            why: format!("{:?} is none", self.kind),
        })?;
        Ok(Sending {
            seq: self.seq,
            txn_id: self.txn_id,
            draft: SendDraft {
                room_id: self.room_id,
                key: self.key,
                also: from_json("keys", &self.also)?,
                kind,
                content: from_json("content", &self.content)?,
            },
            attempts: self.attempts,
            attempted_at: self.attempted_at,
            created_at: self.created_at,
        })
    }
}

impl Outbox for SqliteLedger {
    fn send(&mut self, draft: &SendDraft, now: Millis) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO outbox
                 (txn_id, room_id, origin, id, also, kind, content, next_at, created_at, replies_to)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9)",
            params![
                clock::fresh_id("elicit_"),
                draft.room_id,
                draft.key.origin,
                draft.key.id,
                to_json("keys", &draft.also)?,
                draft.kind.word(),
                to_json("content", &draft.content)?,
                now,
                draft.replies_to(),
            ],
        )?;
        self.note(Note::Outbox(draft.room_id.clone()));
        Ok(())
    }

    fn sendings_due(&mut self, now: Millis) -> Result<(Vec<Sending>, Option<Millis>), LedgerError> {
        let heads = "state = 'pending' AND seq IN
            (SELECT MIN(seq) FROM outbox WHERE state = 'pending' GROUP BY room_id)";
        let sql = format!(
            "SELECT {COLUMNS} FROM outbox WHERE {heads} AND (next_at <= ?1 OR next_at > ?2) ORDER BY seq"
        );
        let farthest = now.saturating_add(LONGEST_WAIT);
        let due = self
            .all(&sql, [now, farthest], Stored::from_row)?
            .into_iter()
            .map(Stored::read)
            .collect::<Result<_, _>>()?;
        let sql = format!(
            "SELECT MIN(next_at) FROM outbox WHERE {heads} AND next_at > ?1 AND next_at <= ?2"
        );
        Ok((due, self.number(&sql, [now, farthest])?))
    }

    fn next_sending(
        &mut self,
        room_id: &str,
        now: Millis,
    ) -> Result<Option<(Sending, Millis)>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS}, next_at FROM outbox WHERE room_id = ?1 AND state = 'pending'
             ORDER BY seq LIMIT 1"
        );
        let found = self.first(&sql, [room_id], |row| {
            Ok((Stored::from_row(row)?, row.get::<_, Millis>("next_at")?))
        })?;
        let Some((stored, next_at)) = found else {
            return Ok(None);
        };
        let too_far = next_at > now.saturating_add(LONGEST_WAIT);
        Ok(Some((stored.read()?, if too_far { now } else { next_at })))
    }

    fn mark_attempted(&mut self, seq: i64, now: Millis) -> Result<bool, LedgerError> {
        let changed = self.change(
            "UPDATE outbox SET attempted_at = COALESCE(attempted_at, ?2)
             WHERE seq = ?1 AND state = 'pending'",
            [seq, now],
        )?;
        Ok(changed == 1)
    }

    fn mark_sent(&mut self, seq: i64, event_id: &str) -> Result<bool, LedgerError> {
        let changed = self.change(
            // What stands in the room need not stand here as well.
            "UPDATE outbox SET state = 'sent', event_id = ?2, content = '{}'
             WHERE seq = ?1 AND state = 'pending'",
            params![seq, event_id],
        )?;
        if changed == 0 {
            return Ok(false);
        }
        for keys in [
            "origin, id FROM outbox",
            "value ->> 'origin', value ->> 'id' FROM outbox, json_each(also)",
        ] {
            let sql = format!(
                "INSERT INTO own_events (room_id, event_id, origin, id)
                 SELECT room_id, event_id, {keys}
                 WHERE seq = ?1 AND kind NOT IN ('reaction', 'waiting', 'waiting_over') AND outbox.origin <> ''
                 ON CONFLICT DO NOTHING"
            );
            self.change(&sql, [seq])?;
        }
        Ok(true)
    }

    fn hold(&mut self, seq: i64, until: Millis, why: &str) -> Result<(), LedgerError> {
        self.change(
            "UPDATE outbox SET next_at = ?2, last_error = ?3 WHERE seq = ?1 AND state = 'pending'",
            params![seq, until, why],
        )?;
        Ok(())
    }

    fn postpone(&mut self, seq: i64, until: Millis, error: &str) -> Result<(), LedgerError> {
        self.change(
            "UPDATE outbox SET next_at = ?2, attempts = attempts + 1, last_error = ?3
             WHERE seq = ?1 AND state = 'pending'",
            params![seq, until, error],
        )?;
        Ok(())
    }

    fn drop_sending(&mut self, seq: i64, error: &str) -> Result<(), LedgerError> {
        self.change(
            "UPDATE outbox SET state = 'dropped', last_error = ?2 WHERE seq = ?1 AND state = 'pending'",
            params![seq, error],
        )?;
        Ok(())
    }

    fn sending_by_txn(&mut self, txn_id: &str) -> Result<Option<Sending>, LedgerError> {
        let sql = format!("SELECT {COLUMNS} FROM outbox WHERE txn_id = ?1 AND state = 'pending'");
        self.first(&sql, [txn_id], Stored::from_row)?
            .map(Stored::read)
            .transpose()
    }

    fn pending_card(&mut self, key: &Key) -> Result<Option<Sending>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM outbox
             WHERE origin = ?1 AND id = ?2 AND kind = 'card' AND state = 'pending'"
        );
        self.first(&sql, &key_params(key)[..], Stored::from_row)?
            .map(Stored::read)
            .transpose()
    }

    fn pending_cards(&mut self, room_id: &str, id: &str) -> Result<Vec<Sending>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM outbox
             WHERE room_id = ?1 AND id = ?2 AND kind = 'card' AND state = 'pending' ORDER BY seq"
        );
        self.all(&sql, [room_id, id], Stored::from_row)?
            .into_iter()
            .map(Stored::read)
            .collect()
    }

    fn withdraw_unsent(&mut self, kind: SendKind, key: &Key) -> Result<bool, LedgerError> {
        let changed = self.change(
            "UPDATE outbox SET state = 'dropped', last_error = 'closed before it was sent'
             WHERE origin = ?1 AND id = ?2 AND kind = ?3 AND state = 'pending'
                 AND attempted_at IS NULL",
            params![key.origin, key.id, kind.word()],
        )?;
        Ok(changed > 0)
    }

    fn take_unsent(
        &mut self,
        room_id: &str,
        origin: &str,
        kinds: &[SendKind],
    ) -> Result<Vec<SendDraft>, LedgerError> {
        let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
        let sql = format!(
            "UPDATE outbox SET state = 'dropped', last_error = 'the room was upgraded'
             WHERE room_id = ?1 AND origin = ?2 AND state = 'pending'
                 AND kind IN (SELECT value FROM json_each(?3)) RETURNING {COLUMNS}"
        );
        let params = params![room_id, origin, to_json("kinds", &words)?];
        let mut taken = self.all(&sql, params, Stored::from_row)?;
        taken.sort_unstable_by_key(|row| row.seq);
        let read = |row: Stored| row.read().map(|sending| sending.draft);
        taken.into_iter().map(read).collect()
    }

    fn sent_as(&mut self, kind: SendKind, key: &Key) -> Result<Option<String>, LedgerError> {
        let found: Option<Option<String>> = self.first(
            "SELECT event_id FROM outbox
             WHERE origin = ?1 AND id = ?2 AND kind = ?3 AND state = 'sent' ORDER BY seq DESC LIMIT 1",
            params![key.origin, key.id, kind.word()],
            |row| row.get(0),
        )?;
        Ok(found.flatten())
    }

    fn said_about(
        &mut self,
        kind: SendKind,
        room_id: &str,
        event_id: &str,
    ) -> Result<Option<Noticed>, LedgerError> {
        self.first(
            "SELECT seq, origin, id, event_id, state = 'pending' AND attempted_at IS NULL FROM outbox
             WHERE room_id = ?1 AND replies_to = ?2 AND kind = ?3 AND state <> 'dropped'
             ORDER BY seq DESC LIMIT 1",
            [room_id, event_id, kind.word()],
            |row| {
                Ok(Noticed {
                    seq: row.get(0)?,
                    key: Key {
                        origin: row.get(1)?,
                        id: row.get(2)?,
                    },
                    event_id: row.get(3)?,
                    untried: row.get(4)?,
                })
            },
        )
    }

    fn oldest_attempted(&mut self) -> Result<Option<Millis>, LedgerError> {
        self.number(
            "SELECT MIN(attempted_at) FROM outbox WHERE state = 'pending' AND attempts > 0",
            [],
        )
    }
}
