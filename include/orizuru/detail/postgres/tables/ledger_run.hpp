// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A run's two changes of its job, in SQL: functions, since a session plans the statements of a
// function once, also behind a pool of sessions, where nothing can be prepared. The plans are kept
// while the table grows: they find rows by an index, however few there are at first. A scan that
// cannot be avoided, in a trigger of yours, then looks so dear that it would be compiled each time:
// hence no JIT.

#include <string_view>

namespace orizuru::detail {

// Nearly all claims find a job that is free: for them it is one UPDATE. A job that runs elsewhere
// is not waited for. A claim by a run that has the job already repeats one whose answer was lost.
// Its commit does not wait for the disk. A claim that a crash of the server forgets leaves the job
// pending, and a completion is durable only behind its claim, in the same log. The token may then
// come a second time, so a run knows its claim by `worker`, too.
//
// A completion ends the session of a process that is frozen with the job locked. It refuses to be
// alone: what the run has changed was then committed, or rolled back, before it. That is so when
// its statement begins its transaction, and both have the same time.
inline constexpr std::string_view ledger_run_tables = R"sql(
CREATE OR REPLACE FUNCTION $p$ledger_claim(job text, who text, lease_ms bigint,
                                           OUT verdict text, OUT claimed bigint)
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    was record;
    at timestamptz;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    FOR tries IN 1 .. 10 LOOP
        UPDATE $p$ledger SET state = 'running', attempt = attempt + 1, token = token + 1,
            worker = who, due = clock_timestamp() + lease_ms * interval '1 ms',
            changed_at = clock_timestamp(), changed_by = who
        WHERE id = job AND finished_at IS NULL
            AND (due IS NULL OR due <= clock_timestamp() AND attempt < max_attempts)
            AND (expires IS NULL OR expires > clock_timestamp())
            AND (state <> 'running' OR worker <> who)
        RETURNING token INTO claimed;
        IF FOUND THEN
            verdict := 'claimed';
            RETURN;
        END IF;
        SELECT state, worker, due INTO was FROM $p$ledger WHERE id = job;
        IF was.state = 'running' AND was.worker <> who AND was.due > clock_timestamp() THEN
            verdict := 'elsewhere'; -- whatever locks the job
            RETURN;
        END IF;
        SELECT state, attempt, max_attempts, token, worker, due, expires INTO was
            FROM $p$ledger WHERE id = job FOR NO KEY UPDATE;
        at := clock_timestamp();
        IF was.state IS NULL THEN
            verdict := 'unknown';
        ELSIF was.state IN ('completed', 'dead') THEN
            verdict := 'repeated';
        ELSIF was.state = 'running' AND was.worker = who THEN
            verdict := 'claimed';
            claimed := was.token;
        ELSIF was.state = 'running' AND (was.due > at OR was.attempt = was.max_attempts) THEN
            verdict := 'elsewhere';
        ELSIF was.expires <= at THEN
            UPDATE $p$ledger SET state = 'dead', error = 'it has expired',
                changed_at = at, changed_by = who WHERE id = job;
            verdict := 'dead';
        ELSIF was.due > at THEN
            verdict := 'not_due';
        END IF;
        IF verdict IS NOT NULL THEN
            RETURN;
        END IF;
        -- Else it has become free meanwhile, and is locked.
    END LOOP;
    RAISE 'job % cannot be claimed, although it is free: does a trigger leave it as it is?', job;
END
$$;

-- Those that are free, and that nobody has locked. Of the others the function for one job says why
-- not, and waits where it has to; it knows, too, what this run has claimed before with an answer
-- that was lost.
CREATE FUNCTION $p$ledger_claim(jobs text[], who text, lease_ms bigint)
RETURNS TABLE (job text, claimed bigint) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY WITH free AS (
        SELECT l.id FROM $p$ledger AS l WHERE l.id = ANY (jobs) AND l.finished_at IS NULL
            AND l.worker IS DISTINCT FROM who
            AND (l.due IS NULL OR l.due <= clock_timestamp() AND l.attempt < l.max_attempts)
            AND (l.expires IS NULL OR l.expires > clock_timestamp())
        ORDER BY l.id FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE $p$ledger AS l SET state = 'running', attempt = l.attempt + 1, token = l.token + 1,
        worker = who, due = clock_timestamp() + lease_ms * interval '1 ms',
        changed_at = clock_timestamp(), changed_by = who
    FROM free WHERE l.id = free.id
    RETURNING l.id, l.token;
END
$$;

CREATE FUNCTION $p$ledger_hold(idle_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF now() = statement_timestamp() THEN
        RAISE no_active_sql_transaction USING MESSAGE = 'the transaction of the run has ended';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', idle_ms::text, true);
END
$$;
CREATE FUNCTION $p$ledger_complete(job text, of_token bigint, who text, of_result bytea,
                                   idle_ms bigint)
RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
BEGIN
    PERFORM $p$ledger_hold(idle_ms);
    UPDATE $p$ledger SET state = 'completed', result = of_result,
        changed_at = clock_timestamp(), changed_by = worker
        WHERE state = 'running' AND id = job AND token = of_token AND worker = who;
    RETURN FOUND;
END
$$;
-- Without the tokens, as the name tells a batch's claims from all others. Returns how many.
CREATE FUNCTION $p$ledger_complete(jobs text[], who text, idle_ms bigint)
RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    completed bigint;
BEGIN
    PERFORM $p$ledger_hold(idle_ms);
    UPDATE $p$ledger SET state = 'completed', changed_at = clock_timestamp(), changed_by = worker
        WHERE state = 'running' AND id = ANY (jobs) AND worker = who;
    GET DIAGNOSTICS completed = ROW_COUNT;
    RETURN completed;
END
$$;
)sql";

} // namespace orizuru::detail
