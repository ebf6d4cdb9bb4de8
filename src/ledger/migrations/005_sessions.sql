-- Agents' sessions, each a thread of a room.
CREATE TABLE sessions (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL,
    agent    TEXT NOT NULL,
    room_id  TEXT NOT NULL,
    status   TEXT NOT NULL,
    root     TEXT,
    ended_at INTEGER,
    -- When something is to be done about it by itself: its end, its silence, its age, an edit.
    due_at   INTEGER,
    session  TEXT NOT NULL,
    CONSTRAINT one_session_per_id UNIQUE (id)
) STRICT;
CREATE INDEX sessions_by_agent ON sessions (agent, seq);
CREATE INDEX sessions_by_root ON sessions (room_id, root) WHERE root IS NOT NULL;
CREATE INDEX sessions_living ON sessions (room_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_due ON sessions (due_at) WHERE due_at IS NOT NULL;

-- What was said in them.
CREATE TABLE activities (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    id         TEXT NOT NULL,
    event_id   TEXT,
    activity   TEXT NOT NULL,
    CONSTRAINT one_activity_per_id UNIQUE (id)
) STRICT;
CREATE INDEX activities_by_session ON activities (session_id, seq);
CREATE INDEX activities_by_event ON activities (event_id) WHERE event_id IS NOT NULL;

-- What goes ahead of everything else that waits for its agent.
ALTER TABLE deliveries ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
CREATE INDEX deliveries_urgent ON deliveries (origin, seq) WHERE state = 'pending' AND urgent = 1;

-- The rooms in which one person alone is spoken to.
CREATE TABLE direct_rooms (
    user_id TEXT PRIMARY KEY,
    room_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
