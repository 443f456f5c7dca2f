// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The ledger in SQL: the jobs, their history, and the triggers, which hold for every client: they
// refuse changes of state that cannot follow, write the history, and wake reconcilers.

#include <string_view>

namespace orizuru::detail {

// ledger.token      grows by one with each claim
// ledger.worker     the last claim's Ledger, by its id, and the number of the run
// ledger.due        running: when the lease ends; failed: when it is tried again; else NULL
// ledger.sent_epoch of the queue when a message was sent for this pending job; 0 = none was
// ledger_queue      epoch and sequence are what Redis has to have: see LedgerMark; timeline is that
//                   of the server that knows it
//
// Each index has only the rows that somebody looks for, so that finished ones cost nothing.
inline constexpr std::string_view ledger_tables =
    R"sql(
CREATE FUNCTION $p$ledger_timeline() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
            FROM pg_control_system());
EXCEPTION WHEN OTHERS THEN
    RETURN ''; -- some hosted servers do not tell
END
$$;
CREATE TABLE $p$ledger_queue (
    name text PRIMARY KEY,
    epoch bigint NOT NULL DEFAULT 1,
    sequence bigint NOT NULL DEFAULT 0,
    timeline text NOT NULL DEFAULT $p$ledger_timeline()
);
CREATE TABLE $p$ledger (
    id text PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 512),
    queue text NOT NULL,
    payload bytea NOT NULL,
    state text NOT NULL DEFAULT 'pending',
    attempt integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    token bigint NOT NULL DEFAULT 0,
    worker text,
    due timestamptz,
    sent_epoch bigint NOT NULL DEFAULT 0,
    error text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL DEFAULT session_user,
    finished_at timestamptz,
    CHECK (state IN ('pending', 'running', 'completed', 'failed', 'dead')),
    CHECK (attempt BETWEEN 0 AND max_attempts),
    CHECK (attempt < max_attempts OR state NOT IN ('pending', 'failed')),
    CHECK ((state IN ('running', 'failed')) = (due IS NOT NULL)),
    CHECK ((state IN ('completed', 'dead')) = (finished_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.01);
CREATE INDEX $p$ledger_due ON $p$ledger (queue, due) WHERE due IS NOT NULL;
CREATE INDEX $p$ledger_pending ON $p$ledger (queue, sent_epoch, created_at)
    WHERE state = 'pending';
CREATE INDEX $p$ledger_finished ON $p$ledger (queue, finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE $p$ledger_history (
    job text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL,
    who text NOT NULL,
    from_state text,
    to_state text NOT NULL,
    attempt integer NOT NULL,
    note text,
    PRIMARY KEY (job, number)
);
)sql"
    // Which state can follow which. A client that does not write changed_at has not named itself:
    // the history names the database's user.
    R"sql(
CREATE FUNCTION $p$ledger_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state IN ('completed', 'dead') THEN
        RAISE check_violation USING MESSAGE = format('job %s is %s, and never changes again',
                                                     OLD.id, OLD.state);
    END IF;
    IF NEW.token <> OLD.token OR NEW.state = 'running' AND OLD.state <> 'running' THEN
        IF NEW.state <> 'running' OR NEW.token <> OLD.token + 1
                OR NEW.attempt <> OLD.attempt + 1 THEN
            RAISE check_violation USING MESSAGE = format(
                'job %s: a claim makes it running, and token and attempt one higher', OLD.id);
        END IF;
        IF OLD.due > clock_timestamp() THEN
            RAISE check_violation USING MESSAGE = format('job %s is %s until %s: no claim before',
                                                         OLD.id, OLD.state, OLD.due);
        END IF;
    ELSIF NEW.attempt <> OLD.attempt OR OLD.state || '>' || NEW.state NOT IN (
            'pending>pending', 'pending>dead', 'running>running', 'running>pending',
            'running>completed', 'running>failed', 'running>dead', 'failed>pending',
            'failed>dead') THEN
        RAISE check_violation USING MESSAGE = format(
            'job %s cannot go from %s, attempt %s, to %s, attempt %s', OLD.id,
            OLD.state, OLD.attempt, NEW.state, NEW.attempt);
    ELSIF NEW.state = OLD.state THEN
        RETURN NEW;
    END IF;
    IF NEW.changed_at = OLD.changed_at THEN
        NEW.changed_by := session_user;
    END IF;
    NEW.changed_at := clock_timestamp();
    IF NEW.state NOT IN ('running', 'failed') THEN
        NEW.due := NULL;
    END IF;
    IF NEW.state = 'pending' THEN
        NEW.sent_epoch := 0;
    ELSIF NEW.state IN ('completed', 'dead') THEN
        NEW.finished_at := NEW.changed_at;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER $p$ledger_follow BEFORE UPDATE ON $p$ledger
    FOR EACH ROW EXECUTE FUNCTION $p$ledger_follow();

CREATE FUNCTION $p$ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE check_violation USING MESSAGE = format(
        'job %s is %s: what was submitted never changes, and goes only when it is finished',
        OLD.id, OLD.state);
END
$$;
CREATE TRIGGER $p$ledger_keep BEFORE UPDATE OF id, queue, payload, max_attempts, created_at
    ON $p$ledger FOR EACH ROW EXECUTE FUNCTION $p$ledger_refuse();
CREATE TRIGGER $p$ledger_keep_unfinished BEFORE DELETE ON $p$ledger
    FOR EACH ROW WHEN (OLD.finished_at IS NULL) EXECUTE FUNCTION $p$ledger_refuse();

CREATE FUNCTION $p$ledger_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO $p$ledger_history (job, at, who, from_state, to_state, attempt, note)
    VALUES (NEW.id, NEW.changed_at, NEW.changed_by, OLD.state, NEW.state, NEW.attempt,
            CASE WHEN NEW.state IN ('failed', 'dead') OR OLD.state = 'running' AND
                      NEW.state = 'pending' THEN NEW.error END);
    RETURN NULL;
END
$$;
CREATE TRIGGER $p$ledger_write_first AFTER INSERT ON $p$ledger
    FOR EACH ROW EXECUTE FUNCTION $p$ledger_write();
CREATE TRIGGER $p$ledger_write AFTER UPDATE ON $p$ledger
    FOR EACH ROW WHEN (NEW.state <> OLD.state OR NEW.token <> OLD.token)
    EXECUTE FUNCTION $p$ledger_write();
)sql"
    // A reconciler looks at the queues with the lock held exclusively, and sleeps until the first
    // job is due. So a transaction that commits a due job notifies it, unless it can see a job that
    // is due before: for that one the reconciler wakes in time, and looks again. The transaction
    // holds the lock, shared, from before its look until after its commit: either the reconciler's
    // look sees the new row, or the transaction's look sees what the reconciler has seen.
    //
    // The trigger is deferred to the COMMIT, so that a long transaction of the user's holds up
    // nobody. Some hold the lock for long all the same (SET CONSTRAINTS ALL IMMEDIATE, PREPARE
    // TRANSACTION, a very large COMMIT), and a waiter for the exclusive lock holds up all others: a
    // reconciler that does not get it soon looks without it, and looks again soon.
    //
    // In a higher isolation level a look sees the past and proves nothing: then the trigger always
    // notifies, although NOTIFYs make commits wait for each other. One row looks for all that are
    // submitted together. The looks are ORDER BY ... LIMIT 1 and not EXISTS, for which the planner
    // might read all finished rows.
    R"sql(
