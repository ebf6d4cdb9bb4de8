-- The moment that was given last to what is said in streams' rooms. It never goes back.
CREATE TABLE stream_clock (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;

-- What was said in the rooms of streams, for as long as a digest may ask for it.
CREATE TABLE lines (
    seq         INTEGER PRIMARY KEY,
    room_id     TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    sender      TEXT NOT NULL,
    stamp       INTEGER NOT NULL,
    sent_at     INTEGER NOT NULL,
    emote       INTEGER NOT NULL,
    in_reply_to TEXT,
    replied_to  TEXT,
    mentions    TEXT NOT NULL,
    CONSTRAINT one_line_per_event UNIQUE (room_id, event_id)
) STRICT;
CREATE INDEX lines_by_stamp ON lines (room_id, stamp);
CREATE INDEX lines_by_sender ON lines (sender);

-- What each line said first, and by its edits.
CREATE TABLE texts (
    seq      INTEGER PRIMARY KEY,
    line     INTEGER NOT NULL REFERENCES lines (seq) ON DELETE CASCADE,
    event_id TEXT NOT NULL,
    sent_at  INTEGER NOT NULL,
    body     TEXT NOT NULL,
    prepared TEXT,
    key      TEXT,
    counts   INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT one_text_per_event UNIQUE (line, event_id)
) STRICT;
CREATE UNIQUE INDEX one_text_counts ON texts (line) WHERE counts = 1;
CREATE INDEX texts_by_event ON texts (event_id);

-- The votes for each line. One person may give several: each can be taken back by itself.
CREATE TABLE votes (
    line     INTEGER NOT NULL REFERENCES lines (seq) ON DELETE CASCADE,
    voter    TEXT NOT NULL,
    event_id TEXT NOT NULL,
    stamp    INTEGER NOT NULL,
    PRIMARY KEY (line, voter, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX votes_by_event ON votes (event_id);
CREATE INDEX votes_by_voter ON votes (voter);

-- Votes for messages that wait for their keys: once they can be read they may be lines.
CREATE TABLE early_votes (
    room_id  TEXT NOT NULL,
    target   TEXT NOT NULL,
    voter    TEXT NOT NULL,
    event_id TEXT NOT NULL,
    stamp    INTEGER NOT NULL,
    PRIMARY KEY (room_id, target, voter, event_id)
) STRICT, WITHOUT ROWID;

-- Events that were redacted: what comes late, or once more, is not kept.
CREATE TABLE unsaid (
    room_id  TEXT NOT NULL,
    event_id TEXT NOT NULL,
    stamp    INTEGER NOT NULL,
    PRIMARY KEY (room_id, event_id)
) STRICT, WITHOUT ROWID;

-- The rooms in whose history people were looked for.
CREATE TABLE ages_read (room_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- The earliest moment at which each account is known to have been there.
CREATE TABLE met (
    user_id TEXT PRIMARY KEY,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who does not want to be read.
CREATE TABLE opted_out (
    user_id TEXT PRIMARY KEY,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who is timed out where. Without an end: until it is undone.
CREATE TABLE silenced (
    room_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    until   INTEGER,
    PRIMARY KEY (room_id, user_id)
) STRICT, WITHOUT ROWID;

-- The names by which people are told apart. None is ever given to a second person.
CREATE TABLE handles (
    user_id TEXT PRIMARY KEY,
    handle  TEXT NOT NULL,
    CONSTRAINT one_person_per_handle UNIQUE (handle)
) STRICT, WITHOUT ROWID;
