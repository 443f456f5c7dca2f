// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The inbox in SQL.

#include <string_view>

namespace orizuru::detail {

// inbox_mark returns the transaction, or NULL when the id was marked before. It waits for one that
// is about to mark the same id, but no longer than it is told; lock_timeout, for which 0 would be
// for ever, is 55P03.
inline constexpr std::string_view inbox_tables = R"sql(
CREATE TABLE $p$inbox (
    scope text NOT NULL,
    id text NOT NULL,
    processed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, id)
);
CREATE INDEX $p$inbox_processed_at ON $p$inbox (scope, processed_at);

CREATE FUNCTION $p$inbox_mark(new_scope text, new_id text, wait_ms bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    users_timeout text := current_setting('lock_timeout');
    marked integer;
BEGIN
    PERFORM set_config('lock_timeout', greatest(wait_ms, 1)::text, true);
    INSERT INTO $p$inbox (scope, id) VALUES (new_scope, new_id) ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS marked = ROW_COUNT;
    PERFORM set_config('lock_timeout', users_timeout, true);
    RETURN CASE WHEN marked = 1 THEN txid_current() END;
END
$$;
)sql";

} // namespace orizuru::detail
