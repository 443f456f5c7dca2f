// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Binds the functions to the schema that has the tables, in SQL.
//
// A trigger runs by the search_path of the transaction that fires it, a deferred one by the path at
// COMMIT. Where each tenant has a schema, that may be another tenant's. So the functions name the
// schema in each table and function of theirs, which costs nothing. SET search_path at each
// function has the server set and reset it in each call: a batch then takes 17 % longer.

#include <string_view>

namespace orizuru::detail {

// home       the schema that the functions name; NULL before they are bound
// doze, wake look sequences up by name, as a string, which would go by search_path
// outbox_... refuse a copy of the tables whose functions still name the schema they came from: else
//            the copy's messages would be given places in the other's order, and never be sent
inline constexpr std::string_view binding_tables = R"sql(
CREATE FUNCTION $p$home() RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT NULL::text';

CREATE FUNCTION $p$sleep_of(who text) RETURNS regclass LANGUAGE plpgsql AS $$
BEGIN
    IF who = 'ledger' THEN
        RETURN (SELECT tableoid FROM $p$ledger_sleep);
    END IF;
    RETURN (SELECT tableoid FROM $p$outbox_sleep);
END
$$;
CREATE OR REPLACE FUNCTION $p$doze(who text, for_ms bigint, OUT asleep_until bigint,
                                   OUT told_of_all boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit = off;
    asleep_until := setval($p$sleep_of(who),
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
CREATE OR REPLACE FUNCTION $p$wake(who text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit = off;
    PERFORM setval($p$sleep_of(who), extract(epoch FROM clock_timestamp())::bigint);
END
$$;

CREATE FUNCTION $p$refuse_moved(schema text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE object_not_in_prerequisite_state USING MESSAGE = format(
        'the tables ''$p$...'' of the schema %I have the functions of the schema %I: the owner '
        'binds them by orizuru::Schema::apply', schema, $p$home());
END
$$;
CREATE OR REPLACE FUNCTION $p$outbox_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_SCHEMA <> $p$home() THEN
        PERFORM $p$refuse_moved(TG_TABLE_SCHEMA);
    END IF;
    -- One lock for all schemas: a transaction with pushes in two of them takes it once, so that no
    -- order of the two is a deadlock.
    PERFORM pg_advisory_xact_lock(hashtextextended('$p$outbox', 0));
    INSERT INTO $p$outbox_queue (name) VALUES (NEW.queue) ON CONFLICT DO NOTHING;
    INSERT INTO $p$outbox_order (queue, message) VALUES (NEW.queue, NEW.message);
    PERFORM pg_notify('$p$outbox', '');
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION $p$outbox_wake() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asleep_until bigint;
BEGIN
    IF TG_TABLE_SCHEMA <> $p$home() THEN
        PERFORM $p$refuse_moved(TG_TABLE_SCHEMA);
    END IF;
    INSERT INTO $p$outbox_queue (name) VALUES (NEW.queue) ON CONFLICT DO NOTHING;
    PERFORM pg_advisory_xact_lock_shared(hashtext('$p$outbox_sleep'));
    SELECT last_value INTO asleep_until FROM $p$outbox_sleep;
    IF asleep_until > 100000000000 THEN
        PERFORM pg_notify('$p$outbox', '');
    END IF;
    RETURN NULL;
END
$$;
-- The trigger functions above call them as the user who pushes.
GRANT EXECUTE ON FUNCTION $p$home(), $p$sleep_of(text), $p$refuse_moved(text) TO PUBLIC;
)sql";

// Has what follows in this transaction be made in the schema of the tables that search_path finds,
// which need not be the first one that it names.
inline constexpr std::string_view go_home = R"sql(
DO $do$
BEGIN
    PERFORM set_config('search_path',
                       quote_ident(n.nspname) || ', ' || current_setting('search_path'), true)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass('$p$schema');
END
$do$;
)sql";

// Ends each migration; alone it binds tables that were moved or copied to another schema. It finds
// the names of the library in the functions' sources, except those in strings, and puts the schema
// before them, in place of the one from which they came. It looks for whole names, since a prefix
// may begin the name of a column. It tells its functions by the number of their arguments, too:
// <prefix>outbox_wake is a function of two prefixes, when one is <prefix>outbox_.
inline constexpr std::string_view bind_tables = R"sql(
DO $bind$
DECLARE
    names text := '$p$(home|sleep_of|refuse_moved|purge|inbox|outbox|outbox_order|outbox_queue'
        '|outbox_sleep|ledger|ledger_history|ledger_queue|ledger_sleep|ledger_timeline'
        '|ledger_recover|ledger_hold)\M';
    before text := quote_ident($p$home()) || '.';
    here record;
    f record;
    source text;
BEGIN
    SELECT n.oid, n.nspname INTO STRICT here FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('$p$schema');
    FOR f IN SELECT prosrc, pg_get_functiondef(oid) AS definition FROM pg_proc
            WHERE pronamespace = here.oid AND proname || '/' || pronargs = ANY (
            SELECT '$p$' || unnest('{doze/2, wake/1, sleep_of/1, refuse_moved/1, purge/5,
                inbox_mark/3, outbox_commit/0, outbox_wake/0, ledger_timeline/0, ledger_follow/0,
                ledger_refuse/0, ledger_write/0, ledger_recover/2, ledger_purge/2, ledger_revive/0,
                ledger_live_on/0, ledger_wake/0, ledger_look/0, ledger_row/0, ledger_claim/3,
                ledger_hold/1, ledger_complete/3, ledger_complete/5, ledger_take/4,
                ledger_sent/6}'::text[])) LOOP
        source := f.prosrc;
        IF before IS NOT NULL THEN
            source := regexp_replace(source, '(^|[^[:alnum:]_.''"])'
                || regexp_replace(before, '(\W)', '\\\1', 'g') || names, '\1$p$\2', 'g');
        END IF;
        source := regexp_replace(source, '(^|[^[:alnum:]_.''"])' || names,
            '\1' || replace(quote_ident(here.nspname), '\', '\\') || '.$p$\2', 'g');
        -- In a string's quotes: the name of the schema may have what ends those of the definition.
        EXECUTE regexp_replace(left(f.definition, strpos(f.definition, f.prosrc) - 1), '\S+$', '')
            || quote_literal(source);
    END LOOP;
    EXECUTE format('CREATE OR REPLACE FUNCTION $p$home() RETURNS text LANGUAGE sql IMMUTABLE '
                   'AS %L', format('SELECT %L::text', here.nspname));
END
$bind$;
)sql";

} // namespace orizuru::detail
