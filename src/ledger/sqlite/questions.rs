use rusqlite::{Row, params};

use super::{SUCCESSION, SqliteLedger, from_json, key_params, to_json};
use crate::clock::Millis;
use crate::elicitation::{Answer, Elicitation, Key, Question, State};
use crate::ledger::{Asked, LedgerError, MOST_TOLD, Note, Page, Questions, Sought};

/// The columns of [`Stored`], in its order.
const COLUMNS: &str =
    "seq, fingerprint, tag, state, event_id, visible, closed_at, reason, answer, question";

/// A row of `elicitations` before its JSON is read.
struct Stored {
    seq: i64,
    fingerprint: String,
    tag: String,
    state: String,
    event_id: Option<String>,
    visible: bool,
    closed_at: Option<Millis>,
    reason: Option<String>,
    answer: Option<String>,
    question: String,
}

impl Stored {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            fingerprint: row.get(1)?,
            tag: row.get(2)?,
            state: row.get(3)?,
            event_id: row.get(4)?,
            visible: row.get(5)?,
            closed_at: row.get(6)?,
            reason: row.get(7)?,
            answer: row.get(8)?,
            question: row.get(9)?,
        })
    }

    fn read(self) -> Result<Elicitation, LedgerError> {
        let state = State::from_word(&self.state).ok_or_else(|| LedgerError::Unreadable {
            what: "state",
            why: format!("{:?} is none", self.state),
        })?;
        let answer: Option<Answer> = self
            .answer
            .as_deref()
            .map(|json| from_json("answer", json))
            .transpose()?;
        Ok(Elicitation {
            question: from_json("question", &self.question)?,
            tag: self.tag,
            state,
            event_id: self.event_id,
            visible: self.visible,
            closed_at: self.closed_at,
            reason: self.reason,
            answer,
        })
    }
}

