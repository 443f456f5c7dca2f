// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The outbox in SQL.

#include <string_view>

namespace orizuru::detail {

// outbox: what was pushed. outbox_order: which of it in which order, a row for each message,
// written as its transaction commits. outbox_queue: a row for each queue that was ever used, for
// relays to lock.
//
// Neither a sequence nor transaction ids are in the order of commits: both are given out before.
// The trigger runs in COMMIT, and its lock is held until others can see the transaction. So rows of
// outbox_order become visible in the order of their positions: a relay that sees one sees all
// before it.
inline constexpr std::string_view outbox_tables = R"sql(
CREATE TABLE $p$outbox (
    message bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL,
    queue text NOT NULL,
    payload bytea NOT NULL,
    pushed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE $p$outbox_order (
    queue text NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    message bigint NOT NULL,
    PRIMARY KEY (queue, position)
);
CREATE TABLE $p$outbox_queue (
    name text PRIMARY KEY
);

CREATE FUNCTION $p$outbox_commit() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('$p$outbox', 0));
    INSERT INTO $p$outbox_queue (name) VALUES (NEW.queue) ON CONFLICT DO NOTHING;
    INSERT INTO $p$outbox_order (queue, message) VALUES (NEW.queue, NEW.message);
    PERFORM pg_notify('$p$outbox', '');
    RETURN NULL;
END
$$;
)sql";

} // namespace orizuru::detail
