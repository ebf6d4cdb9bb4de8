use rusqlite::{Row, params};

use super::{SqliteLedger, from_json, key_params, to_json};
use crate::clock::Millis;
use crate::elicitation::{Answer, Elicitation, Key};
use crate::ledger::{Boards, LONGEST_WAIT, LedgerError, Note, Submission};

const COLUMNS: &str =
    "seq, origin, id, room_id, answer, attempts, tried, in_hand, waited, created_at";

/// A row of `submissions` before its JSON is read.
struct Stored {
    seq: i64,
    key: Key,
    room_id: String,
    answer: String,
    attempts: u32,
    tried: bool,
    in_hand: bool,
    waited: bool,
    created_at: Millis,
}

impl Stored {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            key: Key {
                origin: row.get(1)?,
                id: row.get(2)?,
            },
            room_id: row.get(3)?,
            answer: row.get(4)?,
            attempts: row.get(5)?,
            tried: row.get(6)?,
            in_hand: row.get(7)?,
            waited: row.get(8)?,
            created_at: row.get(9)?,
        })
    }

    fn read(self) -> Result<Submission, LedgerError> {
        Ok(Submission {
            seq: self.seq,
            key: self.key,
            room_id: self.room_id,
            answer: from_json("answer", &self.answer)?,
            attempts: self.attempts,
            tried: self.tried,
            in_hand: self.in_hand,
            waited: self.waited,
            created_at: self.created_at,
        })
    }
}

impl Boards for SqliteLedger {
    fn submit(&mut self, key: &Key, answer: &Answer, now: Millis) -> Result<bool, LedgerError> {
        let inserted = self.change(
            "INSERT INTO submissions (origin, id, room_id, event_id, answer, next_at, created_at)
             SELECT origin, id, room_id, ?3, ?4, ?5, ?5 FROM elicitations
                 WHERE origin = ?1 AND id = ?2 AND state = 'open'
             ON CONFLICT DO NOTHING",
            params![
                key.origin,
                key.id,
                answer.event_id,
                to_json("answer", answer)?,
                now
            ],
        )?;
        if inserted == 1 {
            self.note(Note::Submission(key.origin.clone()));
        }
        Ok(inserted == 1)
    }

    fn submission(&mut self, key: &Key) -> Result<Option<Submission>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM submissions
             WHERE origin = ?1 AND id = ?2 AND state = 'pending'"
        );
        self.first(&sql, &key_params(key)[..], Stored::from_row)?
            .map(Stored::read)
            .transpose()
    }

    fn submission_by_event(
        &mut self,
        room_id: &str,
        event_id: &str,
    ) -> Result<Option<Submission>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM submissions
             WHERE state = 'pending' AND room_id = ?1 AND event_id = ?2"
        );
        self.first(&sql, [room_id, event_id], Stored::from_row)?
            .map(Stored::read)
            .transpose()
    }

    fn submissions_due(
        &mut self,
        origin: &str,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Submission>, Option<Millis>), LedgerError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let farthest = now.saturating_add(LONGEST_WAIT);
        let mine = "state = 'pending' AND origin = ?1 AND in_hand = 0";
        let sql = format!(
            "SELECT {COLUMNS} FROM submissions
             WHERE {mine} AND (next_at <= ?2 OR next_at > ?3) ORDER BY seq LIMIT ?4"
        );
        let due = self
            .all(
                &sql,
                params![origin, now, farthest, limit],
                Stored::from_row,
            )?
            .into_iter()
            .map(Stored::read)
            .collect::<Result<_, _>>()?;
        let sql = format!(
            "SELECT MIN(next_at) FROM submissions WHERE {mine} AND next_at > ?2 AND next_at <= ?3"
        );
        Ok((due, self.number(&sql, params![origin, now, farthest])?))
    }

    fn mark_in_hand(&mut self, seq: i64) -> Result<bool, LedgerError> {
        let changed = self.change(
            "UPDATE submissions SET in_hand = 1, tried = 1 WHERE seq = ?1 AND state = 'pending'",
            [seq],
        )?;
        Ok(changed == 1)
    }

    fn mark_waited(&mut self, seq: i64) -> Result<bool, LedgerError> {
        let changed = self.change(
            "UPDATE submissions SET waited = 1 WHERE seq = ?1 AND state = 'pending' AND waited = 0",
            [seq],
        )?;
        Ok(changed == 1)
    }

    fn postpone_submission(
        &mut self,
        seq: i64,
        until: Millis,
        error: &str,
    ) -> Result<(), LedgerError> {
        self.change(
            "UPDATE submissions SET in_hand = 0, attempts = attempts + 1, next_at = ?2,
                 last_error = ?3
             WHERE seq = ?1 AND state = 'pending'",
            params![seq, until, error],
        )?;
        Ok(())
    }

    fn hurry_submissions(&mut self, origin: &str, now: Millis) -> Result<(), LedgerError> {
        let changed = self.change(
            "UPDATE submissions SET next_at = ?2
             WHERE origin = ?1 AND state = 'pending' AND next_at > ?2",
            params![origin, now],
        )?;
        if changed > 0 {
            self.note(Note::Submission(origin.to_owned()));
        }
        Ok(())
    }

    fn end_submission(&mut self, seq: i64, outcome: &str) -> Result<bool, LedgerError> {
        let changed = self.change(
            "UPDATE submissions SET in_hand = 0, state = ?2,
                 answer = json_set(answer, '$.text', NULL)
             WHERE seq = ?1 AND state = 'pending'",
            params![seq, outcome],
        )?;
        self.forgot |= changed == 1;
        Ok(changed == 1)
    }

    fn submissions_pending(&mut self) -> Result<u64, LedgerError> {
        let counted = self.number(
            "SELECT COUNT(*) FROM submissions WHERE state = 'pending'",
            [],
        )?;
        Ok(counted.unwrap_or(0).unsigned_abs())
    }

    fn pending_of(&mut self, origin: &str) -> Result<Vec<Elicitation>, LedgerError> {
        self.elicitations(
            "WHERE origin = ?1 AND state IN ('queued', 'open') ORDER BY seq",
            [origin],
        )
    }

    fn board_room(&mut self, board: &str) -> Result<Option<(String, Option<String>)>, LedgerError> {
        self.first(
            "SELECT room_id, name FROM board_rooms WHERE board = ?1",
            [board],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    fn set_board_room(
        &mut self,
        board: &str,
        room_id: &str,
        name: Option<&str>,
    ) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO board_rooms (board, room_id, name) VALUES (?1, ?2, ?3)
             ON CONFLICT (board) DO UPDATE SET room_id = excluded.room_id, name = excluded.name",
            params![board, room_id, name],
        )?;
        Ok(())
    }
}
