// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Adds to the ledger's tables (ledger.hpp) the parts by which a job waits for its time, and
// expires.

#include <string_view>

namespace orizuru::detail {

// ledger.due         pending: when its message may be sent, if that is later than the submission
// ledger.sent_epoch  9223372036854775807 until then, which is no queue's epoch: nothing sends it
// ledger.expires     no try begins from then on
//
// A step of a reconciler makes what is due an ordinary pending job, which waits since then
// (changed_at), and what has expired dead. A job that lives again does not expire.
inline constexpr std::string_view ledger_time_tables = R"sql(
ALTER TABLE $p$ledger ADD expires timestamptz;
CREATE INDEX $p$ledger_expires ON $p$ledger (queue, expires)
    WHERE expires IS NOT NULL AND finished_at IS NULL;
DO $do$
DECLARE
    old text;
BEGIN
    SELECT conname INTO STRICT old FROM pg_constraint
        WHERE conrelid = '$p$ledger'::regclass AND contype = 'c'
            AND pg_get_constraintdef(oid) LIKE '%state%running%failed%due IS NOT NULL%';
    EXECUTE format('ALTER TABLE $p$ledger DROP CONSTRAINT %I', old);
END
$do$;
-- All rows kept the one before: NOT VALID saves a look at them.
ALTER TABLE $p$ledger ADD CONSTRAINT $p$ledger_has_due CHECK (
    state = 'pending' AND (due IS NOT NULL) = (sent_epoch = 9223372036854775807)
    OR state <> 'pending' AND (state IN ('running', 'failed')) = (due IS NOT NULL)) NOT VALID;

CREATE FUNCTION $p$ledger_live_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.expires := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER $p$ledger_live_on BEFORE UPDATE ON $p$ledger FOR EACH ROW
    WHEN (OLD.state = 'dead' AND NEW.state = 'pending' AND NEW.expires = OLD.expires)
    EXECUTE FUNCTION $p$ledger_live_on();

CREATE OR REPLACE FUNCTION $p$ledger_recover(of_queue text, who text)
RETURNS TABLE (job text, was_running boolean, is_dead boolean, reason text)
LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY UPDATE $p$ledger AS l SET changed_at = at, changed_by = who,
        state = 'dead', error = 'it has expired'
    FROM (SELECT id FROM $p$ledger WHERE queue = of_queue AND expires <= at
          AND finished_at IS NULL AND (state <> 'running' OR due <= at)
          ORDER BY expires LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED) AS ended
    WHERE l.id = ended.id
    RETURNING l.id, false, true, l.error;

    RETURN QUERY WITH recovered AS (
        UPDATE $p$ledger AS l SET changed_at = at, changed_by = who,
            due = CASE WHEN ended.state <> 'pending' THEN l.due END,
            sent_epoch = CASE WHEN ended.state <> 'pending' THEN l.sent_epoch ELSE 0 END,
            state = CASE WHEN l.attempt < l.max_attempts THEN 'pending' ELSE 'dead' END,
            error = CASE WHEN ended.state = 'running' THEN 'the lease of ' || l.worker || ' ended'
                         ELSE l.error END
        FROM (SELECT id, state FROM $p$ledger WHERE queue = of_queue AND due <= at
              ORDER BY due LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED) AS ended
        WHERE l.id = ended.id
        RETURNING l.id, ended.state AS was, l.state, l.error)
    SELECT r.id, r.was = 'running', r.state = 'dead', r.error
    FROM recovered AS r WHERE r.was <> 'pending';
END
$$;
)sql";

} // namespace orizuru::detail
