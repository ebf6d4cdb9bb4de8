use rusqlite::{Row, params};

use super::{SqliteLedger, from_json, to_json};
use crate::clock::Millis;
use crate::desk;
use crate::elicitation::{Elicitation, Key};
use crate::ledger::{LedgerError, Note, Sessions, SoughtSessions};
use crate::session::{Activity, ActivityType, Session};

/// A row of `sessions`: its place, its root, its JSON.
type Stored = (i64, Option<String>, String);

fn from_row(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn read((_, root, json): Stored) -> Result<Session, LedgerError> {
    let session: Session = from_json("session", &json)?;
    Ok(Session { root, ..session })
}

impl SqliteLedger {
    fn sessions(
        &self,
        rest: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<Session>, LedgerError> {
        let sql = format!("SELECT seq, root, session FROM sessions {rest}");
        self.all(&sql, params, from_row)?
            .into_iter()
            .map(read)
            .collect()
    }
}

impl Sessions for SqliteLedger {
    fn begin_session(&mut self, session: &Session) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO sessions (id, agent, room_id, status, due_at, session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                session.id,
                session.agent,
                session.room_id,
                session.status.word(),
                desk::session_due(session),
                to_json("session", session)?,
            ],
        )?;
        self.note(Note::Session);
        Ok(())
    }

    fn change_session(&mut self, session: &Session) -> Result<bool, LedgerError> {
        let changed = self.change(
            "UPDATE sessions SET room_id = ?2, status = ?3, ended_at = ?4, due_at = ?5, session = ?6,
                 root = CASE room_id WHEN ?2 THEN root END
             WHERE id = ?1 AND (ended_at IS NULL OR ended_at = ?4)",
            params![
                session.id,
                session.room_id,
                session.status.word(),
                session.ended_at,
                desk::session_due(session),
                to_json("session", session)?,
            ],
        )?;
        if changed == 1 {
            self.note(Note::Session);
        }
        Ok(changed == 1)
    }

    fn session(&mut self, id: &str) -> Result<Option<Session>, LedgerError> {
        Ok(self.sessions("WHERE id = ?1", [id])?.pop())
    }

    fn session_by_root(
        &mut self,
        room_id: &str,
        root: &str,
    ) -> Result<Option<Session>, LedgerError> {
        Ok(self
            .sessions("WHERE room_id = ?1 AND root = ?2", [room_id, root])?
            .pop())
    }

    fn mark_root(&mut self, id: &str, room_id: &str, event_id: &str) -> Result<(), LedgerError> {
        self.change(
            "UPDATE sessions SET root = ?3 WHERE id = ?1 AND room_id = ?2",
            [id, room_id, event_id],
        )?;
        self.note(Note::Session);
        Ok(())
    }

    fn list_sessions(
        &mut self,
        sought: &SoughtSessions,
    ) -> Result<(Vec<Session>, Option<i64>), LedgerError> {
        let more = i64::try_from(sought.limit)
            .unwrap_or(i64::MAX)
            .saturating_add(1);
        let mut rows = self.all(
            "SELECT seq, root, session FROM sessions
             WHERE agent = ?1 AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR seq < ?3)
             ORDER BY seq DESC LIMIT ?4",
            params![
                sought.agent,
                sought.status.map(crate::session::Status::word),
                sought.below,
                more
            ],
            from_row,
        )?;
        let more = rows.len() > sought.limit;
        rows.truncate(sought.limit);
        let next = rows.last().map(|(seq, _, _)| *seq).filter(|_| more);
        let sessions = rows.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok((sessions, next))
    }

    fn living_in(&mut self, room_id: &str) -> Result<Vec<Session>, LedgerError> {
        self.sessions(
            "WHERE room_id = ?1 AND ended_at IS NULL ORDER BY seq",
            [room_id],
        )
    }

    fn living_agents(&mut self) -> Result<Vec<String>, LedgerError> {
        self.all(
            "SELECT DISTINCT agent FROM sessions WHERE ended_at IS NULL",
            [],
            |row| row.get(0),
        )
    }

    fn living_of(&mut self, agent: &str) -> Result<Vec<Session>, LedgerError> {
        self.sessions(
            "WHERE agent = ?1 AND ended_at IS NULL ORDER BY seq",
            [agent],
        )
    }

    fn sessions_due(
        &mut self,
        now: Millis,
        limit: usize,
    ) -> Result<(Vec<Session>, Option<Millis>), LedgerError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let due = self.sessions(
            "WHERE due_at IS NOT NULL AND due_at <= ?1 ORDER BY due_at LIMIT ?2",
            [now, limit],
        )?;
        let next = self.number(
            "SELECT MIN(due_at) FROM sessions WHERE due_at IS NOT NULL AND due_at > ?1",
            [now],
        )?;
        Ok((due, next))
    }

    fn record(&mut self, session_id: &str, activity: &Activity) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO activities (session_id, id, event_id, activity) VALUES (?1, ?2, ?3, ?4)",
            params![
                session_id,
                activity.id,
                activity.event_id,
                to_json("activity", activity)?
            ],
        )?;
        Ok(())
    }

    fn activities(
        &mut self,
        session_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<(Vec<Activity>, Option<i64>), LedgerError> {
        let more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut rows: Vec<(i64, String)> = self.all(
            "SELECT seq, activity FROM activities WHERE session_id = ?1 AND seq > ?2
             ORDER BY seq LIMIT ?3",
            params![session_id, after, more],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|(seq, _)| *seq).filter(|_| more);
        let activities = rows
            .iter()
            .map(|(_, json)| from_json("activity", json))
            .collect::<Result<_, _>>()?;
        Ok((activities, next))
    }

    fn first_prompt(&mut self, session_id: &str) -> Result<Option<Activity>, LedgerError> {
        let first: Option<String> = self.first(
            "SELECT activity FROM activities WHERE session_id = ?1 AND activity ->> '$.kind' = ?2
             ORDER BY seq LIMIT 1",
            [session_id, ActivityType::Prompt.word()],
            |row| row.get(0),
        )?;
        first.map(|json| from_json("activity", &json)).transpose()
    }

    fn question_of(&mut self, session_id: &str) -> Result<Option<Elicitation>, LedgerError> {
        let origin = Key::of_session(session_id).origin;
        Ok(self
            .elicitations(
                "WHERE origin = ?1 AND state IN ('queued', 'open') ORDER BY seq",
                [origin],
            )?
            .pop())
    }

    fn prompted_by(&mut self, event_id: &str) -> Result<Vec<(Session, Activity)>, LedgerError> {
        let rows: Vec<(String, String)> = self.all(
            "SELECT session_id, activity FROM activities WHERE seq IN
                 (SELECT MIN(seq) FROM activities WHERE event_id = ?1 GROUP BY session_id)
             ORDER BY seq",
            [event_id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let mut prompted = Vec::with_capacity(rows.len());
        for (id, json) in rows {
            if let Some(session) = self.session(&id)? {
                prompted.push((session, from_json("activity", &json)?));
            }
        }
        Ok(prompted)
    }

    fn forget_prompt(&mut self, event_id: &str) -> Result<bool, LedgerError> {
        let ids: Vec<(String, String)> = self.all(
            "UPDATE activities SET activity = json_set(activity, '$.body', '')
             WHERE event_id = ?1 RETURNING id, session_id",
            [event_id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        for (id, session_id) in &ids {
            self.forgot = true;
            self.change(
                "UPDATE events SET body = json_set(body, '$.agent_activity.content.body', '')
                 WHERE id = ?2 AND origin = (SELECT agent FROM sessions WHERE id = ?2)
                     AND body ->> '$.agent_activity.id' = ?1",
                [id, session_id],
            )?;
        }
        Ok(!ids.is_empty())
    }

    fn forget_title(&mut self, session_id: &str) -> Result<(), LedgerError> {
        self.forgot = true;
        let origin = Key::of_session(session_id).origin;
        self.change(
            "UPDATE events SET body = json_set(body, '$.agent_session.title', NULL)
             WHERE id = ?1 AND origin = (SELECT agent FROM sessions WHERE id = ?1)
                 AND json_type(body, '$.agent_session.title') IS NOT NULL",
            [session_id],
        )?;
        self.change(
            "UPDATE elicitations SET question = json_set(question, '$.card_title', NULL)
             WHERE origin = ?1",
            [&origin],
        )?;
        // What was never sent need not stand here any more, nor be sent as it is.
        self.change(
            "UPDATE outbox SET state = 'dropped', content = '{}'
             WHERE origin = ?1 AND (state = 'dropped'
                 OR state = 'pending' AND kind = 'root_edit' AND attempted_at IS NULL)",
            [&origin],
        )?;
        Ok(())
    }

    fn direct_room(&mut self, user_id: &str) -> Result<Option<String>, LedgerError> {
        self.first(
            "SELECT room_id FROM direct_rooms WHERE user_id = ?1",
            [user_id],
            |row| row.get(0),
        )
    }

    fn set_direct_room(&mut self, user_id: &str, room_id: &str) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO direct_rooms (user_id, room_id) VALUES (?1, ?2)
             ON CONFLICT (user_id) DO UPDATE SET room_id = excluded.room_id",
            [user_id, room_id],
        )?;
        Ok(())
    }
}