CREATE FUNCTION $p$ledger_wake() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    still record;
    earliest timestamptz;
    needed boolean;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('$p$ledger'));
    IF NEW.state <> 'pending' THEN
        SELECT due INTO earliest FROM $p$ledger
            WHERE queue = NEW.queue AND due IS NOT NULL ORDER BY due LIMIT 1;
        needed := earliest >= NEW.due;
    ELSIF coalesce(current_setting('$p$ledger.looked', true), '') <> NEW.queue THEN
        SELECT state, sent_epoch INTO still FROM $p$ledger WHERE id = NEW.id;
        IF still.state = 'pending' AND still.sent_epoch = 0 THEN
            PERFORM set_config('$p$ledger.looked', NEW.queue, true);
            SELECT created_at INTO earliest FROM $p$ledger
                WHERE queue = NEW.queue AND state = 'pending' AND sent_epoch = 0
                ORDER BY created_at LIMIT 1;
            needed := earliest >= NEW.created_at;
        END IF;
    END IF;
    IF needed OR current_setting('transaction_isolation') <> 'read committed' THEN
        PERFORM pg_notify('$p$ledger', '');
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER $p$ledger_wake_first AFTER INSERT ON $p$ledger
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.finished_at IS NULL)
    EXECUTE FUNCTION $p$ledger_wake();
