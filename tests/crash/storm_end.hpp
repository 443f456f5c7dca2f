// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How a storm ends: whoever hangs is told, all are killed, and what they leave behind is judged.
// Part of storm.hpp.

#pragma once

#include "crash/aftermath.hpp"
#include "crash/storm.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// Each process must go on with its work, at the latest when its pause is over.
inline void Storm::tell_hung() {
    struct Silent {
        const Member* member;
        std::uintmax_t written;
    };
    std::vector<Silent> silent;
    for (const Member& member : m_members) {
        silent.push_back({&member, Journal::size(member.worker.work().journal)});
    }
    // Redis counts whole seconds: until then an idle one may have spoken before.
    const auto idle_counts = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    const auto gets_on = [&](const Silent& one) {
        const Work& work = one.member->worker.work();
        return work.role == "collector" ? std::chrono::steady_clock::now() >= idle_counts &&
                                              connections(*one.member, " idle=0 ") > 0
                                        : Journal::size(work.journal) > one.written;
    };
    static_cast<void>(eventually(
        [&] {
            look_around();
            std::erase_if(silent, gets_on);
            return silent.empty();
        },
        longest_silence));
    for (const Silent& one : silent) {
        const Work& work = one.member->worker.work();
        m_wrong.push_back(work.role + ' ' + std::to_string(work.index) + " hangs");
    }
}

/// When all is quiet, some consumers come to wait, lose their connections, wait again, and die: all
/// that waits in Redis then is theirs.
inline void Storm::leave_ghosts() {
    for (Member& member : m_members) {
        if (has_proxy(member.worker.work())) {
            start(member);
            bool came = eventually([&] { return waiting(member) == 1; });
            member.proxy->lose_clients();
            came = came && eventually([&] { return waiting(member) == 2; });
            if (!came) {
                m_wrong.emplace_back("a consumer did not come to wait");
            }
            kill(member);
        }
    }
}

inline std::vector<std::string> Storm::finish() {
    look_around();
    if (std::exchange(m_redis_resumes_at, std::nullopt)) {
        m_server.resume();
    }
    tell_hung();
    for (Member& member : m_members) {
        kill(member);
    }
    Aftermath aftermath(m_server.uri(), m_keys, m_folder.path());
    aftermath.drain();
    leave_ghosts();
    aftermath.outlive_ghosts();
    m_ghosts.clear();
    const Aftermath::Verdict verdict = aftermath.judge();
    if (verdict.refused > 0) {
        m_report.came("settlement refused to a late owner", verdict.refused);
    }
    m_report.came("push confirmed", verdict.pushed); // 0: there was no load
    std::ranges::copy(verdict.wrong, std::back_inserter(m_wrong));
    return std::move(m_wrong);
}

} // namespace orizuru::test
