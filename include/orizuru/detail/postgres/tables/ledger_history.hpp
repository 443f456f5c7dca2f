// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Adds to the ledger's tables (ledger.hpp) the parts by which a job may do without the usual part
// of its history.

#include <string_view>

namespace orizuru::detail {

// ledger.whole_history  false: no entry for the submission, the claim of a pending job, its
//                       completion, and a failed job that is pending again
// ledger.submitted_by   the call of submit_once, so that it knows its own job again
inline constexpr std::string_view ledger_history_tables = R"sql(
ALTER TABLE $p$ledger ADD whole_history boolean NOT NULL DEFAULT true, ADD submitted_by text;

DROP TRIGGER $p$ledger_write_first ON $p$ledger;
CREATE TRIGGER $p$ledger_write_first AFTER INSERT ON $p$ledger
    FOR EACH ROW WHEN (NEW.whole_history) EXECUTE FUNCTION $p$ledger_write();
DROP TRIGGER $p$ledger_write ON $p$ledger;
CREATE TRIGGER $p$ledger_write AFTER UPDATE ON $p$ledger
    FOR EACH ROW WHEN ((NEW.state <> OLD.state OR NEW.token <> OLD.token) AND (
        NEW.whole_history OR NEW.state = 'dead' OR OLD.state = 'dead'
        OR OLD.state = 'running' AND NEW.state <> 'completed'))
    EXECUTE FUNCTION $p$ledger_write();
)sql";

} // namespace orizuru::detail
