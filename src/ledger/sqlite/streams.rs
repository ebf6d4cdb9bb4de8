use std::collections::HashMap;

use rusqlite::{Row, ToSql, params};

use super::{SqliteLedger, from_json, to_json};
use crate::clock::Millis;
use crate::ledger::{Inbox, KeptLine, KeptText, LedgerError, StoredLine, Streams};

/// A line with the text that counts.
const COLUMNS: &str = "lines.seq, lines.room_id, lines.event_id, lines.sender, lines.stamp,
    lines.sent_at, lines.emote, lines.in_reply_to, lines.replied_to, lines.mentions,
    texts.event_id, texts.sent_at, texts.body, texts.prepared, texts.key";

/// A row of `lines` and its text, before its JSON is read: its number, its mentions, the rest.
type Stored = (i64, String, KeptLine);

fn from_row(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let line = KeptLine {
        room_id: row.get(1)?,
        event_id: row.get(2)?,
        sender: row.get(3)?,
        stamp: row.get(4)?,
        sent_at: row.get(5)?,
        emote: row.get(6)?,
        in_reply_to: row.get(7)?,
        replied_to: row.get(8)?,
        mentions: Vec::new(),
        text: KeptText {
            event_id: row.get(10)?,
            sent_at: row.get(11)?,
            body: row.get(12)?,
            prepared: row.get(13)?,
            key: row.get(14)?,
        },
    };
    Ok((row.get(0)?, row.get(9)?, line))
}

impl SqliteLedger {
    /// The room in which the lines of a room stand: itself, or the last that took its place.
    pub(super) fn standing(&mut self, room_id: &str) -> Result<String, LedgerError> {
        let successor = self.successor(room_id)?;
        Ok(successor.unwrap_or_else(|| room_id.to_owned()))
    }

    /// The lines that `which` says in the order in which they came, with the votes that `votes` says.
    /// Two statements, however many lines there are.
    fn stored_lines(
        &self,
        which: &str,
        votes: &str,
        params: &[&dyn ToSql],
    ) -> Result<Vec<StoredLine>, LedgerError> {
        // The order of the loops is forced: by the index of the lines, then what belongs to each.
        let sql = format!(
            "SELECT lines.seq, votes.voter FROM lines CROSS JOIN votes ON votes.line = lines.seq
             WHERE {which} AND {votes} ORDER BY lines.stamp, lines.seq, votes.voter"
        );
        let mut voters: HashMap<i64, Vec<String>> = HashMap::new();
        for (line, voter) in self.all(&sql, params, |row| Ok((row.get(0)?, row.get(1)?)))? {
            voters.entry(line).or_default().push(voter);
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM lines
             CROSS JOIN texts ON texts.line = lines.seq AND texts.counts = 1
             WHERE {which} ORDER BY lines.stamp, lines.seq"
        );
        let read = |(seq, mentions, line): Stored| {
            let mut votes = voters.remove(&seq).unwrap_or_default();
            votes.dedup();
            let mentions = from_json("list of mentions", &mentions)?;
            let line = KeptLine { mentions, ..line };
            Ok(StoredLine { line, votes })
        };
        let rows = self.all(&sql, params, from_row)?;
        rows.into_iter().map(read).collect()
    }

