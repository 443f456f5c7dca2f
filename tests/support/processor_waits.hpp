// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// How long a busy machine keeps the threads of this process from running: what they do in time on
// an idle one may then be late. A thread that mostly sleeps tells only part of that (lateness.hpp):
// the kernel lets it run at once, unless the whole machine stands still.

#pragma once

#include "support/lateness.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

namespace orizuru::test {

class ProcessorWaits {
  public:
    /// How long the threads that now live have been ready to run since the construction without a
    /// processor to run on, as the kernel counts it, or how late one that sleeps has been.
    [[nodiscard]] std::chrono::milliseconds total() const {
        std::chrono::nanoseconds sum{0};
        for (const auto& [thread, waited] : by_thread()) {
            const auto before = m_before.find(thread);
            sum += waited - (before == m_before.end() ? sum.zero() : before->second);
        }
        return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(sum),
                        m_lateness.total());
    }

  private:
    using ByThread = std::map<std::string, std::chrono::nanoseconds>;

    static ByThread by_thread() {
        ByThread waits;
        std::error_code failed;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failed)) {
            long long run = 0;
            long long waited = 0;
            if (std::ifstream(task.path() / "schedstat") >> run >> waited) {
                waits.emplace(task.path().filename(), waited);
            }
        }
        return waits;
    }

    Lateness m_lateness;
    ByThread m_before = by_thread();
};

} // namespace orizuru::test
