// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The dead messages that a viewer has chosen by their error: lists them, and runs or removes them
// in steps that are short, so that others are served between them.

#include <orizuru/detail/ops/web/host_name.hpp>
#include <orizuru/error.hpp>
#include <orizuru/ops/inspector.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail::web {

/// Which they are: it is the same for the list, the count and the steps.
class DeadFilter {
  public:
    /// Those whose reason has this text, in any case of ASCII, with any space for a space; and that
    /// died until this time, if it is given.
    explicit DeadFilter(std::string_view reason, std::optional<JobTime> until)
        : m_reason(comparable(reason)), m_until(until) {}

    [[nodiscard]] bool operator()(const PlacedMessage& message) const {
        return (!m_until || !message.time || *message.time <= *m_until) &&
               (m_reason.empty() || comparable(message.reason).find(m_reason) != std::string::npos);
    }
    [[nodiscard]] std::optional<JobTime> until() const noexcept { return m_until; }

  private:
    /// The page shows a reason on one line.
    [[nodiscard]] static std::string comparable(std::string_view text) {
        std::string one_line;
        for (const char c : lower(text)) {
            const bool space = c == ' ' || (c >= '\t' && c <= '\r');
            if (!space || !one_line.ends_with(' ')) {
                one_line += space ? ' ' : c;
            }
        }
        return one_line;
    }

    std::string m_reason;
    std::optional<JobTime> m_until;
};

struct ChosenDead {
    std::vector<PlacedMessage> first; ///< the newest
    std::uint64_t count = 0;
    bool all_counted = true;
};

/// Looks for less than half a second, and where Inspector::remove_if looks. Keeps up to `most`, and
/// no more when these have 8 MiB. Throws as Inspector::remove_if does.
[[nodiscard]] inline ChosenDead list_dead(Inspector& inspector, const std::string& queue,
                                          const DeadFilter& filter, std::size_t most) {
    using Clock = std::chrono::steady_clock;
    struct Late {};
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(400);
    ChosenDead chosen;
    std::size_t bytes = 0;
    const auto look = [&](const PlacedMessage& message) {
        if (Clock::now() >= end) {
            throw Late{};
        }
        if (filter(message)) {
            ++chosen.count;
            if (chosen.first.size() < most && bytes < std::size_t{8} << 20U) {
                bytes += message.bytes.size();
                chosen.first.push_back(message);
            }
        }
        return false; // it stays
    };
    try {
        inspector.remove_if(queue, Place::dead, look, 1);
    } catch (const Late&) {
        chosen.all_counted = false;
    } catch (const ReplyError& error) {
        if (error.code() != "FAR") {
            throw;
        }
        chosen.all_counted = false;
    }
    return chosen;
}

enum class DeadStep { run, remove };

struct DeadStepResult {
    std::uint64_t changed = 0;
    bool more = false;
};

/// For about 300 ms. Throws as Inspector::remove_if does.
[[nodiscard]] inline DeadStepResult change_dead(Inspector& inspector, const std::string& queue,
                                                DeadStep step, const DeadFilter& filter) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds quick{50};
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(300);
    DeadStepResult result;
    std::uint64_t some = 100; // large ones take long
    do {
        const Clock::time_point begin = Clock::now();
        const std::uint64_t changed = step == DeadStep::run
                                          ? inspector.run_if(queue, Place::dead, filter, some)
                                          : inspector.remove_if(queue, Place::dead, filter, some);
        result.changed += changed;
        result.more = changed == some;
        some = Clock::now() - begin < quick ? std::min<std::uint64_t>(2 * some, 2000) : some;
    } while (result.more && Clock::now() < end);
    return result;
}

} // namespace orizuru::detail::web
