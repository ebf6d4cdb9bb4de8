-- Rooms that were upgraded, and the rooms that took their places.
CREATE TABLE successors (
    room_id   TEXT PRIMARY KEY,
    successor TEXT NOT NULL
) STRICT, WITHOUT ROWID;
