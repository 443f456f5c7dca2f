// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Producers, consumers and collectors of one queue, each a process, to which anything may happen at
// any moment.
//
// Consumers with an odd number reach Redis through a proxy of their own, which does not tell it
// when they are gone: their BLMOVE waits on, half-open, for seconds.

#pragma once

#include "crash/journal.hpp"
#include "crash/worker.hpp"
#include "fuzz/chance.hpp"
#include "support/fault_run.hpp"
#include "support/proxy.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/keys.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

struct Crew {
    std::size_t producers = 4;
    std::size_t consumers = 8;
    std::size_t collectors = 2;
    std::size_t rate = 800; ///< messages per second and producer
    /// Milliseconds in every 3000 in which nothing is pushed, so that consumers wait in Redis and,
    /// killed, leave their waiting behind for longer than a lease.
    std::size_t rest = 0;
};

/// Used by one thread, that lives as long as the storm.
class Storm {
  public:
    using Clock = std::chrono::steady_clock;

    Storm(RedisServer& server, FaultReport& report, std::uint64_t seed, std::string queue,
          Crew crew = {});

    /// Lets time pass, in which processes that were paused go on.
    void pass(std::chrono::milliseconds time);

    /// Another process begins at once in its place.
    void kill_one();
    /// For 0.1 to 5 leases.
    void pause_one();
    void pause_redis();
    /// Kills it, and returns when it answers again.
    void restart_redis();
    /// Breaks the connections of a consumer that has a proxy.
    void cut_one();

    /// How many messages producers have begun to push.
    [[nodiscard]] std::size_t pushes() const;

    /// Kills all of them, has what is left finished, and returns what is wrong, in words.
    std::vector<std::string> finish();

  private:
    static constexpr std::chrono::seconds longest_wait_of_a_ghost{6};
    /// Several times the longest pause between two attempts to connect.
    static constexpr std::chrono::seconds longest_silence{30};

    struct Member {
        Worker worker;
        std::unique_ptr<Proxy> proxy;
        std::optional<Clock::time_point> resume_at;
    };
    struct Ghost {
        std::unique_ptr<Proxy> proxy;
        Clock::time_point until;
    };

    static bool has_proxy(const Work& work) {
        return work.role == "consumer" && work.index % 2 == 1;
    }
    void start(Member& member);
    template <class Suitable>
    Member& pick(Suitable suitable);
    void look_around();
    void kill(Member& member);
    std::size_t connections(const Member& member, const std::string& that);
    std::size_t waiting(const Member& member) { return connections(member, " cmd=blmove "); }
    void tell_hung();
    void leave_ghosts();
    Clock::time_point some_leases();

    RedisServer& m_server;
    FaultReport& m_report;
    Chance m_chance;
    Keys m_keys;
    RedisClient m_redis{m_server.uri()};
    TempDir m_folder;
    std::uint64_t m_serial = 0;
    std::vector<std::string> m_wrong;
    std::optional<Clock::time_point> m_redis_resumes_at;
    std::deque<Ghost> m_ghosts;
    std::vector<Member> m_members;
};

inline Storm::Storm(RedisServer& server, FaultReport& report, std::uint64_t seed, std::string queue,
                    Crew crew)
    : m_server(server), m_report(report), m_chance(seed), m_keys(std::move(queue)) {
    const auto add = [&](const std::string& role, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            Work work{.role = role,
                      .index = i,
                      .rate = crew.rate,
                      .rest = crew.rest,
                      .queue = m_keys.source()};
            const std::string file = m_folder.path() + '/' + role + std::to_string(i);
            work.journal = file + ".journal";
            m_members.push_back({Worker(std::move(work), file + ".log"), nullptr, std::nullopt});
            start(m_members.back());
        }
    };
    add("collector", crew.collectors);
    add("consumer", crew.consumers);
    add("producer", crew.producers);
}

inline void Storm::start(Member& member) {
    const Work& work = member.worker.work();
    std::string uri = m_server.uri();
    if (has_proxy(work)) {
        member.proxy = std::make_unique<Proxy>(m_server.socket_path());
        member.proxy->swallow_fin();
        uri = member.proxy->uri();
    }
    member.worker.start(++m_serial, m_chance.below(1'000'000), std::move(uri));
}

