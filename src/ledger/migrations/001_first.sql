-- What was asked, where it stands, what was answered.
CREATE TABLE elicitations (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    origin           TEXT NOT NULL,
    id               TEXT NOT NULL,
    idempotency_key  TEXT,
    fingerprint      TEXT NOT NULL,
    room_id          TEXT NOT NULL,
    tag              TEXT NOT NULL,
    state            TEXT NOT NULL,
    board_id         TEXT,
    card_id          TEXT,
    expires_at       INTEGER,
    created_at       INTEGER NOT NULL,
    event_id         TEXT,
    visible          INTEGER NOT NULL DEFAULT 0,
    visible_at       INTEGER,
    closed_at        INTEGER,
    reason           TEXT,
    answer           TEXT,
    answer_event_id  TEXT,
    question         TEXT NOT NULL,
    CONSTRAINT one_elicitation_per_origin_and_id UNIQUE (origin, id),
    CONSTRAINT one_elicitation_per_idempotency_key UNIQUE (origin, idempotency_key)
) STRICT;
CREATE INDEX elicitations_pending ON elicitations (room_id, seq) WHERE state IN ('queued', 'open');
CREATE INDEX elicitations_due ON elicitations (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('queued', 'open');
CREATE INDEX elicitations_by_origin ON elicitations (origin, seq);
CREATE INDEX elicitations_by_card ON elicitations (origin, card_id)
    WHERE card_id IS NOT NULL AND state IN ('queued', 'open');
CREATE INDEX elicitations_by_room ON elicitations (room_id, tag);
CREATE INDEX elicitations_by_answer ON elicitations (answer_event_id) WHERE answer_event_id IS NOT NULL;
CREATE INDEX elicitations_closed ON elicitations (closed_at) WHERE closed_at IS NOT NULL;

-- The bot's own messages, and the questions each is about.
CREATE TABLE own_events (
    room_id  TEXT NOT NULL,
    event_id TEXT NOT NULL,
    origin   TEXT NOT NULL,
    id       TEXT NOT NULL,
    PRIMARY KEY (room_id, event_id, origin, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX own_events_by_question ON own_events (origin, id);

-- The last tag given out in each room. Tags are never used twice.
CREATE TABLE tags (room_id TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- What was said once to a person about a question.
CREATE TABLE told (
    origin  TEXT NOT NULL,
    id      TEXT NOT NULL,
    user_id TEXT NOT NULL,
    what    TEXT NOT NULL,
    PRIMARY KEY (origin, id, user_id, what)
) STRICT, WITHOUT ROWID;

-- Room events that were taken in. Ids only: no text of a room is kept here.
CREATE TABLE seen (
    room_id  TEXT NOT NULL,
    event_id TEXT NOT NULL,
    seen_at  INTEGER NOT NULL,
    PRIMARY KEY (room_id, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX seen_at ON seen (seen_at);

CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Holes in timelines; while one is open its room decides nothing.
CREATE TABLE gaps (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    room_id    TEXT NOT NULL,
    prev_batch TEXT NOT NULL,
    since      TEXT,
    found_at   INTEGER NOT NULL,
    CONSTRAINT one_gap_per_place UNIQUE (room_id, prev_batch)
) STRICT;
-- Events that arrived behind an open gap, in order.
CREATE TABLE deferred (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    room_id  TEXT NOT NULL,
    event_id TEXT NOT NULL,
    raw      TEXT NOT NULL,
    CONSTRAINT one_deferral_per_event UNIQUE (room_id, event_id)
) STRICT;

CREATE TABLE undecrypted (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    room_id  TEXT NOT NULL,
    event_id TEXT NOT NULL,
    sender   TEXT NOT NULL,
    raw      TEXT NOT NULL,
    heard_at INTEGER NOT NULL,
    told     INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT one_undecrypted_per_event UNIQUE (room_id, event_id)
) STRICT;

-- Things to be sent to rooms.
CREATE TABLE outbox (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    txn_id       TEXT NOT NULL,
    room_id      TEXT NOT NULL,
    origin       TEXT NOT NULL,
    id           TEXT NOT NULL,
    also         TEXT NOT NULL DEFAULT '[]',
    kind         TEXT NOT NULL,
    content      TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'pending',
    attempts     INTEGER NOT NULL DEFAULT 0,
    attempted_at INTEGER,
    next_at      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    event_id     TEXT,
    last_error   TEXT,
    CONSTRAINT one_row_per_txn UNIQUE (txn_id)
) STRICT;
CREATE INDEX outbox_pending ON outbox (room_id, seq) WHERE state = 'pending';
CREATE INDEX outbox_by_question ON outbox (origin, id);

-- What agents are told, each under an id that never changes.
CREATE TABLE events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id   TEXT NOT NULL,
    origin     TEXT NOT NULL,
    id         TEXT NOT NULL,
    event_type TEXT NOT NULL,
    at         INTEGER NOT NULL,
    body       TEXT NOT NULL,
    CONSTRAINT one_event_per_event_id UNIQUE (event_id)
) STRICT;
CREATE INDEX events_by_origin ON events (origin, seq);
CREATE INDEX events_by_question ON events (origin, id);
CREATE INDEX events_at ON events (at);

CREATE TABLE deliveries (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    event_seq    INTEGER NOT NULL REFERENCES events (seq) ON DELETE CASCADE,
    origin       TEXT NOT NULL,
    id           TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'pending',
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_at      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    delivered_at INTEGER,
    last_error   TEXT,
    CONSTRAINT one_delivery_per_event UNIQUE (event_seq)
) STRICT;
CREATE INDEX deliveries_parked ON deliveries (seq) WHERE state = 'parked';
CREATE INDEX deliveries_pending ON deliveries (origin, id, seq) WHERE state = 'pending';
