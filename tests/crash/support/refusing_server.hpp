// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A server in front of a real one that answers the commands of one kind by an error, or by the end
// of the connection, for a while; the real one never sees those.

#pragma once

#include "support/fake_server.hpp"
#include "support/redis_server.hpp"

#include <orizuru/detail/mirror/scripts.hpp>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// True for the commands of one kind.
using Matches = bool (*)(const std::vector<std::string>& argv);

enum class RefuseFor {
    once,      ///< the first one
    some_time, ///< all for RefusingServer::window, from the first one on
    ever       ///< all until told to stop
};

/// The counts of the commands of the kind.
struct Refusals {
    std::size_t refused = 0;
    std::size_t connections = 0; ///< greeted after the first refusal
    std::size_t adoptions = 0;   ///< requested
    std::string first_served;    ///< the name of the first command of the kind that was not refused
};

class RefusingServer {
  public:
    static constexpr std::chrono::milliseconds window{120};

    explicit RefusingServer(const RedisServer& real)
        : m_server([this](const auto& argv) { return answer(argv); }, real.socket_path()) {}

    [[nodiscard]] const std::string& socket_path() const noexcept { return m_server.socket_path(); }

    /// Ends the connection (nullopt), or answers these bytes, instead of the command.
    void refuse(Matches matches, std::optional<std::string> answer, RefuseFor time) {
        const std::lock_guard lock(m_mutex);
        m_seen = {};
        m_refusing = Refusing{matches, std::move(answer), time, {}};
    }
    /// Before that, once: gives the answer that leads to such a command.
    void lead(Matches matches, std::optional<std::string> answer) {
        const std::lock_guard lock(m_mutex);
        m_lead = Refusing{matches, std::move(answer), RefuseFor::once, {}};
    }
    /// From now on serves all commands.
    Refusals stop() {
        const std::lock_guard lock(m_mutex);
        m_refusing.reset();
        m_lead.reset();
        return std::exchange(m_seen, {});
    }

  private:
    using Clock = std::chrono::steady_clock;

    struct Refusing {
        Matches matches;
        std::optional<std::string> answer;
        RefuseFor time;
        std::optional<Clock::time_point> since;
    };

    std::optional<std::string> answer(const std::vector<std::string>& argv) {
        const std::lock_guard lock(m_mutex);
        if (m_lead && m_lead->matches(argv)) {
            return std::exchange(m_lead, std::nullopt)->answer;
        }
        if (m_refusing && m_refusing->matches(argv)) {
            if (is_over(*m_refusing)) {
                m_seen.first_served = m_seen.first_served.empty() ? argv[0] : m_seen.first_served;
            } else {
                m_refusing->since = m_refusing->since.value_or(Clock::now());
                m_seen.refused += 1;
                return m_refusing->answer;
            }
        }
        const bool greets = argv[0] == "PING" || argv[0] == "AUTH";
        m_seen.connections += greets && (!m_refusing || m_refusing->since) ? 1 : 0;
        m_seen.adoptions += argv[0] == "EVAL" && argv[1] == detail::adopt_script() ? 1 : 0;
        return FakeServer::pass;
    }
    static bool is_over(const Refusing& refusing) {
        switch (refusing.time) {
        case RefuseFor::once:
            return refusing.since.has_value();
        case RefuseFor::some_time:
            return refusing.since && Clock::now() - *refusing.since > window;
        case RefuseFor::ever:
            break;
        }
        return false;
    }

    std::mutex m_mutex;
    std::optional<Refusing> m_lead;
    std::optional<Refusing> m_refusing;
    Refusals m_seen;
    FakeServer m_server; // last: its thread uses all of the above
};

} // namespace orizuru::test