inline void Storm::pass(std::chrono::milliseconds time) {
    const auto end = Clock::now() + time;
    do {
        look_around();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (Clock::now() < end);
}

inline void Storm::look_around() {
    const auto now = Clock::now();
    for (Member& member : m_members) {
        if (member.resume_at && *member.resume_at <= now) {
            member.worker.resume();
            member.resume_at.reset();
        }
        if (auto end = member.worker.end()) {
            m_wrong.push_back(std::move(*end));
            start(member);
        }
    }
    if (m_redis_resumes_at && *m_redis_resumes_at <= now) {
        m_server.resume();
        m_redis_resumes_at.reset();
    }
    while (!m_ghosts.empty() && m_ghosts.front().until <= now) {
        m_ghosts.pop_front();
    }
}

/// Whose pause is not over is left alone, or it would hardly ever be.
template <class Suitable>
Storm::Member& Storm::pick(Suitable suitable) {
    while (true) {
        Member& member = m_chance.pick(m_members);
        if (!member.resume_at && suitable(member)) {
            return member;
        }
        pass(std::chrono::milliseconds(1)); // all that are suitable may be paused
    }
}

inline void Storm::kill_one() {
    Member& member = pick([](const Member&) { return true; });
    m_report.came(member.worker.work().role + " killed");
    kill(member);
    start(member);
}

inline void Storm::kill(Member& member) {
    if (auto end = member.worker.kill()) {
        m_wrong.push_back(std::move(*end));
    }
    if (member.proxy) {
        // Redis itself may be paused: then nobody can be asked.
        if (!m_redis_resumes_at && waiting(member) > 0) {
            m_report.came("waiter left half-open");
        }
        m_ghosts.push_back({std::move(member.proxy), Clock::now() + longest_wait_of_a_ghost});
    }
}

/// How many of its connections, lost ones too, Redis describes with such words.
inline std::size_t Storm::connections(const Member& member, const std::string& that) {
    const std::string name = " name=" + member.worker.work().name() + ' ';
    std::istringstream clients(m_redis.command({"CLIENT", "LIST"}).text);
    std::size_t count = 0;
    for (std::string line; std::getline(clients, line);) {
        count +=
            line.find(name) != std::string::npos && line.find(that) != std::string::npos ? 1 : 0;
    }
    return count;
}

/// A paused producer is only one that is late.
inline void Storm::pause_one() {
    Member& member = pick([](const Member& any) { return any.worker.work().role != "producer"; });
    m_report.came(member.worker.work().role + " paused");
    member.worker.pause();
    member.resume_at = some_leases();
}

inline void Storm::pause_redis() {
    if (!m_redis_resumes_at) {
        m_report.came("Redis paused");
        m_server.pause();
        m_redis_resumes_at = some_leases();
    }
}

inline void Storm::restart_redis() {
    m_server.restart();
    m_redis_resumes_at.reset();
    m_report.came("Redis killed and restarted");
}

inline void Storm::cut_one() {
    const Member& member = pick([](const Member& any) { return any.proxy != nullptr; });
    switch (m_chance.below(3)) {
    case 0:
        m_report.came("consumer cut off by FIN");
        return member.proxy->break_all(Proxy::Cut::fin);
    case 1:
        m_report.came("consumer cut off by RST");
        return member.proxy->break_all(Proxy::Cut::rst);
    default:
        m_report.came("consumer cut off, half-open");
        return member.proxy->lose_clients();
    }
}

/// Short ones more often than long ones.
inline Storm::Clock::time_point Storm::some_leases() {
    const double leases = 0.1 * std::pow(50, m_chance.fraction());
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              leases * std::chrono::duration<double>(storm_lease));
}

inline std::size_t Storm::pushes() const {
    std::uintmax_t bytes = 0;
    for (const Member& member : m_members) {
        const Work& work = member.worker.work();
        bytes += work.role == "producer" ? Journal::size(work.journal) : 0;
    }
    return bytes / sizeof(Record) / 2; // one before it, one after it
}

} // namespace orizuru::test

#include "crash/storm_end.hpp"
