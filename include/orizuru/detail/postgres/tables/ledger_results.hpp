// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Adds to the ledger's tables (ledger.hpp) the parts by which a job leaves something behind. Tables
// that had this version before ledger_run.hpp keep its ledger_complete, for programs that still
// run.

#include <string_view>

namespace orizuru::detail {

inline constexpr std::string_view ledger_results_tables = R"sql(
ALTER TABLE $p$ledger ADD result bytea;
)sql";

} // namespace orizuru::detail
