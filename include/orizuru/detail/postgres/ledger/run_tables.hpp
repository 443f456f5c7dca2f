// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A run's two changes of its job, in SQL: functions, since a session plans the statements of a
// function once, also behind a pool of sessions, where nothing can be prepared.

#include <string_view>

namespace orizuru::detail {

// Nearly all claims find a job that is free: for them it is one UPDATE. A job that runs elsewhere
// is not waited for. A claim by a run that has the job already repeats one whose answer was lost.
inline constexpr std::string_view ledger_run_tables = R"sql(
CREATE OR REPLACE FUNCTION $p$ledger_claim(job text, who text, lease_ms bigint,
                                           OUT verdict text, OUT claimed bigint)
LANGUAGE plpgsql AS $$
DECLARE
    was record;
    at timestamptz;
BEGIN
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

ALTER TABLE $p$ledger ADD result bytea;
CREATE FUNCTION $p$ledger_complete(job text, of_token bigint, who text, of_result bytea)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE $p$ledger SET state = 'completed', result = of_result,
        changed_at = clock_timestamp(), changed_by = worker
        WHERE state = 'running' AND id = job AND token = of_token AND worker = who;
    RETURN FOUND;
END
$$;
)sql";

} // namespace orizuru::detail