impl SqliteLedger {
    pub(super) fn elicitations(
        &self,
        rest: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<Elicitation>, LedgerError> {
        let sql = format!("SELECT {COLUMNS} FROM elicitations {rest}");
        self.all(&sql, params, Stored::from_row)?
            .into_iter()
            .map(Stored::read)
            .collect()
    }

    fn elicitation(
        &self,
        rest: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<Elicitation>, LedgerError> {
        let sql = format!("SELECT {COLUMNS} FROM elicitations {rest}");
        self.first(&sql, params, Stored::from_row)?
            .map(Stored::read)
            .transpose()
    }
}

impl Questions for SqliteLedger {
    fn find(&mut self, key: &Key) -> Result<Option<Elicitation>, LedgerError> {
        self.elicitation("WHERE origin = ?1 AND id = ?2", &key_params(key)[..])
    }

    fn find_of(&mut self, agent: &str, id: &str) -> Result<Option<Elicitation>, LedgerError> {
        if let Some(own) = self.find(&Key::new(agent, id))? {
            return Ok(Some(own));
        }
        self.elicitation(
            "WHERE owner = ?1 AND id = ?2 AND owner <> origin ORDER BY seq LIMIT 1",
            [agent, id],
        )
    }

    fn carried_as(&mut self, id: &str) -> Result<Vec<Elicitation>, LedgerError> {
        self.elicitations(
            "WHERE id = ?1 AND origin >= 'carrier:' AND origin < 'carrier;' ORDER BY seq",
            [id],
        )
    }

    fn revise(&mut self, question: &Question) -> Result<bool, LedgerError> {
        let changed = self.change(
            "UPDATE elicitations SET question = ?3
             WHERE origin = ?1 AND id = ?2 AND state IN ('queued', 'open')",
            params![
                question.key.origin,
                question.key.id,
                to_json("question", question)?
            ],
        )?;
        Ok(changed == 1)
    }

    fn bury(&mut self, key: &Key) -> Result<bool, LedgerError> {
        let gone = self.change(
            "DELETE FROM elicitations WHERE origin = ?1 AND id = ?2 AND state = 'undeliverable'",
            &key_params(key)[..],
        )?;
        if gone == 1 {
            for table in ["own_events", "told", "submissions"] {
                let sql = format!("DELETE FROM {table} WHERE origin = ?1 AND id = ?2");
                self.change(&sql, &key_params(key)[..])?;
            }
        }
        Ok(gone == 1)
    }

    fn note_about(&mut self, key: &Key, room_id: &str, event_id: &str) -> Result<(), LedgerError> {
        self.change(
            "INSERT INTO own_events (room_id, event_id, origin, id) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
            params![room_id, event_id, key.origin, key.id],
        )?;
        Ok(())
    }

    fn find_asked(
        &mut self,
        origin: &str,
        id: Option<&str>,
        idempotency_key: Option<&str>,
    ) -> Result<Vec<Asked>, LedgerError> {
        // `+seq`: two rows are sorted sooner than all of an origin's are read in order.
        let sql = format!(
            "SELECT {COLUMNS} FROM elicitations
             WHERE origin = ?1 AND (id = ?2 OR idempotency_key = ?3) ORDER BY +seq"
        );
        self.all(&sql, params![origin, id, idempotency_key], Stored::from_row)?
            .into_iter()
            .map(|stored| {
                let fingerprint = stored.fingerprint.clone();
                Ok(Asked {
                    elicitation: stored.read()?,
                    fingerprint,
                })
            })
            .collect()
    }

    fn insert(
        &mut self,
        elicitation: &Elicitation,
        fingerprint: &str,
        idempotency_key: Option<&str>,
    ) -> Result<bool, LedgerError> {
        let question = &elicitation.question;
        let inserted = self.change(
            "INSERT INTO elicitations (origin, id, idempotency_key, fingerprint, room_id, tag,
                 state, board_id, card_id, expires_at, created_at, event_id, visible, question,
                 owner, visible_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
                 CASE WHEN ?13 THEN ?11 END)
             ON CONFLICT DO NOTHING",
            params![
                question.key.origin,
                question.key.id,
                idempotency_key,
                fingerprint,
                question.room_id,
                elicitation.tag,
                elicitation.state.word(),
                question.board_id,
                question.card_id,
                question.expires_at,
                question.created_at,
                elicitation.event_id,
                elicitation.visible,
                to_json("question", question)?,
                question.owner(),
            ],
        )?;
        if inserted == 1 {
            self.note(Note::Asked(question.room_id.clone()));
        }
        Ok(inserted == 1)
    }

    fn settle(&mut self, closed: &Elicitation) -> Result<bool, LedgerError> {
        let key = closed.key();
        let from = match closed.state {
            State::Queued | State::Open => return Ok(false),
            State::Answered | State::Declined => "state = 'open'",
            State::Cancelled | State::Superseded | State::Expired | State::Undeliverable => {
                "state IN ('queued', 'open')"
            }
        };
        let answer = closed
            .answer
            .as_ref()
            .map(|answer| to_json("answer", answer))
            .transpose()?;
        let sql = format!(
            "UPDATE elicitations SET state = ?3, closed_at = ?4, reason = ?5, answer = ?6,
                 answer_event_id = ?7
             WHERE origin = ?1 AND id = ?2 AND {from}"
        );
        let changed = self.change(
            &sql,
            params![
                key.origin,
                key.id,
                closed.state.word(),
                closed.closed_at,
                closed.reason,
                answer,
                closed.answer.as_ref().map(|answer| &answer.event_id),
            ],
        )?;
        if changed == 1 {
            self.note(Note::Closed(key.clone()));
        }
        Ok(changed == 1)
    }

    fn relocate(&mut self, moved: &Elicitation) -> Result<bool, LedgerError> {
        let (key, question) = (moved.key(), &moved.question);
        let changed = self.change(
            "UPDATE elicitations SET room_id = ?3, tag = ?4, question = ?5, event_id = NULL,
                 visible = 0, visible_at = NULL
             WHERE origin = ?1 AND id = ?2 AND state IN ('queued', 'open')",
            params![
                key.origin,
                key.id,
                question.room_id,
                moved.tag,
                to_json("question", question)?,
            ],
        )?;
        if changed == 0 {
            return Ok(false);
        }
        self.change(
            "UPDATE outbox SET state = 'dropped', last_error = 'the room was upgraded'
             WHERE origin = ?1 AND id = ?2 AND state = 'pending'",
            &key_params(key)[..],
        )?;
        self.note(Note::Asked(question.room_id.clone()));
        Ok(true)
    }

    fn mark_posted(
        &mut self,
        key: &Key,
        event_id: &str,
    ) -> Result<Option<Elicitation>, LedgerError> {
        let changed = self.change(
            "UPDATE elicitations SET event_id = ?3,
                 state = CASE state WHEN 'queued' THEN 'open' ELSE state END
             WHERE origin = ?1 AND id = ?2 AND event_id IS NULL",
            params![key.origin, key.id, event_id],
        )?;
        if changed == 0 {
            Ok(None)
        } else {
            self.find(key)
        }
    }

    fn mark_visible(
        &mut self,
        room_id: &str,
        event_id: &str,
        now: Millis,
    ) -> Result<(), LedgerError> {
        self.change(
            "UPDATE elicitations SET visible = 1, visible_at = COALESCE(visible_at, ?3)
             WHERE room_id = ?1 AND event_id = ?2 AND state IN ('queued', 'open') AND state = 'open'",
            params![room_id, event_id, now],
        )?;
        Ok(())
    }

    fn visible_at(&mut self, key: &Key) -> Result<Option<Millis>, LedgerError> {
        self.number(
            "SELECT visible_at FROM elicitations WHERE origin = ?1 AND id = ?2",
            &key_params(key)[..],
        )
    }

    fn open_in(&mut self, room_id: &str) -> Result<Vec<Elicitation>, LedgerError> {
        self.elicitations(
            "WHERE room_id = ?1 AND state IN ('queued', 'open') AND state = 'open' ORDER BY seq",
            [room_id],
        )
    }

    fn closed_in(&mut self, room_id: &str, since: Millis) -> Result<Vec<Elicitation>, LedgerError> {
        self.elicitations(
            "WHERE seq IN (SELECT seq FROM elicitations WHERE room_id = ?1 AND closed_at >= ?2
                 ORDER BY closed_at DESC, seq DESC LIMIT 20) ORDER BY seq",
            params![room_id, since],
        )
    }

