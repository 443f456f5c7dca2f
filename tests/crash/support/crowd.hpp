// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Processes around one Redis, to which anything may happen at any moment. A process that ends is
// replaced.

#pragma once

#include "crash/support/journal.hpp"
#include "crash/support/lives.hpp"
#include "crash/support/process.hpp"
#include "crash/support/work.hpp"
#include "crash/support/write_outages.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/redis_server.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

/// Used by one thread, which lives as long as the crowd.
class Crowd {
  public:
    using Clock = std::chrono::steady_clock;

    Crowd(RedisServer& server, FaultReport& report, std::uint64_t seed)
        : m_server(server), m_report(report), m_chance(seed) {}
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;
    virtual ~Crowd() = default;

    /// Lets time pass; paused processes go on meanwhile.
    void pass(std::chrono::milliseconds time);

    /// Another process begins at once in its place.
    void kill_one();
    /// For 0.1 to 5 leases.
    void pause_one();
    /// For as long, unless Redis has just been away.
    void pause_redis();
    void let_outages_take(std::chrono::milliseconds shortest, std::chrono::milliseconds longest) {
        m_outages.take(shortest, longest);
    }
    /// Lets Redis take no writes, at times, for half a lease to three if nothing else is said.
    void refuse_writes_at_times(std::uint64_t faults, std::uint64_t least) {
        if (!m_redis_resumes_at) {
            m_outages.begin_at_times(m_chance, faults, least);
        }
    }
    /// How often it has taken none.
    [[nodiscard]] virtual std::uint64_t count_outages() const { return m_outages.count(); }
    /// Kills it, and returns when it answers again.
    void restart_redis();

  protected:
    struct Member {
        Process process;
        std::optional<Clock::time_point> resume_at = {};
        std::int64_t paused_since = 0;

        [[nodiscard]] const Work& work() const noexcept { return process.work(); }
    };

    void add(Work work);
    void start(Member& member) {
        member.process.start(++m_serial, m_chance.below(1'000'000), uri_for(member.work()),
                             program_for(member.work()));
        m_lives.began(member.work());
    }
    void kill(Member& member);
    /// A process whose pause is not over is left alone, or it would hardly ever run.
    template <class Suitable>
    Member& pick(Suitable suitable);
    /// One of a role that is not among `roles`, until all are: a short storm, too, has all kinds.
    template <class Suitable>
    Member& pick_in_turn(std::set<std::string>& roles, Suitable suitable);
    virtual void look_around();
    /// Lets Redis take all commands again.
    void free_redis();
    /// True if Redis answers questions.
    [[nodiscard]] bool redis_answers() const noexcept {
        return !m_redis_resumes_at && !m_outages.is_busy();
    }
    /// True if it takes writes, too.
    [[nodiscard]] bool redis_takes_writes() const noexcept {
        return !m_redis_resumes_at && !m_outages.goes_on();
    }
    /// Reports those who were taken for dead while they lived, so far, and as Redis remembers.
    void judge_lives(RedisClient& redis, const WriteOutages& outages) {
        std::ranges::copy(m_lives.judge(redis, outages), std::back_inserter(m_wrong));
    }
    /// Checks that each process goes on with its work, at the latest when its pause is over.
    template <class GetsOn>
    void tell_hung(GetsOn gets_on);

    /// How many bytes the members of the role have written.
    [[nodiscard]] std::uintmax_t written(const std::string& role) const;
    [[nodiscard]] std::vector<Member>& members() noexcept { return m_members; }
    [[nodiscard]] const std::vector<Member>& members() const noexcept { return m_members; }
    [[nodiscard]] RedisServer& server() const noexcept { return m_server; }
    [[nodiscard]] FaultReport& report() const noexcept { return m_report; }
    [[nodiscard]] Chance& chance() noexcept { return m_chance; }
    [[nodiscard]] const std::string& folder() const noexcept { return m_folder.path(); }
    [[nodiscard]] Lives& lives() noexcept { return m_lives; }
    [[nodiscard]] WriteOutages& outages() noexcept { return m_outages; }
    [[nodiscard]] std::vector<std::string>& wrong() noexcept { return m_wrong; }

  private:
    /// Several times the longest pause between two attempts to connect.
    static constexpr std::chrono::seconds longest_silence{30};

    /// The address by which Redis is reached.
    virtual std::string uri_for(const Work&) { return m_server.uri(); }
    /// The executable that runs it; empty: this one.
    virtual std::string program_for(const Work&) { return {}; }
    virtual void was_killed(const Member&) {}
    virtual void is_paused(const Member&) {}
    /// By itself, as it should.
    virtual void has_ended(const Member&) {}
    Clock::time_point some_leases();
    /// The pauses of the others have grown in an outage: a new one comes at its end.
    void replace_collector();
    void resume(Member& member);
    void resume_redis();

    RedisServer& m_server;
    FaultReport& m_report;
    Chance m_chance;
    TempDir m_folder;
    Lives m_lives{m_folder.path(), m_report};
    WriteOutages m_outages{m_server, m_report};
    std::uint64_t m_serial = 0;
    std::vector<std::string> m_wrong;
    std::optional<Clock::time_point> m_redis_resumes_at;
    std::int64_t m_redis_paused_since = 0;
    std::set<std::string> m_killed; ///< roles
    std::set<std::string> m_paused;
    std::vector<Member> m_members;
};

