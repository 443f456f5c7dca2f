// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What a relay asks of the outbox.

#include <string_view>

namespace orizuru::detail {

// What each transaction of a relay begins with.
//
// What is read behind the lock must have a snapshot of its own, whatever the database's default
// isolation is: else it shows what those who had the lock before have sent and deleted.
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

inline constexpr std::string_view waiting_queues = R"sql(
SELECT q.name FROM $p$outbox_queue AS q CROSS JOIN LATERAL (
    SELECT position FROM $p$outbox_order WHERE queue = q.name ORDER BY position LIMIT 1) AS oldest
ORDER BY oldest.position
)sql";

// A queue's name goes in between.
inline constexpr std::string_view lock_queue = "SELECT FROM $p$outbox_queue WHERE name = ";
inline constexpr std::string_view unless_locked = " FOR UPDATE SKIP LOCKED";

// A queue's next messages: at most $2, until they have $3 bytes; NULL for those deleted by hand.
inline constexpr std::string_view next_messages = R"sql(
SELECT position, encode(payload, 'hex') FROM (
    SELECT *, sum(octet_length(payload)) OVER (ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING
                                               AND 1 PRECEDING) AS bytes_before
    FROM (SELECT o.position, m.payload
          FROM $p$outbox_order AS o LEFT JOIN $p$outbox AS m USING (message)
          WHERE o.queue = $1 ORDER BY o.position LIMIT $2) AS batch) AS measured
WHERE coalesce(bytes_before, 0) < $3 ORDER BY position
)sql";

inline constexpr std::string_view delete_sent = R"sql(
WITH sent AS (
    DELETE FROM $p$outbox_order AS o USING unnest($2::bigint[]) AS pushed (position)
    WHERE o.queue = $1 AND o.position = pushed.position RETURNING o.message)
DELETE FROM $p$outbox AS m USING sent WHERE m.message = sent.message
)sql";

} // namespace orizuru::detail
