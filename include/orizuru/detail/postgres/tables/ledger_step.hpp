// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A reconciler's step in SQL (step.hpp): what it takes in hand, and what it notes when that is
// sent.

#include <string_view>

namespace orizuru::detail {

// ledger_take  recovers what is due, then locks what is to be sent: what was lost with Redis, what
//              was lost alone (losses.hpp), and what is new, each from one range of an index.
//              Returns rows of both: a recovered job has an outcome, one to be sent a payload.
// ledger_sent  never dates a sending before gone_before, or the job would be sent again and again
//              after the clock was set back.
//
// Its plans are kept, and the tables are empty and full in turns: each row is found by an index,
// whatever the statistics say.
inline constexpr std::string_view ledger_step_tables = R"sql(
CREATE FUNCTION $p$ledger_take(of_queue text, who text, of_epoch bigint, most_bytes bigint)
RETURNS TABLE (job text, outcome text, reason text, payload text, tries integer, gone boolean,
               full_batch boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    ids text[];
    is_full boolean;
BEGIN
    RETURN QUERY SELECT r.job,
        CASE WHEN r.is_dead THEN 'died' WHEN r.was_running THEN 'lease ended' ELSE 'retried' END,
        r.reason, NULL::text, NULL::integer, NULL::boolean, NULL::boolean
    FROM $p$ledger_recover(of_queue, who) AS r;

    SELECT array_agg(b.id ORDER BY b.sent_epoch = 0, b.sent_epoch, b.created_at),
        count(*) = 1000 OR sum(b.bytes) >= most_bytes
    INTO ids, is_full
    FROM (SELECT n.*, sum(n.bytes) OVER (ORDER BY n.sent_epoch = 0, n.sent_epoch, n.created_at
              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - n.bytes AS before
          FROM ((SELECT l.id, l.sent_epoch, l.created_at, octet_length(l.payload) AS bytes
                 FROM $p$ledger AS l
                 WHERE l.queue = of_queue AND l.state = 'pending'
                     AND l.sent_epoch >= 1 AND l.sent_epoch < of_epoch
                 ORDER BY l.sent_epoch, l.created_at LIMIT 1000)
                UNION ALL
                (SELECT l.id, l.sent_epoch, l.created_at, octet_length(l.payload)
                 FROM $p$ledger AS l
                 WHERE l.queue = of_queue AND l.state = 'pending'
                     AND l.sent_epoch > 0 AND l.sent_epoch = of_epoch AND l.sent_at <
                     (SELECT q.gone_before FROM $p$ledger_queue AS q WHERE q.name = of_queue)
                 ORDER BY l.sent_at LIMIT 1000)
                UNION ALL
                (SELECT l.id, l.sent_epoch, l.created_at, octet_length(l.payload)
                 FROM $p$ledger AS l
                 WHERE l.queue = of_queue AND l.state = 'pending' AND l.sent_epoch = 0
                 ORDER BY l.created_at LIMIT 1000)
                LIMIT 1000) AS n) AS b
    WHERE b.before < most_bytes;

    RETURN QUERY SELECT l.id, NULL::text, NULL::text, encode(l.payload, 'hex'), l.attempt,
        l.sent_epoch = of_epoch, is_full
    FROM unnest(ids) WITH ORDINALITY AS next (id, place)
    JOIN $p$ledger AS l ON l.id = next.id
    WHERE l.due IS NULL AND l.finished_at IS NULL -- still pending
    ORDER BY next.place FOR NO KEY UPDATE OF l SKIP LOCKED;
END
$$;

CREATE FUNCTION $p$ledger_sent(jobs text[], of_queue text, of_epoch bigint, of_sequence bigint,
                               sweep_ms bigint, was_full boolean)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    earliest timestamptz := (SELECT gone_before FROM $p$ledger_queue WHERE name = of_queue);
BEGIN
    UPDATE $p$ledger SET sent_epoch = of_epoch,
        sent_again = CASE WHEN sent_epoch = of_epoch THEN least(sent_again + 1, 20) ELSE 0 END,
        sent_at = greatest(clock_timestamp(), earliest) + CASE WHEN sent_epoch = of_epoch
            THEN least(sweep_ms << least(sent_again + 1, 20), greatest(sweep_ms, 3600000)) - sweep_ms
            ELSE 0 END * interval '1 ms'
    WHERE id = ANY (jobs);
    UPDATE $p$ledger_queue SET sequence = of_sequence,
        gone_before = CASE WHEN was_full THEN gone_before END
    WHERE name = of_queue;
END
$$;

ALTER FUNCTION $p$ledger_look() SET enable_seqscan = off;
ALTER FUNCTION $p$ledger_look() SET jit = off;
)sql";

} // namespace orizuru::detail
