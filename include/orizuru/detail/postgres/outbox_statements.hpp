// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The statements that a relay sends about the outbox.

#include <string_view>

namespace orizuru::detail {

// Begins each transaction of a relay.
//
// A read behind the lock must have a snapshot of its own, whatever the database's default isolation
// is: else it shows what those who had the lock before have sent and deleted.
// And a step must cost the same however much waits: the tables are empty and full in turns, and
// what their statistics say is wrong when it matters. Each row is found by its key.
inline constexpr std::string_view begin_step = R"sql(
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL jit = off;
)sql";

// The oldest message of each queue, from one queue that waits to the next: the look costs one
// search of an index for each that waits, and none for those that were ever used.
inline constexpr std::string_view waiting_queues = R"sql(
WITH RECURSIVE placed AS (
    (SELECT queue, message FROM $p$outbox_order ORDER BY queue, position LIMIT 1)
    UNION ALL
    SELECT next.* FROM placed CROSS JOIN LATERAL (
        SELECT o.queue, o.message FROM $p$outbox_order AS o WHERE o.queue > placed.queue
        ORDER BY o.queue, o.position LIMIT 1) AS next
), unplaced AS (
    (SELECT queue, message FROM $p$outbox WHERE NOT ordered
     ORDER BY queue, message + 0 LIMIT 1)
    UNION ALL
    SELECT next.* FROM unplaced CROSS JOIN LATERAL (
        SELECT m.queue, m.message FROM $p$outbox AS m
        WHERE m.queue > unplaced.queue AND NOT m.ordered
        ORDER BY m.queue, m.message + 0 LIMIT 1) AS next
)
SELECT queue FROM (SELECT * FROM placed UNION ALL SELECT * FROM unplaced) AS oldest
GROUP BY queue ORDER BY min(message)
)sql";

// A queue's name goes in between.
inline constexpr std::string_view lock_queue = "SELECT FROM $p$outbox_queue WHERE name = ";
inline constexpr std::string_view unless_locked = " FOR UPDATE SKIP LOCKED";

// A queue's next messages: at most $2, until they have $3 bytes; NULL for those deleted by hand.
// Those in order, with their positions, and those in none take turns.
inline constexpr std::string_view next_messages = R"sql(
SELECT message, position, encode(payload, 'hex') FROM (
    SELECT *, sum(octet_length(payload)) OVER (ORDER BY turn, message
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT o.message, o.position, m.payload, row_number() OVER (ORDER BY o.position) AS turn
        FROM (SELECT message, position FROM $p$outbox_order
              WHERE queue = $1 ORDER BY position LIMIT $2) AS o
        LEFT JOIN $p$outbox AS m USING (message)
        UNION ALL
        SELECT message, NULL, payload, row_number() OVER (ORDER BY message)
        FROM (SELECT message, payload FROM $p$outbox
              WHERE queue = $1 AND NOT ordered ORDER BY message + 0 LIMIT $2) AS m
        ORDER BY turn, message LIMIT $2) AS batch) AS measured
WHERE coalesce(bytes_before, 0) < $3 ORDER BY turn, message
)sql";

inline constexpr std::string_view delete_sent = R"sql(
WITH placed AS (
    DELETE FROM $p$outbox_order AS o USING unnest($3::bigint[]) AS sent (position)
    WHERE o.queue = $1 AND o.position = sent.position)
DELETE FROM $p$outbox AS m USING unnest($2::bigint[]) AS sent (message)
WHERE m.message = sent.message
)sql";

} // namespace orizuru::detail