inline void Crowd::add(Work work) {
    const std::string file = folder() + '/' + work.role + std::to_string(work.index);
    work.journal = file + ".journal";
    start(m_members.emplace_back(Member{Process(std::move(work), file + ".log")}));
}

inline void Crowd::pass(std::chrono::milliseconds time) {
    const auto end = Clock::now() + time;
    do {
        look_around();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (Clock::now() < end);
}

inline void Crowd::look_around() {
    const auto now = Clock::now();
    for (Member& member : m_members) {
        if (member.resume_at && *member.resume_at <= now) {
            resume(member);
        }
        if (auto end = member.process.end()) {
            m_wrong.push_back(std::move(*end));
            m_lives.ended(member.work());
            start(member);
        } else if (!member.process.lives()) {
            m_lives.ended(member.work());
            has_ended(member);
            start(member);
        }
    }
    if (m_redis_resumes_at && *m_redis_resumes_at <= now) {
        resume_redis();
    }
    if (m_outages.begins_to_end()) {
        replace_collector();
    }
    m_outages.look();
}

inline void Crowd::replace_collector() {
    std::vector<Member*> collectors;
    for (Member& member : m_members) {
        if (member.work().role == "collector" && !member.resume_at) {
            collectors.push_back(&member);
        }
    }
    if (!collectors.empty()) {
        Member& member = *m_chance.pick(collectors);
        kill(member);
        start(member);
    }
}

inline void Crowd::resume(Member& member) {
    member.process.resume();
    member.resume_at.reset();
    m_lives.hampered(member.work(), member.paused_since);
}

template <class Suitable>
Crowd::Member& Crowd::pick(Suitable suitable) {
    while (true) {
        Member& member = m_chance.pick(m_members);
        if (!member.resume_at && suitable(member)) {
            return member;
        }
        pass(std::chrono::milliseconds(1)); // all suitable ones may be paused
    }
}

template <class Suitable>
Crowd::Member& Crowd::pick_in_turn(std::set<std::string>& roles, Suitable suitable) {
    const auto is_new = [&](const Member& any) {
        return suitable(any) && !roles.contains(any.work().role);
    };
    Member& member = std::ranges::any_of(m_members, is_new) ? pick(is_new) : pick(suitable);
    roles.insert(member.work().role);
    return member;
}

inline void Crowd::kill_one() {
    Member& member = pick_in_turn(m_killed, [](const Member&) { return true; });
    m_report.came(member.work().role + " killed");
    kill(member);
    start(member);
}

inline void Crowd::kill(Member& member) {
    if (member.resume_at) {
        resume(member);
    }
    m_lives.ended(member.work());
    if (auto end = member.process.kill()) {
        m_wrong.push_back(std::move(*end));
    }
    was_killed(member);
}

/// A paused producer is only late.
inline void Crowd::pause_one() {
    Member& member =
        pick_in_turn(m_paused, [](const Member& any) { return any.work().role != "producer"; });
    m_report.came(member.work().role + " paused");
    member.paused_since = monotonic_time();
    member.process.pause();
    is_paused(member);
    member.resume_at = some_leases();
}

inline void Crowd::pause_redis() {
    if (!m_redis_resumes_at && m_outages.may_begin()) {
        m_report.came("Redis paused");
        m_redis_paused_since = monotonic_time();
        m_server.pause();
        m_redis_resumes_at = some_leases();
    }
}

inline void Crowd::resume_redis() {
    if (std::exchange(m_redis_resumes_at, std::nullopt)) {
        m_server.resume();
        m_outages.was_away(m_redis_paused_since);
    }
}

inline void Crowd::free_redis() {
    resume_redis();
    m_outages.end();
}

inline void Crowd::restart_redis() {
    const std::int64_t since = monotonic_time();
    m_server.restart();
    m_redis_resumes_at.reset();
    m_outages.was_restarted(since);
    m_report.came("Redis killed and restarted");
}

/// Short ones more often than long ones.
inline Crowd::Clock::time_point Crowd::some_leases() {
    const double leases = 0.1 * std::pow(50, m_chance.fraction());
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              leases * std::chrono::duration<double>(storm_lease));
}

template <class GetsOn>
void Crowd::tell_hung(GetsOn gets_on) {
    struct Silent {
        const Member* member;
        std::uintmax_t written;
    };
    std::vector<Silent> silent;
    for (const Member& member : m_members) {
        silent.push_back({&member, Journal::size(member.work().journal)});
    }
    static_cast<void>(eventually(
        [&] {
            look_around();
            std::erase_if(silent,
                          [&](const Silent& one) { return gets_on(*one.member, one.written); });
            return silent.empty();
        },
        longest_silence));
    for (const Silent& one : silent) {
        const Work& work = one.member->work();
        m_wrong.push_back(work.role + ' ' + std::to_string(work.index) + " hangs");
    }
}

inline std::uintmax_t Crowd::written(const std::string& role) const {
    std::uintmax_t bytes = 0;
    for (const Member& member : m_members) {
        bytes += member.work().role == role ? Journal::size(member.work().journal) : 0;
    }
    return bytes;
}

} // namespace orizuru::test
