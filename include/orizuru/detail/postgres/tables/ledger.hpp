// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The ledger in SQL: the jobs, their history, and the triggers, which hold for every client: they
// refuse changes of state that cannot follow, and write the history.

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
    // Steps of several statements.
    R"sql(
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
