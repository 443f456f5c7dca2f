// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Which commits wake a reconciler that sleeps, in SQL.

#include <string_view>

namespace orizuru::detail {

// A NOTIFY makes commits wait for each other, so only those commits send one that a sleeping
// reconciler does not wake in time for. $p$ledger_sleep says until when it sleeps, in milliseconds
// since 1970. While one is awake, which looks before it sleeps, it is the time in seconds, a new
// one each second: less than 100000000000, which is less than any due time.
//
//   commit       lock, shared ─► read the sequence ─► NOTIFY when due before ─► COMMIT ─► unlock
//   reconciler   write the sequence ─► lock, exclusive ─► unlock ─► look ─► sleep
//
// A commit that has read what was there before has ended when the reconciler looks: the look sees
// it. All others have read the new value. They wait for a reconciler only while that waits for the
// ones before them, 100 ms at most: then it looks again soon, since nobody tells it of those
// (SET CONSTRAINTS ALL IMMEDIATE, PREPARE TRANSACTION and a very large COMMIT hold the lock long).
//
// The value is odd until that look is over: one that stays so is of a reconciler that has died
// meanwhile, or could not wait. Those that sleep look then, as they do after a time in seconds that
// is 2 s old.
//
// A sequence, because it is written in place and outside of transactions: an open snapshot neither
// makes reading it slower nor sees an old value. And no look at other jobs, which crawls over the
// dead entries of the index as long as a snapshot is open.
inline constexpr std::string_view ledger_sleep_tables =
    R"sql(
CREATE SEQUENCE $p$ledger_sleep;
GRANT SELECT ON SEQUENCE $p$ledger_sleep TO PUBLIC; -- a time; triggers read it

CREATE FUNCTION $p$doze(who text, for_ms bigint, OUT asleep_until bigint, OUT told_of_all boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit = off;
    asleep_until := setval(('$p$' || who || '_sleep')::regclass,
        ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + for_ms) | 1);
    BEGIN
        SET LOCAL lock_timeout = 100;
        PERFORM pg_advisory_xact_lock(hashtext('$p$' || who || '_sleep'));
        told_of_all := true;
    EXCEPTION WHEN lock_not_available THEN
        told_of_all := false;
    END;
END
$$;
CREATE FUNCTION $p$wake(who text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit = off;
    PERFORM setval(('$p$' || who || '_sleep')::regclass,
                   extract(epoch FROM clock_timestamp())::bigint);
END
$$;

CREATE OR REPLACE FUNCTION $p$ledger_wake() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asleep_until bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('$p$ledger_sleep'));
    SELECT last_value INTO asleep_until FROM $p$ledger_sleep;
    IF asleep_until > coalesce(extract(epoch FROM NEW.due) * 1000, 100000000000) THEN
        PERFORM pg_notify('$p$ledger', '');
    END IF;
    RETURN NULL;
END
$$;
DROP TRIGGER IF EXISTS $p$ledger_wake_first ON $p$ledger;
DROP TRIGGER IF EXISTS $p$ledger_wake ON $p$ledger;
CREATE CONSTRAINT TRIGGER $p$ledger_wake_first AFTER INSERT ON $p$ledger
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.finished_at IS NULL)
    EXECUTE FUNCTION $p$ledger_wake();
CREATE CONSTRAINT TRIGGER $p$ledger_wake AFTER UPDATE ON $p$ledger
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.due < OLD.due OR NEW.due IS NOT NULL AND OLD.due IS NULL
          OR NEW.state = 'pending' AND OLD.state <> 'pending')
    EXECUTE FUNCTION $p$ledger_wake();

-- The last column is for reconcilers that run since the version before: nobody tells them of
-- anything, and they look twice a second when it is false.
CREATE OR REPLACE FUNCTION $p$ledger_look()
RETURNS TABLE (queue text, epoch bigint, sequence bigint, unsent boolean, wait_ms float8,
               alone boolean)
LANGUAGE plpgsql AS $$
DECLARE
    here text := $p$ledger_timeline();
BEGIN
    -- ORDER BY and LIMIT, since for EXISTS the planner might read all finished rows.
    RETURN QUERY SELECT q.name, q.epoch, q.sequence,
        q.timeline <> here
            OR coalesce((SELECT job.sent_epoch FROM $p$ledger AS job WHERE job.queue = q.name AND
                         job.state = 'pending' ORDER BY job.sent_epoch LIMIT 1) < q.epoch, false),
        extract(epoch FROM least(
            (SELECT job.due FROM $p$ledger AS job WHERE job.queue = q.name
             AND job.due IS NOT NULL ORDER BY job.due LIMIT 1),
            (SELECT job.expires FROM $p$ledger AS job WHERE job.queue = q.name
             AND job.expires IS NOT NULL AND job.finished_at IS NULL AND job.state <> 'running'
             ORDER BY job.expires LIMIT 1)) - clock_timestamp())::float8 * 1000,
        false
    FROM $p$ledger_queue AS q ORDER BY q.name;
END
$$;
)sql";

} // namespace orizuru::detail
