// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Purging in SQL: what a foreign key of a table of yours refers to stays, and the rest goes.

#include <string_view>

namespace orizuru::detail {

// Returns a row for what it has purged, of a thousand at most, with the place where the next call
// goes on, and a row for each one that is held. A place is a time, in microseconds since 1970, and
// those held from that time: so what is held is looked at once, however much there is of it.
//
// One that is held fails the DELETE of all that go with it. So a DELETE that fails is tried with
// half as many, down to one, and after a success with twice as many again. Keys that are DEFERRED
// are checked at once: else COMMIT would fail.
//
// One that another transaction has locked, which may be about to refer to it, is held, too. A call
// waits 20 times 50 ms at most, and leaves the rest to the next one: other work waits for it.
//
// ledger_purge is for programs that run since a version before.
inline constexpr std::string_view purging_tables = R"sql(
CREATE FUNCTION $p$purge(who text, of_name text, age_s bigint, from_us bigint, but text[])
RETURNS TABLE (purged bigint, held text, reason text, next_us bigint, next_but text[])
LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() - age_s * interval '1 second';
    place timestamptz := timestamptz 'epoch' + from_us * interval '1 microsecond';
    old text[];
    ends timestamptz[];
    gone text[];
    kept text[] := '{}';
    reasons text[] := '{}';
    first integer := 1;
    many integer := 1000;
    waits integer := 0;
    users_timeout text := current_setting('lock_timeout');
BEGIN
    IF who = 'ledger' THEN
        SELECT array_agg(l.id), array_agg(l.finished_at) INTO old, ends FROM (
            SELECT id, finished_at FROM $p$ledger WHERE queue = of_name AND finished_at < until
                AND finished_at >= place AND id <> ALL (but)
            ORDER BY finished_at LIMIT 1000) AS l;
    ELSE
        SELECT array_agg(m.id), array_agg(m.processed_at) INTO old, ends FROM (
            SELECT id, processed_at FROM $p$inbox WHERE scope = of_name AND processed_at < until
                AND processed_at >= place AND id <> ALL (but)
            ORDER BY processed_at LIMIT 1000) AS m;
    END IF;
    purged := 0;
    next_us := from_us;
    next_but := but;
    PERFORM set_config('lock_timeout', '50', true);
    LOOP -- once at least: one without the rights is refused, whatever there is
        BEGIN
            SET CONSTRAINTS ALL IMMEDIATE;
            IF who = 'ledger' THEN
                WITH deleted AS (
                    DELETE FROM $p$ledger WHERE id = ANY (old[first:first + many - 1])
                        AND finished_at < until RETURNING id)
                SELECT array_agg(id) INTO gone FROM deleted;
                DELETE FROM $p$ledger_history WHERE job = ANY (gone);
            ELSE
                WITH deleted AS (
                    DELETE FROM $p$inbox WHERE scope = of_name
                        AND id = ANY (old[first:first + many - 1]) AND processed_at < until
                        RETURNING id)
                SELECT array_agg(id) INTO gone FROM deleted;
            END IF;
            purged := purged + coalesce(cardinality(gone), 0);
            first := first + many;
            many := least(many * 2, 1000);
        EXCEPTION WHEN foreign_key_violation OR restrict_violation OR lock_not_available THEN
            IF SQLSTATE = '55P03' THEN
                waits := waits + 1;
            END IF;
            IF many > 1 THEN
                many := many / 2;
                CONTINUE;
            END IF;
            kept := kept || old[first];
            reasons := reasons || SQLERRM;
            IF ends[first] > place THEN
                place := ends[first];
                next_us := round(extract(epoch FROM place) * 1000000)::bigint;
                next_but := '{}';
            END IF;
            next_but := next_but || old[first];
            first := first + 1;
        END;
        EXIT WHEN first > coalesce(cardinality(old), 0) OR waits >= 20;
    END LOOP;
    PERFORM set_config('lock_timeout', users_timeout, true);
    RETURN NEXT;
    RETURN QUERY SELECT NULL::bigint, k.id, k.why, NULL::bigint, NULL::text[]
        FROM unnest(kept, reasons) AS k (id, why);
END
$$;

GRANT EXECUTE ON FUNCTION $p$purge(text, text, bigint, bigint, text[]) TO PUBLIC;

CREATE OR REPLACE FUNCTION $p$ledger_purge(of_queue text, age_s bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT p.purged FROM $p$purge('ledger', of_queue, age_s, 0, '{}') AS p
            WHERE p.purged IS NOT NULL);
END
$$;
)sql";

} // namespace orizuru::detail