    /// Changes the texts of a line, and lets the latest count. Votes for another key go, and so does
    /// a line without any text.
    fn change_texts(
        &self,
        line: i64,
        change: impl FnOnce(&Self) -> Result<usize, LedgerError>,
    ) -> Result<bool, LedgerError> {
        let counting = "SELECT key FROM texts WHERE line = ?1 AND counts = 1";
        let before: Option<Option<String>> = self.first(counting, [line], |row| row.get(0))?;
        if change(self)? == 0 {
            return Ok(false);
        }
        self.change(
            "UPDATE texts SET counts = 0 WHERE line = ?1 AND counts = 1",
            [line],
        )?;
        self.change(
            "UPDATE texts SET counts = 1 WHERE seq = (
                 SELECT texts.seq FROM texts JOIN lines ON lines.seq = texts.line
                 WHERE texts.line = ?1
                 ORDER BY texts.event_id <> lines.event_id DESC, texts.sent_at DESC,
                     texts.event_id DESC LIMIT 1)",
            [line],
        )?;
        let after = self.first(counting, [line], |row| row.get(0))?;
        if after.is_none() {
            self.change("DELETE FROM lines WHERE seq = ?1", [line])?;
        } else if after != before {
            self.change("DELETE FROM votes WHERE line = ?1", [line])?;
        }
        Ok(true)
    }

    /// Gives a new line the votes that came before it could be read, if it says what was voted for.
    fn take_early_votes(
        &self,
        seq: i64,
        room_id: &str,
        line: &KeptLine,
    ) -> Result<(), LedgerError> {
        if line.text.event_id == line.event_id {
            self.change(
                "INSERT INTO votes (line, voter, event_id, stamp)
                 SELECT ?1, voter, event_id, stamp FROM early_votes
                 WHERE room_id = ?2 AND target = ?3
                 ON CONFLICT DO NOTHING",
                params![seq, room_id, line.event_id],
            )?;
        }
        self.change(
            "DELETE FROM early_votes WHERE room_id = ?1 AND target = ?2",
            [room_id, &line.event_id],
        )?;
        Ok(())
    }

    /// Stores a text of a line, which does not count yet. Gives the number of rows, 0 or 1.
    fn insert_text(&self, line: i64, room_id: &str, text: &KeptText) -> Result<usize, LedgerError> {
        self.change(
            "INSERT INTO texts (line, event_id, sent_at, body, prepared, key)
             SELECT ?1, ?3, ?4, ?5, ?6, ?7
             WHERE NOT EXISTS (SELECT 1 FROM unsaid WHERE room_id = ?2 AND event_id = ?3)
             ON CONFLICT DO NOTHING",
            params![
                line,
                room_id,
                text.event_id,
                text.sent_at,
                text.body,
                text.prepared,
                text.key
            ],
        )
    }
}

impl Streams for SqliteLedger {
    fn stamp(&mut self, now: Millis) -> Result<Millis, LedgerError> {
        let given = self.number(
            "INSERT INTO stream_clock (one, last) VALUES (1, ?1)
             ON CONFLICT (one) DO UPDATE SET last = MAX(last + 1, excluded.last) RETURNING last",
            [now],
        )?;
        Ok(given.unwrap_or(now))
    }

