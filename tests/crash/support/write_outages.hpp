// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Times in which a Redis takes no writes: it refuses them or holds them, in each of four ways in
// turn. A living consumer cannot beat then, and nobody may take it for dead.

#pragma once

#include "crash/support/journal.hpp"
#include "crash/support/late_times.hpp"
#include "crash/support/work.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

/// For one thread.
class WriteOutages {
  public:
    using Clock = std::chrono::steady_clock;

    static constexpr std::array<std::string_view, 4> kinds{
        "writes refused, NOREPLICAS", "writes refused, MISCONF", "writes held by CLIENT PAUSE",
        "everything refused, BUSY"};

    WriteOutages(const RedisServer& server, FaultReport& report)
        : m_server(server), m_report(report) {}
    WriteOutages(const WriteOutages&) = delete;
    WriteOutages& operator=(const WriteOutages&) = delete;
    ~WriteOutages() { stop_script(); }

    /// True if Redis takes writes, and did for a lease, or sometimes for a tenth of one: the living
    /// may have had no time to beat in between.
    [[nodiscard]] bool may_begin() const {
        return !m_kind && Clock::now() >= m_free_since + m_least_apart;
    }
    /// How long they take from now on; at first half a lease to three.
    void take(std::chrono::milliseconds shortest, std::chrono::milliseconds longest) {
        m_shortest = shortest;
        m_longest = longest;
    }
    /// Begins one now and then, if it may. In a storm of `least` faults, so many of which have
    /// come, there is one of each kind.
    void begin_at_times(Chance& chance, std::uint64_t faults, std::uint64_t least) {
        const bool due =
            m_count < kinds.size() && faults * (kinds.size() + 1) > least * (m_count + 1);
        if ((chance.happens(0.1) || due) && may_begin()) {
            begin(std::chrono::milliseconds(chance.between(static_cast<int>(m_shortest.count()),
                                                           static_cast<int>(m_longest.count()))));
            m_least_apart = chance.happens(0.4) ? storm_lease / 10 : storm_lease;
        }
    }
    /// Ends the one whose time is over.
    void look() {
        if (m_kind && Clock::now() >= m_end) {
            end();
        }
    }
    void end();
    /// True once in each outage, shortly before its end.
    [[nodiscard]] bool begins_to_end() {
        constexpr std::chrono::milliseconds shortly(80);
        return m_kind && Clock::now() >= m_end - shortly && !std::exchange(m_ending, true);
    }
    /// For how long Redis has taken writes, since the last outage.
    [[nodiscard]] Clock::duration free_for() const { return Clock::now() - m_free_since; }
    /// Redis has not answered since then, and does again.
    void was_away(std::int64_t since);
    /// The same; it has the options again that it began with.
    void was_restarted(std::int64_t since) {
        stop_script();
        m_save_failed = false;
        was_away(since);
    }

    [[nodiscard]] bool goes_on() const noexcept { return m_kind.has_value(); }
    /// Redis refuses questions, too.
    [[nodiscard]] bool is_busy() const noexcept { return m_kind == busy; }
    /// How many have begun.
    [[nodiscard]] std::uint64_t count() const noexcept { return m_count; }
    /// Those that are over, also those that were told: in the order of their ends.
    [[nodiscard]] const std::vector<Span>& past() const noexcept { return m_past; }

  private:
    static constexpr std::size_t no_replicas = 0;
    static constexpr std::size_t no_disk = 1;
    static constexpr std::size_t held = 2;
    static constexpr std::size_t busy = 3;

    void configure(const std::string& option, const std::string& value) {
        m_redis.command({"CONFIG", "SET", option, value});
    }
    void begin(std::chrono::milliseconds time);
    void fail_a_save();
    void run_script();
    void stop_script() noexcept;
    void await_refusal(const std::string& code);

