// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Checks the rows of the ledger, in SQL, whatever client writes them.

#include <string_view>

namespace orizuru::detail {

// A trigger, whose expressions a session keeps: CHECKs, of which there were six, are read from the
// catalogue anew in each statement, which took a tenth of a run. Like the triggers for what can
// follow, it does not see what a trigger of yours with a later name changes, nor what is written
// with triggers switched off.
//
// The lock comes first: a migration that takes a weaker one before meets those who wait for it.
inline constexpr std::string_view ledger_rows_tables = R"sql(
LOCK TABLE $p$ledger IN ACCESS EXCLUSIVE MODE;
CREATE FUNCTION $p$ledger_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF octet_length(NEW.id) NOT BETWEEN 1 AND 512 THEN
        RAISE check_violation USING MESSAGE = 'the id of a job has 1 to 512 bytes';
    END IF;
    -- What is NULL the columns refuse.
    IF (NEW.attempt BETWEEN 0 AND NEW.max_attempts
            AND (NEW.attempt < NEW.max_attempts OR NEW.state NOT IN ('pending', 'failed'))
            AND (NEW.finished_at IS NOT NULL) = (NEW.state IN ('completed', 'dead'))
            AND (CASE WHEN NEW.state = 'pending'
                      THEN (NEW.due IS NOT NULL) = (NEW.sent_epoch = 9223372036854775807)
                      WHEN NEW.state IN ('running', 'failed') THEN NEW.due IS NOT NULL
                      WHEN NEW.state IN ('completed', 'dead') THEN NEW.due IS NULL
                      ELSE NEW.state IS NULL END)) IS NOT FALSE THEN
        RETURN NEW;
    END IF;
    RAISE check_violation USING MESSAGE = format(
        'job %s cannot be %s with attempt %s of %s, due %s, finished_at %s, sent_epoch %s', NEW.id,
        NEW.state, NEW.attempt, NEW.max_attempts, coalesce(NEW.due::text, 'NULL'),
        coalesce(NEW.finished_at::text, 'NULL'), NEW.sent_epoch);
END
$$;
-- After the library's other triggers, which complete the row: they go by their names.
CREATE TRIGGER $p$ledger_row BEFORE INSERT OR UPDATE ON $p$ledger
    FOR EACH ROW EXECUTE FUNCTION $p$ledger_row();
ALTER TABLE $p$ledger DROP CONSTRAINT IF EXISTS $p$ledger_id_check,
    DROP CONSTRAINT IF EXISTS $p$ledger_state_check, DROP CONSTRAINT IF EXISTS $p$ledger_check,
    DROP CONSTRAINT IF EXISTS $p$ledger_check1, DROP CONSTRAINT IF EXISTS $p$ledger_check3,
    DROP CONSTRAINT IF EXISTS $p$ledger_has_due;
)sql";

} // namespace orizuru::detail
