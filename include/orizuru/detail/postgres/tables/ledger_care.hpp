// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Adds to the ledger's tables (ledger.hpp, ledger_loss.hpp) the parts by which dead jobs are found
// among finished ones, and live again.

#include <string_view>

namespace orizuru::detail {

// A job that lives again has nothing of its last delivery; its history goes on. A purge asks once
// more, behind the lock of each job, whether it is finished, and takes the history of those only.
inline constexpr std::string_view ledger_care_tables =
    R"sql(
CREATE INDEX $p$ledger_dead ON $p$ledger (queue, id) WHERE state = 'dead';

DROP TRIGGER $p$ledger_follow ON $p$ledger;
CREATE TRIGGER $p$ledger_follow BEFORE UPDATE ON $p$ledger
    FOR EACH ROW WHEN (NOT (OLD.state = 'dead' AND NEW.state = 'pending'))
    EXECUTE FUNCTION $p$ledger_follow();
DROP TRIGGER $p$ledger_keep ON $p$ledger;
CREATE TRIGGER $p$ledger_keep BEFORE UPDATE OF id, queue, payload, created_at
    ON $p$ledger FOR EACH ROW EXECUTE FUNCTION $p$ledger_refuse();
CREATE TRIGGER $p$ledger_keep_attempts BEFORE UPDATE OF max_attempts ON $p$ledger
    FOR EACH ROW WHEN (NOT (OLD.state = 'dead' AND NEW.state = 'pending'))
    EXECUTE FUNCTION $p$ledger_refuse();

CREATE FUNCTION $p$ledger_revive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.token <> OLD.token OR NEW.attempt <> OLD.attempt THEN
        RAISE check_violation USING MESSAGE = format(
            'job %s: who revives it leaves its token and its attempts as they are', OLD.id);
    END IF;
    IF NEW.changed_at = OLD.changed_at THEN
        NEW.changed_by := session_user;
    END IF;
    NEW.changed_at := clock_timestamp();
    NEW.finished_at := NULL;
    NEW.sent_epoch := 0;
    NEW.sent_at := NULL;
    NEW.sent_again := 0;
    RETURN NEW;
END
$$;
CREATE TRIGGER $p$ledger_revive BEFORE UPDATE ON $p$ledger
    FOR EACH ROW WHEN (OLD.state = 'dead' AND NEW.state = 'pending')
    EXECUTE FUNCTION $p$ledger_revive();

CREATE OR REPLACE FUNCTION $p$ledger_purge(of_queue text, age_s bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() - age_s * interval '1 second';
    old text[] := ARRAY(SELECT id FROM $p$ledger WHERE queue = of_queue AND finished_at < until
                        ORDER BY finished_at LIMIT 1000);
    purged text[];
BEGIN
    WITH gone AS (DELETE FROM $p$ledger WHERE id = ANY (old) AND finished_at < until RETURNING id)
        SELECT array_agg(id) INTO purged FROM gone;
    DELETE FROM $p$ledger_history WHERE job = ANY (purged);
    RETURN coalesce(array_length(purged, 1), 0);
END
$$;
)sql";

} // namespace orizuru::detail