    const RedisServer& m_server;
    FaultReport& m_report;
    RedisClient m_redis{m_server.plain_uri()};
    std::chrono::milliseconds m_shortest = storm_lease / 2;
    std::chrono::milliseconds m_longest = 3 * storm_lease;
    std::chrono::milliseconds m_least_apart = storm_lease;
    std::optional<std::size_t> m_kind; ///< of the one that goes on
    std::int64_t m_begin = 0;
    Clock::time_point m_end;
    bool m_ending = false;
    Clock::time_point m_free_since = Clock::now();
    std::vector<Span> m_past;
    std::uint64_t m_count = 0;
    bool m_save_failed = false; ///< so Redis refuses writes whenever it heeds that
    std::jthread m_script;
};

inline void WriteOutages::begin(std::chrono::milliseconds time) {
    m_begin = monotonic_time();
    m_kind = m_count % kinds.size();
    switch (*m_kind) {
    case no_replicas:
        configure("min-replicas-to-write", "1");
        await_refusal("NOREPLICAS");
        break;
    case no_disk:
        fail_a_save();
        configure("stop-writes-on-bgsave-error", "yes");
        await_refusal("MISCONF");
        break;
    case held:
        m_redis.command({"CLIENT", "PAUSE", "60000", "WRITE"});
        break;
    case busy:
        run_script();
        await_refusal("BUSY");
        break;
    }
    m_end = Clock::now() + time;
    m_ending = false;
    m_report.came(kinds.at(*m_kind));
    ++m_count;
}

inline void WriteOutages::end() {
    if (!m_kind) {
        return;
    }
    switch (*m_kind) {
    case no_replicas:
        configure("min-replicas-to-write", "0");
        break;
    case no_disk:
        configure("stop-writes-on-bgsave-error", "no");
        break;
    case held:
        m_redis.command({"CLIENT", "UNPAUSE"});
        break;
    case busy:
        stop_script();
        break;
    }
    was_away(m_begin);
}

inline void WriteOutages::was_away(std::int64_t since) {
    m_kind.reset();
    m_free_since = Clock::now();
    m_past.push_back({since, monotonic_time()});
}

/// Redis cannot give the file the name that a folder has. It refuses writes for that only if it is
/// to save its data at times.
inline void WriteOutages::fail_a_save() {
    if (std::exchange(m_save_failed, true)) {
        return;
    }
    const auto folder = std::filesystem::path(m_server.socket_path()).parent_path() / "dump.rdb";
    std::filesystem::create_directory(folder);
    configure("stop-writes-on-bgsave-error", "no");
    configure("save", "1000000 1000000000");
    const bool failed = eventually([&] {
        const std::string state = m_redis.command({"INFO", "persistence"}).text;
        const auto tells = [&](const char* what) { return state.find(what) != std::string::npos; };
        if (tells("rdb_bgsave_in_progress:1")) {
            return false;
        }
        if (!tells("rdb_last_bgsave_status:err")) {
            m_redis.try_command({"BGSAVE"}); // refused while Redis rewrites its append-only file
            return false;
        }
        return true;
    });
    std::filesystem::remove(folder); // a restart would read it
    if (!failed) {
        throw std::runtime_error("saving does not fail");
    }
}

/// It writes nothing, so it can be killed.
inline void WriteOutages::run_script() {
    configure("lua-time-limit", "5");
    m_script = std::jthread([uri = m_server.plain_uri()] {
        try {
            RedisClient(uri).try_command({"EVAL", "while true do end", "0"});
        } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
            // Redis was killed meanwhile.
        }
    });
}

inline void WriteOutages::stop_script() noexcept {
    if (!m_script.joinable()) {
        return;
    }
    try {
        m_redis.try_command({"SCRIPT", "KILL"});
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
    }
    m_script.join();
}

inline void WriteOutages::await_refusal(const std::string& code) {
    if (!eventually([&] {
            return m_redis.try_command({"SET", "orizuru-test-write", "x"}).text.starts_with(code);
        })) {
        throw std::runtime_error("Redis takes writes, and should answer " + code);
    }
}

} // namespace orizuru::test