CREATE CONSTRAINT TRIGGER $p$ledger_wake AFTER UPDATE ON $p$ledger
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.due < OLD.due OR NEW.due IS NOT NULL AND OLD.due IS NULL
          OR NEW.state = 'pending' AND OLD.state <> 'pending')
    EXECUTE FUNCTION $p$ledger_wake();

CREATE FUNCTION $p$ledger_look()
RETURNS TABLE (queue text, epoch bigint, sequence bigint, unsent boolean, wait_ms float8,
               alone boolean)
LANGUAGE plpgsql AS $$
DECLARE
    users_timeout text := current_setting('lock_timeout');
    here text := $p$ledger_timeline();
BEGIN
    PERFORM set_config('lock_timeout', '100', true);
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtext('$p$ledger'));
        alone := true;
    EXCEPTION WHEN lock_not_available THEN
        alone := false;
    END;
    PERFORM set_config('lock_timeout', users_timeout, true);
    RETURN QUERY SELECT q.name, q.epoch, q.sequence,
        q.timeline <> here
            OR coalesce((SELECT job.sent_epoch FROM $p$ledger AS job WHERE job.queue = q.name AND
                         job.state = 'pending' ORDER BY job.sent_epoch LIMIT 1) < q.epoch, false),
        extract(epoch FROM (SELECT job.due FROM $p$ledger AS job WHERE job.queue = q.name
                            AND job.due IS NOT NULL ORDER BY job.due LIMIT 1)
                           - clock_timestamp())::float8 * 1000,
        alone
    FROM $p$ledger_queue AS q ORDER BY q.name;
END
$$;
)sql"
    // Steps of several statements. A claim by a run that has the job already repeats one whose
    // answer was lost.
    R"sql(
CREATE FUNCTION $p$ledger_claim(job text, who text, lease_ms bigint,
                                OUT verdict text, OUT claimed bigint)
LANGUAGE plpgsql AS $$
DECLARE
    was record;
    at timestamptz;
BEGIN
    SELECT state, worker, due INTO was FROM $p$ledger WHERE id = job;
    IF was.state = 'running' AND was.worker <> who AND was.due > clock_timestamp() THEN
        verdict := 'elsewhere'; -- whatever locks the job
        RETURN;
    END IF;
    SELECT state, attempt, max_attempts, token, worker, due INTO was
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
    ELSIF was.state = 'failed' AND was.due > at THEN
        verdict := 'not_due';
    ELSE
        verdict := 'claimed';
        UPDATE $p$ledger SET state = 'running', attempt = attempt + 1, token = token + 1,
            worker = who, due = at + lease_ms * interval '1 ms', changed_at = at, changed_by = who
            WHERE id = job RETURNING token INTO claimed;
    END IF;
END
$$;

CREATE FUNCTION $p$ledger_recover(of_queue text, who text)
RETURNS TABLE (job text, was_running boolean, is_dead boolean, reason text)
LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY UPDATE $p$ledger AS l SET changed_at = at, changed_by = who,
        state = CASE WHEN l.attempt < l.max_attempts THEN 'pending' ELSE 'dead' END,
        error = CASE WHEN ended.state = 'running' THEN 'the lease of ' || l.worker || ' ended'
                     ELSE l.error END
    FROM (SELECT id, state FROM $p$ledger WHERE queue = of_queue AND due <= at
          ORDER BY due LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED) AS ended
    WHERE l.id = ended.id
    RETURNING l.id, ended.state = 'running', l.state = 'dead', l.error;
END
$$;

CREATE FUNCTION $p$ledger_purge(of_queue text, age_s bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() - age_s * interval '1 second';
    old text[] := ARRAY(SELECT id FROM $p$ledger WHERE queue = of_queue AND finished_at < until
                        ORDER BY finished_at LIMIT 1000);
    purged bigint;
BEGIN
    DELETE FROM $p$ledger_history WHERE job = ANY (old);
    DELETE FROM $p$ledger WHERE id = ANY (old);
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;
)sql";

} // namespace orizuru::detail
