use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;

use super::{SqliteLedger, to_json};
use crate::clock::Millis;
use crate::ledger::{ChooseHandle, LedgerError, People};

impl SqliteLedger {
    /// What a table says of each of these users, in one statement.
    fn of_users<T: rusqlite::types::FromSql>(
        &self,
        column_of_table: (&str, &str),
        users: &impl serde::Serialize,
    ) -> Result<BTreeMap<String, T>, LedgerError> {
        let (column, table) = column_of_table;
        let sql = format!(
            "SELECT user_id, {column} FROM {table}
             WHERE user_id IN (SELECT value FROM json_each(?1))"
        );
        let users = to_json("list of users", users)?;
        let rows = self.all(&sql, [users], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    /// Gives one person a handle, if they have none.
    fn give_handle(&self, user_id: &str, choose: ChooseHandle<'_>) -> Result<String, LedgerError> {
        let mut failed = None;
        let handle = choose(user_id, &mut |handle| {
            match self.number("SELECT 1 FROM handles WHERE handle = ?1", [handle]) {
                Ok(owner) => owner.is_some(),
                Err(error) => {
                    failed = Some(error);
                    // Not taken: whoever looks for a free one must come to an end.
                    false
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let inserted = self.change(
            "INSERT INTO handles (user_id, handle) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            [user_id, &handle],
        )?;
        if inserted == 1 {
            Ok(handle)
        } else {
            Err(LedgerError::HandleTaken(handle))
        }
    }
}

impl People for SqliteLedger {
    fn meet(&mut self, user_id: &str, at: Millis) -> Result<bool, LedgerError> {
        let changed = self.change(
            "INSERT INTO met (user_id, at) VALUES (?1, ?2)
             ON CONFLICT (user_id) DO UPDATE SET at = excluded.at WHERE excluded.at < at",
            params![user_id, at],
        )?;
        Ok(changed == 1)
    }

    fn met(&mut self, users: &[&str]) -> Result<BTreeMap<String, Millis>, LedgerError> {
        self.of_users(("at", "met"), &users)
    }

    fn opt_out(&mut self, user_id: &str, now: Millis) -> Result<bool, LedgerError> {
        let inserted = self.change(
            "INSERT INTO opted_out (user_id, at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            params![user_id, now],
        )?;
        let mut gone = 0;
        for sql in [
            "DELETE FROM lines WHERE sender = ?1",
            "DELETE FROM votes WHERE voter = ?1",
            "DELETE FROM early_votes WHERE voter = ?1",
        ] {
            gone += self.change(sql, [user_id])?;
        }
        self.forgot |= gone > 0;
        Ok(inserted == 1)
    }

    fn opt_in(&mut self, user_id: &str) -> Result<bool, LedgerError> {
        let gone = self.change("DELETE FROM opted_out WHERE user_id = ?1", [user_id])?;
        Ok(gone == 1)
    }

    fn opted_out(&mut self) -> Result<BTreeSet<String>, LedgerError> {
        let users = self.all("SELECT user_id FROM opted_out", [], |row| row.get(0))?;
        Ok(users.into_iter().collect())
    }

    fn is_opted_out(&mut self, user_id: &str) -> Result<bool, LedgerError> {
        let out = self.number("SELECT 1 FROM opted_out WHERE user_id = ?1", [user_id])?;
        Ok(out.is_some())
    }

    fn silence(
        &mut self,
        room_id: &str,
        user_id: &str,
        until: Option<Millis>,
    ) -> Result<(), LedgerError> {
        let room_id = self.standing(room_id)?;
        self.change(
            "INSERT INTO silenced (room_id, user_id, until) VALUES (?1, ?2, ?3)
             ON CONFLICT (room_id, user_id) DO UPDATE SET until = excluded.until",
            params![room_id, user_id, until],
        )?;
        Ok(())
    }

    fn unsilence(&mut self, room_id: &str, user_id: &str) -> Result<bool, LedgerError> {
        let room_id = self.standing(room_id)?;
        let undone = self.change(
            "DELETE FROM silenced WHERE room_id = ?1 AND user_id = ?2",
            [&room_id, user_id],
        )?;
        Ok(undone == 1)
    }

    fn silenced(
        &mut self,
        room_id: &str,
        now: Millis,
    ) -> Result<Vec<(String, Option<Millis>)>, LedgerError> {
        let room_id = self.standing(room_id)?;
        self.all(
            "SELECT user_id, until FROM silenced
             WHERE room_id = ?1 AND (until IS NULL OR until > ?2) ORDER BY user_id",
            params![room_id, now],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    fn give_handles(
        &mut self,
        users: &[String],
        choose: ChooseHandle<'_>,
    ) -> Result<BTreeMap<String, String>, LedgerError> {
        let mut handles: BTreeMap<String, String> = self.of_users(("handle", "handles"), &users)?;
        for user_id in users {
            if !handles.contains_key(user_id) {
                let handle = self.give_handle(user_id, choose)?;
                handles.insert(user_id.clone(), handle);
            }
        }
        Ok(handles)
    }
}
