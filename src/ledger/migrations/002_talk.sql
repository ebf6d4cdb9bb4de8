-- Commands that people gave: nobody is answered without end.
CREATE TABLE commands (
    user_id TEXT NOT NULL,
    at      INTEGER NOT NULL
) STRICT;
CREATE INDEX commands_by_user ON commands (user_id, at);

-- The message that a notice replies to: what was said of it may have to be taken back.
ALTER TABLE outbox ADD COLUMN replies_to TEXT;
CREATE INDEX outbox_by_message ON outbox (room_id, replies_to) WHERE replies_to IS NOT NULL;

-- Who answers while somebody else does is told so.
CREATE INDEX elicitations_by_end ON elicitations (room_id, closed_at) WHERE closed_at IS NOT NULL;

-- What is stuck is looked for every second.
CREATE INDEX outbox_failing ON outbox (attempted_at) WHERE state = 'pending' AND attempts > 0;