    fn any_closed_in(&mut self, room_id: &str, since: Millis) -> Result<bool, LedgerError> {
        let found = self.number(
            "SELECT 1 FROM elicitations WHERE room_id = ?1 AND closed_at >= ?2 LIMIT 1",
            params![room_id, since],
        )?;
        Ok(found.is_some())
    }

    fn pending_in(&mut self, room_id: &str) -> Result<Vec<Elicitation>, LedgerError> {
        self.elicitations(
            "WHERE room_id = ?1 AND state IN ('queued', 'open') ORDER BY seq",
            [room_id],
        )
    }

    fn any_pending_in(&mut self, room_id: &str) -> Result<bool, LedgerError> {
        let found = self.number(
            "SELECT 1 FROM elicitations WHERE room_id = ?1 AND state IN ('queued', 'open') LIMIT 1",
            [room_id],
        )?;
        Ok(found.is_some())
    }

    fn rooms(&mut self, since: Millis) -> Result<Vec<(String, bool)>, LedgerError> {
        self.all(
            "SELECT room_id, MAX(pending) FROM
                 (SELECT room_id, state IN ('queued', 'open') OR closed_at >= ?1 AS pending
                      FROM elicitations
                  UNION ALL SELECT room_id, ended_at IS NULL FROM sessions
                  UNION ALL SELECT room_id, 0 FROM successors)
             GROUP BY room_id",
            [since],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    fn about(&mut self, room_id: &str, event_id: &str) -> Result<Vec<Key>, LedgerError> {
        self.all(
            "SELECT origin, id FROM own_events WHERE room_id = ?1 AND event_id = ?2",
            [room_id, event_id],
            |row| {
                Ok(Key {
                    origin: row.get(0)?,
                    id: row.get(1)?,
                })
            },
        )
    }

    fn events_about(&mut self, key: &Key) -> Result<Vec<String>, LedgerError> {
        self.all(
            "SELECT event_id FROM own_events WHERE origin = ?1 AND id = ?2",
            &key_params(key)[..],
            |row| row.get(0),
        )
    }

    fn tagged(&mut self, room_id: &str, tag: &str) -> Result<Option<Elicitation>, LedgerError> {
        self.elicitation(
            "WHERE room_id = ?1 AND tag = ?2 ORDER BY seq DESC LIMIT 1",
            [room_id, tag],
        )
    }

    fn answered_by_event(
        &mut self,
        room_id: &str,
        event_id: &str,
    ) -> Result<Option<Elicitation>, LedgerError> {
        let sql = format!(
            "{SUCCESSION} SELECT {COLUMNS} FROM elicitations
             WHERE answer_event_id = ?2 AND room_id IN (SELECT id FROM rooms)"
        );
        self.first(&sql, [room_id, event_id], Stored::from_row)?
            .map(Stored::read)
            .transpose()
    }

    fn forget_answer_text(&mut self, key: &Key) -> Result<(), LedgerError> {
        self.forgot = true;
        self.change(
            "UPDATE elicitations SET answer = json_set(answer, '$.text', NULL)
             WHERE origin = ?1 AND id = ?2 AND answer IS NOT NULL",
            &key_params(key)[..],
        )?;
        let owner = "(SELECT owner FROM elicitations WHERE origin = ?1 AND id = ?2)";
        for place in [
            "$.answer.text",
            "$.correction.text",
            "$.correction.reading.text",
        ] {
            let sql = format!(
                "UPDATE events SET body = json_set(body, '{place}', NULL)
                 WHERE origin IN (?1, {owner}) AND id = ?2 AND json_type(body, '{place}') IS NOT NULL"
            );
            self.change(&sql, &key_params(key)[..])?;
        }
        self.change(
            "UPDATE submissions SET answer = json_set(answer, '$.text', NULL)
             WHERE origin = ?1 AND id = ?2",
            &key_params(key)[..],
        )?;
        // The closed card and the notices after it quote a written answer, and only that.
        let quoting = "origin = ?1 AND id = ?2 AND kind IN ('card_edit', 'notice')
             AND created_at >= (SELECT closed_at FROM elicitations
                 WHERE origin = ?1 AND id = ?2 AND answer ->> 'kind' = 'text')";
        let sql = format!(
            "UPDATE outbox SET state = CASE state WHEN 'pending' THEN 'dropped' ELSE state END,
                 content = '{{}}' WHERE {quoting}"
        );
        self.change(&sql, &key_params(key)[..])?;
        Ok(())
    }

    fn next_tag(&mut self, room_id: &str) -> Result<String, LedgerError> {
        let last = self.number(
            "INSERT INTO tags (room_id, last) VALUES (?1, 1)
             ON CONFLICT (room_id) DO UPDATE SET last = last + 1 RETURNING last",
            [room_id],
        )?;
        Ok(format!("q{}", last.unwrap_or(1)))
    }

    fn pending_about_card(
        &mut self,
        origin: &str,
        board_id: Option<&str>,
        card_id: &str,
    ) -> Result<Vec<Elicitation>, LedgerError> {
        self.elicitations(
            "WHERE origin = ?1 AND card_id = ?3 AND board_id IS ?2
                 AND state IN ('queued', 'open') ORDER BY seq",
            params![origin, board_id, card_id],
        )
    }

    fn due(&mut self, now: Millis) -> Result<(Vec<Elicitation>, Option<Millis>), LedgerError> {
        let due = self.elicitations(
            "WHERE expires_at IS NOT NULL AND state IN ('queued', 'open') AND expires_at <= ?1
             ORDER BY expires_at LIMIT 200",
            [now],
        )?;
        let next = self.number(
            "SELECT MIN(expires_at) FROM elicitations
             WHERE expires_at IS NOT NULL AND state IN ('queued', 'open') AND expires_at > ?1",
            [now],
        )?;
        Ok((due, next))
    }

    fn list(&mut self, sought: &Sought) -> Result<Page, LedgerError> {
        let limit = i64::try_from(sought.limit).unwrap_or(i64::MAX);
        let sql = format!(
            "SELECT {COLUMNS} FROM elicitations
             WHERE owner = ?1 AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR room_id = ?3)
                 AND (?4 IS NULL OR seq < ?4)
             ORDER BY seq DESC LIMIT ?5"
        );
        let mut stored = self.all(
            &sql,
            params![
                sought.owner,
                sought.state.map(State::word),
                sought.room_id,
                sought.below,
                limit.saturating_add(1)
            ],
            Stored::from_row,
        )?;
        let more = stored.len() > sought.limit;
        stored.truncate(sought.limit);
        let next = if more {
            stored.last().map(|last| last.seq)
        } else {
            None
        };
        let elicitations = stored
            .into_iter()
            .map(Stored::read)
            .collect::<Result<_, _>>()?;
        Ok(Page { elicitations, next })
    }

    fn pending_counts(&mut self) -> Result<(u64, u64, Option<Millis>), LedgerError> {
        let counts = self.first(
            "SELECT COUNT(*) FILTER (WHERE state = 'queued'), COUNT(*) FILTER (WHERE state = 'open'),
                 MIN(created_at) FILTER (WHERE state = 'open')
             FROM elicitations WHERE state IN ('queued', 'open')",
            [],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get(2)?)),
        )?;
        let (queued, open, oldest) = counts.unwrap_or((0, 0, None));
        Ok((queued.unsigned_abs(), open.unsigned_abs(), oldest))
    }

    fn first_time(&mut self, key: &Key, user_id: &str, what: &str) -> Result<bool, LedgerError> {
        let inserted = self.change(
            "INSERT INTO told (origin, id, user_id, what)
             SELECT ?1, ?2, ?3, ?4 WHERE ?5 > (SELECT COUNT(*) FROM told
                 WHERE origin = ?1 AND id = ?2 AND user_id = ?3)
             ON CONFLICT DO NOTHING",
            params![key.origin, key.id, user_id, what, MOST_TOLD],
        )?;
        Ok(inserted == 1)
    }
}
