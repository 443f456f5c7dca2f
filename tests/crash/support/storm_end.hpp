// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The end of a storm: reports the processes that hang, kills all, and judges the rest. Part of
// storm.hpp.

#pragma once

#include "crash/support/aftermath.hpp"
#include "crash/support/storm.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// When all is quiet, some consumers wait, lose their connections, wait again, and die: all waits
/// in Redis are theirs then.
inline void Storm::leave_ghosts() {
    for (Member& member : members()) {
        if (has_proxy(member.work())) {
            start(member);
            bool came = eventually([&] { return waiting(member) == 1; });
            m_proxies.at(member.work().index)->lose_clients();
            came = came && eventually([&] { return waiting(member) == 2; });
            if (!came) {
                wrong().emplace_back("a consumer did not come to wait");
            }
            kill(member);
        }
    }
}

inline std::vector<std::string> Storm::finish() {
    look_around();
    free_redis();
    // Redis counts whole seconds: until then an idle one may have spoken before.
    const auto idle_counts = Clock::now() + std::chrono::milliseconds(1500);
    tell_hung([&](const Member& member, std::uintmax_t written) {
        return member.work().role == "collector"
                   ? Clock::now() >= idle_counts && connections(member, " idle=0 ") > 0
                   : Journal::size(member.work().journal) > written;
    });
    for (Member& member : members()) {
        kill(member);
    }
    judge_lives(m_redis, outages());
    Aftermath aftermath(server().plain_uri(), m_keys, folder());
    aftermath.drain();
    leave_ghosts();
    aftermath.outlive_ghosts();
    m_ghosts.clear();
    const Aftermath::Verdict verdict = aftermath.judge();
    if (verdict.refused > 0) {
        report().came(refused_late, verdict.refused);
    }
    if (const std::uint64_t count = commands_fenced(); count > 0) {
        report().came(fenced, count);
    }
    report().came("push confirmed", verdict.pushed); // 0: there was no load
    std::ranges::copy(verdict.wrong, std::back_inserter(wrong()));
    return std::move(wrong());
}

} // namespace orizuru::test
