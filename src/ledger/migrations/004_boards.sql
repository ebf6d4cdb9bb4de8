-- The agent that hears of a question and may read it: the one that asked, or the one to which the
-- answer to another carrier's card goes.
ALTER TABLE elicitations ADD COLUMN owner TEXT;
UPDATE elicitations SET owner = origin;
DROP INDEX elicitations_by_origin;
CREATE INDEX elicitations_by_owner ON elicitations (owner, seq) WHERE owner IS NOT NULL;
CREATE INDEX elicitations_routed ON elicitations (owner, id) WHERE owner <> origin;
CREATE INDEX elicitations_pending_by_origin ON elicitations (origin, seq)
    WHERE state IN ('queued', 'open');
-- Nobody's card is put up a second time.
CREATE INDEX elicitations_carried ON elicitations (id)
    WHERE origin >= 'carrier:' AND origin < 'carrier;';

-- Answers on their way to boards, which decide; one a question at a time.
CREATE TABLE submissions (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    origin     TEXT NOT NULL,
    id         TEXT NOT NULL,
    -- The room and the message of the answer.
    room_id    TEXT NOT NULL,
    event_id   TEXT NOT NULL,
    answer     TEXT NOT NULL,
    -- 'pending', or how it ended.
    state      TEXT NOT NULL DEFAULT 'pending',
    attempts   INTEGER NOT NULL DEFAULT 0,
    -- Whether the board may have got it already.
    tried      INTEGER NOT NULL DEFAULT 0,
    -- Whether it is being handed in right now.
    in_hand    INTEGER NOT NULL DEFAULT 0,
    -- Whether the room was shown that it takes its time.
    waited     INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_error TEXT
) STRICT;
CREATE UNIQUE INDEX one_submission_in_flight ON submissions (origin, id) WHERE state = 'pending';
CREATE INDEX submissions_due ON submissions (origin, next_at) WHERE state = 'pending';
CREATE INDEX submissions_by_question ON submissions (origin, id);

-- The rooms that were made for boards, and the name that each was given last.
CREATE TABLE board_rooms (
    board   TEXT PRIMARY KEY,
    room_id TEXT NOT NULL,
    name    TEXT
) STRICT, WITHOUT ROWID;
