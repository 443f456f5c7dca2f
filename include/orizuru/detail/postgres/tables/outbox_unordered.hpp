// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Adds to the outbox (outbox.hpp) the parts for messages in no order.

#include <string_view>

namespace orizuru::detail {

// Such a message has no place in outbox_order, and its COMMIT takes no lock that another one waits
// for. It sends a NOTIFY only while a relay sleeps, see ledger_sleep.hpp.
inline constexpr std::string_view outbox_unordered_tables = R"sql(
ALTER TABLE $p$outbox ADD ordered boolean NOT NULL DEFAULT true;
-- By an expression, so that no plan takes the primary key for the order of one queue.
CREATE INDEX $p$outbox_unordered ON $p$outbox (queue, (message + 0)) WHERE NOT ordered;
CREATE SEQUENCE $p$outbox_sleep;
GRANT SELECT ON SEQUENCE $p$outbox_sleep TO PUBLIC;

CREATE FUNCTION $p$outbox_wake() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asleep_until bigint;
BEGIN
    INSERT INTO $p$outbox_queue (name) VALUES (NEW.queue) ON CONFLICT DO NOTHING;
    PERFORM pg_advisory_xact_lock_shared(hashtext('$p$outbox_sleep'));
    SELECT last_value INTO asleep_until FROM $p$outbox_sleep;
    IF asleep_until > 100000000000 THEN
        PERFORM pg_notify('$p$outbox', '');
    END IF;
    RETURN NULL;
END
$$;
DROP TRIGGER IF EXISTS $p$outbox_commit ON $p$outbox;
CREATE CONSTRAINT TRIGGER $p$outbox_commit AFTER INSERT ON $p$outbox
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.ordered)
    EXECUTE FUNCTION $p$outbox_commit();
CREATE CONSTRAINT TRIGGER $p$outbox_wake AFTER INSERT ON $p$outbox
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NOT NEW.ordered)
    EXECUTE FUNCTION $p$outbox_wake();
)sql";

} // namespace orizuru::detail
