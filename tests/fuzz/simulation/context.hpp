// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What all parts of one run of the seeded test share.

#pragma once

#include "fuzz/model/server.hpp"
#include "fuzz/simulation/chance.hpp"
#include "fuzz/simulation/faults.hpp"
#include "fuzz/simulation/sabotage.hpp"
#include "fuzz/simulation/scenario.hpp"
#include "fuzz/simulation/series_account.hpp"

#include <functional>
#include <iostream>
#include <map>
#include <string>

namespace orizuru::test {

enum class Phase {
    storm, ///< faults come
    calm,  ///< none comes; everything is settled
    still  ///< the same, and nothing more is fetched
};

/// Redis for three users.
struct Users {
    Server& all_rights;
    Server& may_not_settle;
    Server& may_not_put; ///< what was fetched into a list
};

struct Context {
    Server& redis;
    Users users;
    const Scenario& scenario;
    const Sabotage* sabotage;
    Faults& faults;
    bool trace;
    Chance chance;
    /// A missing heartbeat counts only while Redis takes writes for long enough; else at once.
    bool counts_writes = false;
    std::map<std::string, SeriesAccount, std::less<>> series = {}; ///< by their keys
    Phase phase = Phase::storm;
    int made = 0; ///< identities and mirrors, so that each has a number of its own

    [[nodiscard]] bool quiet() const noexcept { return phase != Phase::storm; }
    /// A fault comes.
    [[nodiscard]] bool strikes(double rate) { return !quiet() && chance.happens(rate); }
    [[nodiscard]] bool has(Defect defect) const noexcept {
        return sabotage != nullptr && sabotage->defect == defect;
    }
    /// The lists are looked at all the time, not only at the end: a rewind makes them differ, and a
    /// sabotage must show in what becomes of the messages.
    [[nodiscard]] bool exact() const noexcept {
        return scenario.rewind == 0 && sabotage == nullptr;
    }
    template <class... Parts>
    void say(const Parts&... parts) const {
        if (trace) {
            (std::cout << ... << parts) << '\n';
        }
    }
};

} // namespace orizuru::test
