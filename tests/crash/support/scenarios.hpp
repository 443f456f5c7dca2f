// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The plays by their names, as the options of a program choose them.

#pragma once

#include "crash/support/plays.hpp"
#include "crash/support/stage.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

struct Scenario {
    std::string_view name;
    void (*play)(Stage& stage);
};

inline constexpr std::array scenarios = std::to_array<Scenario>({
    {"push", plays::push},
    {"push_all", plays::push_all},
    {"push_all_long", plays::push_all_long},
    {"push_buffered", plays::push_buffered},
    {"push_async", plays::push_async},
    {"fetch", plays::fetch},
    {"fetch_waiting", plays::fetch_waiting},
    {"fetch_batch", plays::fetch_batch},
    {"ack_out_of_order", plays::ack_out_of_order},
    {"ack_deferred", plays::ack_deferred},
    {"reject", plays::reject},
    {"push_on", plays::push_on},
    {"push_on_replaced", plays::push_on_replaced},
    {"bury", plays::bury},
    {"settle_awaited", plays::settle_awaited},
    {"release", plays::release},
    {"undecodable", plays::undecodable},
    {"beat", plays::beat},
    {"collect", plays::collect},
    {"adopt", plays::adopt},
    {"reconnect", plays::reconnect},
    {"taken_for_dead", plays::taken_for_dead},
    {"stop", plays::stop},
});

/// "all", or one by its name. `point`: one point of a scenario, or "all".
inline std::vector<Scenario> chosen(std::string_view name, std::string_view point) {
    if (name == "all" && point != "all") {
        throw std::invalid_argument("point " + std::string(point) +
                                    " is of one scenario, which --scenario has to name");
    }
    std::vector<Scenario> found;
    for (const Scenario& scenario : scenarios) {
        if (name == "all" || name == scenario.name) {
            found.push_back(scenario);
        }
    }
    if (found.empty()) {
        throw std::invalid_argument("no such scenario: " + std::string(name));
    }
    return found;
}

} // namespace orizuru::test
