use rusqlite::params;

use super::{SUCCESSION, SqliteLedger};
use crate::clock::Millis;
use crate::ledger::{
    COMMANDS_WITHIN, Gap, Inbox, LedgerError, MOST_COMMANDS, MOST_KEPT, Undecrypted,
};

const SYNC_TOKEN: &str = "sync_token";

impl SqliteLedger {
    fn mark(&self, name: &str) -> Result<Option<String>, LedgerError> {
        self.first("SELECT value FROM marks WHERE name = ?1", [name], |row| {
            row.get(0)
        })
    }

    fn set_mark(&self, name: &str, value: &str) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO marks (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [name, value],
        )?;
        Ok(())
    }
}

impl Inbox for SqliteLedger {
    fn see(&mut self, room_id: &str, event_id: &str, now: Millis) -> Result<bool, LedgerError> {
        let inserted = self.change(
            "INSERT INTO seen (room_id, event_id, seen_at) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
            params![room_id, event_id, now],
        )?;
        Ok(inserted == 1)
    }

    fn seen(&mut self, room_id: &str, event_id: &str) -> Result<bool, LedgerError> {
        let found = self.number(
            "SELECT 1 FROM seen WHERE room_id = ?1 AND event_id = ?2",
            [room_id, event_id],
        )?;
        Ok(found.is_some())
    }

    fn sync_token(&mut self) -> Result<Option<String>, LedgerError> {
        self.mark(SYNC_TOKEN)
    }

    fn set_sync_token(&mut self, token: &str) -> Result<(), LedgerError> {
        self.set_mark(SYNC_TOKEN, token)
    }

    fn alias(&mut self, alias: &str) -> Result<Option<String>, LedgerError> {
        self.mark(&format!("alias {alias}"))
    }

    fn set_alias(&mut self, alias: &str, room_id: &str) -> Result<(), LedgerError> {
        self.set_mark(&format!("alias {alias}"), room_id)
    }

    fn successor(&mut self, room_id: &str) -> Result<Option<String>, LedgerError> {
        let sql = format!(
            "{SUCCESSION} SELECT id FROM rooms
             WHERE id <> ?1 AND id NOT IN (SELECT room_id FROM successors)"
        );
        self.first(&sql, [room_id], |row| row.get(0))
    }

    fn successors(&mut self) -> Result<Vec<(String, String)>, LedgerError> {
        self.all("SELECT room_id, successor FROM successors", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    fn set_successor(&mut self, room_id: &str, successor: &str) -> Result<bool, LedgerError> {
        let sql = format!(
            "{SUCCESSION} INSERT INTO successors (room_id, successor) SELECT ?2, ?1
             WHERE ?2 NOT IN (SELECT id FROM rooms) ON CONFLICT DO NOTHING"
        );
        if self.change(&sql, [successor, room_id])? == 0 {
            return Ok(false);
        }
        let sql = format!(
            "{SUCCESSION} INSERT INTO tags (room_id, last)
             SELECT rooms.id, tags.last FROM rooms, tags WHERE tags.room_id = ?1
             ON CONFLICT (room_id) DO UPDATE SET last = MAX(last, excluded.last)"
        );
        self.change(&sql, [room_id])?;
        Ok(true)
    }

    fn open_gap(&mut self, gap: &Gap) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO gaps (room_id, prev_batch, since, found_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
            params![gap.room_id, gap.prev_batch, gap.since, gap.found_at],
        )?;
        Ok(())
    }

    fn gaps(&mut self) -> Result<Vec<Gap>, LedgerError> {
        self.all(
            "SELECT room_id, prev_batch, since, found_at FROM gaps ORDER BY seq",
            [],
            |row| {
                Ok(Gap {
                    room_id: row.get(0)?,
                    prev_batch: row.get(1)?,
                    since: row.get(2)?,
                    found_at: row.get(3)?,
                })
            },
        )
    }

    fn defer(&mut self, room_id: &str, event_id: &str, raw: &str) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO deferred (room_id, event_id, raw) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
            [room_id, event_id, raw],
        )?;
        Ok(())
    }

    fn close_gaps(&mut self, room_id: &str) -> Result<Vec<String>, LedgerError> {
        self.change("DELETE FROM gaps WHERE room_id = ?1", [room_id])?;
        let kept = self.all(
            "SELECT raw FROM deferred WHERE room_id = ?1 ORDER BY seq",
            [room_id],
            |row| row.get(0),
        )?;
        self.change("DELETE FROM deferred WHERE room_id = ?1", [room_id])?;
        Ok(kept)
    }

    fn keep_undecrypted(&mut self, kept: &Undecrypted) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO undecrypted (room_id, event_id, sender, raw, heard_at, told)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6
             WHERE ?7 > (SELECT COUNT(*) FROM undecrypted WHERE room_id = ?1)
             ON CONFLICT DO NOTHING",
            params![
                kept.room_id,
                kept.event_id,
                kept.sender,
                kept.raw,
                kept.heard_at,
                kept.told,
                MOST_KEPT
            ],
        )?;
        Ok(())
    }

    fn undecrypted_since(
        &mut self,
        room_id: &str,
        event_id: &str,
    ) -> Result<Option<Millis>, LedgerError> {
        self.number(
            "SELECT heard_at FROM undecrypted WHERE room_id = ?1 AND event_id = ?2",
            [room_id, event_id],
        )
    }

    fn undecrypted(&mut self) -> Result<Vec<Undecrypted>, LedgerError> {
        self.all(
            "SELECT room_id, event_id, sender, raw, heard_at, told FROM undecrypted ORDER BY seq",
            [],
            |row| {
                Ok(Undecrypted {
                    room_id: row.get(0)?,
                    event_id: row.get(1)?,
                    sender: row.get(2)?,
                    raw: row.get(3)?,
                    heard_at: row.get(4)?,
                    told: row.get(5)?,
                })
            },
        )
    }

    fn mark_told_unreadable(&mut self, room_id: &str, event_id: &str) -> Result<(), LedgerError> {
        self.change(
            "UPDATE undecrypted SET told = 1 WHERE room_id = ?1 AND event_id = ?2",
            [room_id, event_id],
        )?;
        Ok(())
    }

    fn may_command(&mut self, user_id: &str, now: Millis) -> Result<bool, LedgerError> {
        let since = now.saturating_sub(COMMANDS_WITHIN);
        // Those of a clock that was set back since are forgotten too.
        self.change(
            "DELETE FROM commands WHERE user_id = ?1 AND (at <= ?2 OR at > ?3)",
            params![user_id, since, now],
        )?;
        let given = self.change(
            "INSERT INTO commands (user_id, at) SELECT ?1, ?2
             WHERE ?3 > (SELECT COUNT(*) FROM commands WHERE user_id = ?1)",
            params![user_id, now, MOST_COMMANDS],
        )?;
        Ok(given == 1)
    }

    fn drop_undecrypted(&mut self, room_id: &str, event_id: &str) -> Result<(), LedgerError> {
        self.change(
            "DELETE FROM undecrypted WHERE room_id = ?1 AND event_id = ?2",
            [room_id, event_id],
        )?;
        Ok(())
    }
}