    fn keep_line(&mut self, line: &KeptLine) -> Result<bool, LedgerError> {
        let room_id = self.standing(&line.room_id)?;
        let inserted = self.number(
            "INSERT INTO lines (room_id, event_id, sender, stamp, sent_at, emote, in_reply_to,
                 replied_to, mentions)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
             WHERE NOT EXISTS (SELECT 1 FROM opted_out WHERE user_id = ?3)
                 AND NOT EXISTS
                     (SELECT 1 FROM unsaid WHERE room_id = ?1 AND event_id IN (?2, ?10))
             ON CONFLICT DO NOTHING RETURNING seq",
            params![
                room_id,
                line.event_id,
                line.sender,
                line.stamp,
                line.sent_at,
                line.emote,
                line.in_reply_to,
                line.replied_to,
                to_json("list of mentions", &line.mentions)?,
                line.text.event_id
            ],
        )?;
        let Some(seq) = inserted else {
            return Ok(false);
        };
        let kept =
            self.change_texts(seq, |ledger| ledger.insert_text(seq, &room_id, &line.text))?;
        self.take_early_votes(seq, &room_id, line)?;
        Ok(kept)
    }

    fn edit_line(
        &mut self,
        room_id: &str,
        line_event: &str,
        sender: &str,
        text: &KeptText,
    ) -> Result<bool, LedgerError> {
        let room_id = self.standing(room_id)?;
        let line = self.number(
            "SELECT seq FROM lines WHERE room_id = ?1 AND event_id = ?2 AND sender = ?3",
            [&room_id, line_event, sender],
        )?;
        match line {
            Some(line) => {
                self.change_texts(line, |ledger| ledger.insert_text(line, &room_id, text))
            }
            None => Ok(false),
        }
    }

    fn line(&mut self, room_id: &str, event_id: &str) -> Result<Option<StoredLine>, LedgerError> {
        let room_id = self.standing(room_id)?;
        let which = "lines.room_id = ?1 AND lines.event_id = ?2";
        let mut found = self.stored_lines(which, "TRUE", &[&room_id, &event_id])?;
        Ok(found.pop())
    }

    fn vote(
        &mut self,
        room_id: &str,
        vote_event: &str,
        line_event: &str,
        voter: &str,
        stamp: Millis,
    ) -> Result<bool, LedgerError> {
        let heard_in = room_id;
        let room_id = self.standing(heard_in)?;
        let inserted = self.change(
            "INSERT INTO votes (line, voter, event_id, stamp)
             SELECT seq, ?4, ?2, ?5 FROM lines
             WHERE room_id = ?1 AND event_id = ?3
                 AND NOT EXISTS (SELECT 1 FROM opted_out WHERE user_id = ?4)
                 AND NOT EXISTS (SELECT 1 FROM unsaid WHERE room_id = ?1 AND event_id = ?2)
             ON CONFLICT DO NOTHING",
            params![room_id, vote_event, line_event, voter, stamp],
        )?;
        if inserted == 1 {
            return Ok(true);
        }
        let early = self.change(
            "INSERT INTO early_votes (room_id, target, voter, event_id, stamp)
             SELECT ?1, ?3, ?4, ?2, ?5
             WHERE EXISTS
                     (SELECT 1 FROM undecrypted WHERE room_id IN (?1, ?6) AND event_id = ?3)
                 AND NOT EXISTS
                     (SELECT 1 FROM lines WHERE room_id = ?1 AND event_id = ?3)
                 AND NOT EXISTS (SELECT 1 FROM opted_out WHERE user_id = ?4)
                 AND NOT EXISTS (SELECT 1 FROM unsaid WHERE room_id = ?1 AND event_id = ?2)
             ON CONFLICT DO NOTHING",
            params![room_id, vote_event, line_event, voter, stamp, heard_in],
        )?;
        Ok(early == 1)
    }

    fn unsay(&mut self, room_id: &str, event_id: &str, stamp: Millis) -> Result<bool, LedgerError> {
        let room_id = self.standing(room_id)?;
        self.change(
            "INSERT INTO unsaid (room_id, event_id, stamp) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
            params![room_id, event_id, stamp],
        )?;
        let here = [room_id.as_str(), event_id];
        let line = "DELETE FROM lines WHERE room_id = ?1 AND event_id = ?2";
        if self.change(line, here)? > 0 {
            self.forgot = true;
            return Ok(true);
        }
        let edited = self.number(
            "SELECT line FROM texts WHERE event_id = ?2
                 AND EXISTS (SELECT 1 FROM lines WHERE seq = texts.line AND room_id = ?1)",
            here,
        )?;
        if let Some(line) = edited {
            self.forgot = true;
            return self.change_texts(line, |ledger| {
                let edit = "DELETE FROM texts WHERE line = ?1 AND event_id = ?2";
                ledger.change(edit, params![line, event_id])
            });
        }
        let votes = self.change(
            "DELETE FROM votes WHERE event_id = ?2
                 AND EXISTS (SELECT 1 FROM lines WHERE seq = votes.line AND room_id = ?1)",
            here,
        )?;
        let early = "DELETE FROM early_votes WHERE room_id = ?1 AND ?2 IN (event_id, target)";
        Ok(votes + self.change(early, here)? > 0)
    }

    fn lines(
        &mut self,
        room_id: &str,
        since: Option<Millis>,
        until: Millis,
    ) -> Result<Vec<StoredLine>, LedgerError> {
        let room_id = self.standing(room_id)?;
        let since = since.unwrap_or(Millis::MIN);
        self.stored_lines(
            "lines.room_id = ?1 AND lines.stamp >= ?2 AND lines.stamp < ?3",
            "votes.stamp <= ?3",
            &[&room_id, &since, &until],
        )
    }

    fn set_prepared(
        &mut self,
        room_id: &str,
        text_event: &str,
        prepared: Option<&str>,
        key: Option<&str>,
    ) -> Result<(), LedgerError> {
        let room_id = self.standing(room_id)?;
        self.change(
            "UPDATE texts SET prepared = ?3, key = ?4 WHERE event_id = ?2
                 AND EXISTS (SELECT 1 FROM lines WHERE seq = texts.line AND room_id = ?1)",
            params![room_id, text_event, prepared, key],
        )?;
        Ok(())
    }

    fn forget_lines(&mut self, room_id: &str, before: Millis) -> Result<u64, LedgerError> {
        let room_id = self.standing(room_id)?;
        for sql in [
            "DELETE FROM unsaid WHERE room_id = ?1 AND stamp < ?2",
            "DELETE FROM early_votes WHERE room_id = ?1 AND stamp < ?2",
            "DELETE FROM silenced WHERE room_id = ?1 AND until < ?2",
        ] {
            self.change(sql, params![room_id, before])?;
        }
        let old = "DELETE FROM lines WHERE room_id = ?1 AND stamp < ?2";
        let gone = self.change(old, params![room_id, before])?;
        self.forgot |= gone > 0;
        Ok(gone as u64)
    }

    fn forget_older(&mut self, before: Millis, now: Millis) -> Result<u64, LedgerError> {
        self.change("DELETE FROM unsaid WHERE stamp < ?1", [before])?;
        self.change("DELETE FROM early_votes WHERE stamp < ?1", [before])?;
        let gone = self.change(
            "DELETE FROM lines WHERE stamp < ?1 OR (stamp > ?2 AND sent_at < ?1)",
            [before, now],
        )?;
        self.forgot |= gone > 0;
        Ok(gone as u64)
    }

    fn forget_rooms_but(&mut self, rooms: &[String]) -> Result<u64, LedgerError> {
        let standing = rooms.iter().map(|room_id| self.standing(room_id));
        let standing = standing.collect::<Result<Vec<_>, _>>()?;
        let rooms = to_json("list of rooms", &standing)?;
        let others = "room_id NOT IN (SELECT value FROM json_each(?1))";
        for sql in [
            &format!("DELETE FROM unsaid WHERE {others}"),
            &format!("DELETE FROM early_votes WHERE {others}"),
            &format!("DELETE FROM ages_read WHERE {others}"),
        ] {
            self.change(sql, [&rooms])?;
        }
        let gone = self.change(&format!("DELETE FROM lines WHERE {others}"), [&rooms])?;
        self.forgot |= gone > 0;
        Ok(gone as u64)
    }

    fn move_lines(&mut self, from: &str, to: &str) -> Result<(), LedgerError> {
        let to = self.standing(to)?;
        if from == to {
            return Ok(());
        }
        let rooms = [from, to.as_str()];
        // In old rooms servers choose the ids of events: a line cannot be moved to where its id is
        // another's. It is then deleted, for there is no place left for it.
        self.change(
            "UPDATE OR IGNORE lines SET room_id = ?2 WHERE room_id = ?1",
            rooms,
        )?;
        self.forgot |= self.change("DELETE FROM lines WHERE room_id = ?1", [from])? > 0;
        self.change(
            "UPDATE OR IGNORE early_votes SET room_id = ?2 WHERE room_id = ?1",
            rooms,
        )?;
        self.change(
            "INSERT INTO unsaid (room_id, event_id, stamp)
             SELECT ?2, event_id, stamp FROM unsaid WHERE room_id = ?1
             ON CONFLICT DO NOTHING",
            rooms,
        )?;
        self.change(
            "INSERT INTO silenced (room_id, user_id, until)
             SELECT ?2, user_id, until FROM silenced WHERE room_id = ?1
             ON CONFLICT DO UPDATE SET until = MAX(until, excluded.until)",
            rooms,
        )?;
        self.change(
            "INSERT INTO ages_read (room_id) SELECT ?2 FROM ages_read WHERE room_id = ?1
             ON CONFLICT DO NOTHING",
            rooms,
        )?;
        for sql in [
            "DELETE FROM unsaid WHERE room_id = ?1",
            "DELETE FROM early_votes WHERE room_id = ?1",
            "DELETE FROM silenced WHERE room_id = ?1",
            "DELETE FROM ages_read WHERE room_id = ?1",
        ] {
            self.change(sql, [from])?;
        }
        Ok(())
    }

    fn note_ages_read(&mut self, room_id: &str) -> Result<(), LedgerError> {
        let room_id = self.standing(room_id)?;
        self.change(
            "INSERT INTO ages_read (room_id) VALUES (?1) ON CONFLICT DO NOTHING",
            [room_id],
        )?;
        Ok(())
    }

    fn ages_read(&mut self, room_id: &str) -> Result<bool, LedgerError> {
        let room_id = self.standing(room_id)?;
        let read = self.number("SELECT 1 FROM ages_read WHERE room_id = ?1", [room_id])?;
        Ok(read.is_some())
    }
}
