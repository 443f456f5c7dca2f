// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Producers, consumers and collectors of one queue, each a process, to which anything may happen at
// any moment.
//
// Consumers with an odd number reach Redis through a proxy of their own, which does not tell it
// when they are gone: their BLMOVE waits on, half-open, for seconds.

#pragma once

#include "crash/support/crowd.hpp"
#include "crash/support/journal.hpp"
#include "crash/support/storm_work.hpp"
#include "crash/support/transport.hpp"
#include "support/proxy.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/keys.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

struct Crew {
    std::size_t producers = 4;
    std::size_t consumers = 8;
    std::size_t collectors = 2;
    std::size_t rate = 800; ///< messages per second and producer
    /// Milliseconds in every 3000 in which nothing is pushed, so that consumers wait in Redis and,
    /// when killed, leave their waits there for longer than a lease.
    std::size_t rest = 0;
    std::size_t first_collector = 0; ///< its index
    /// Returns the executable that runs a process of this role; empty: this one.
    std::function<std::string(const std::string& role)> program = {};
};

class Storm final : public Crowd {
  public:
    Storm(RedisServer& server, FaultReport& report, std::uint64_t seed, std::string queue,
          Crew crew = {}, const Transport& transport = Transport("plain"));

    /// Breaks the connections of a consumer that has a proxy.
    void cut_one();

    /// How many messages producers have begun to push.
    [[nodiscard]] std::size_t pushes() const {
        return written("producer") / sizeof(Record) / 2; // one before it, one after it
    }

    /// True if all these kinds of events have come so far.
    [[nodiscard]] bool has_seen(const std::vector<std::string_view>& kinds);

    /// Kills all processes, lets the rest be finished, and returns the violations, in words.
    std::vector<std::string> finish();

    // What the journals and Redis tell, not the one who brings it about.
    static constexpr std::string_view fenced = "late command met a fence";
    static constexpr std::string_view refused_late = "settlement refused to a late owner";

  private:
    static constexpr std::chrono::seconds longest_wait_of_a_ghost{6};

    struct Ghost {
        std::unique_ptr<Proxy> proxy;
        Clock::time_point until;
    };

    static bool has_proxy(const Work& work) {
        return work.role == "consumer" && work.index % 2 == 1;
    }
    std::string uri_for(const Work& work) override;
    std::string program_for(const Work& work) override {
        return m_program ? m_program(work.role) : "";
    }
    void was_killed(const Member& member) override;
    void look_around() override;
    std::size_t connections(const Member& member, const std::string& that);
    std::size_t waiting(const Member& member) { return connections(member, " cmd=blmove "); }
    /// How many commands, waiting ones too, Redis refused because their senders had lost their
    /// lists.
    std::uint64_t commands_fenced();
    [[nodiscard]] std::uint64_t settlements_refused() const;
    void leave_ghosts();

    Keys m_keys;
    std::function<std::string(const std::string& role)> m_program;
    Transport m_transport;
    RedisClient m_redis{server().plain_uri()};
    std::deque<Ghost> m_ghosts;
    std::map<std::size_t, std::unique_ptr<Proxy>> m_proxies; ///< by the consumer's index
};

inline Storm::Storm(RedisServer& server, FaultReport& report, std::uint64_t seed, std::string queue,
                    Crew crew, const Transport& transport)
    : Crowd(server, report, seed),
      m_keys(std::move(queue)),
      m_program(std::move(crew.program)),
      m_transport(transport) {
    const auto add_all = [&](const std::string& role, std::size_t count, std::size_t first = 0) {
        for (std::size_t i = first; i < first + count; ++i) {
            add({.role = role,
                 .index = i,
                 .rate = crew.rate,
                 .rest = crew.rest,
                 .queue = m_keys.source()});
        }
    };
    add_all("collector", crew.collectors, crew.first_collector);
    add_all("consumer", crew.consumers);
    add_all("producer", crew.producers);
}

inline std::string Storm::uri_for(const Work& work) {
    if (!has_proxy(work)) {
        return m_transport.complete(server().uri());
    }
    auto& proxy = m_proxies[work.index];
    proxy = std::make_unique<Proxy>(m_transport.backend(server()));
    proxy->swallow_fin();
    return m_transport.complete(proxy->uri());
}

inline void Storm::look_around() {
    Crowd::look_around();
    while (!m_ghosts.empty() && m_ghosts.front().until <= Clock::now()) {
        m_ghosts.pop_front();
    }
}

inline void Storm::was_killed(const Member& member) {
    const auto proxy = m_proxies.find(member.work().index);
    if (has_proxy(member.work()) && proxy != m_proxies.end()) {
        if (redis_answers() && waiting(member) > 0) {
            report().came("waiter left half-open");
        }
        m_ghosts.push_back({std::move(proxy->second), Clock::now() + longest_wait_of_a_ghost});
        m_proxies.erase(proxy);
    }
}

/// How many of its connections, lost ones too, Redis describes with these words.
inline std::size_t Storm::connections(const Member& member, const std::string& that) {
    const std::string name = " name=" + member.work().name() + ' ';
    std::istringstream clients(m_redis.command({"CLIENT", "LIST"}).text);
    std::size_t count = 0;
    for (std::string line; std::getline(clients, line);) {
        count +=
            line.find(name) != std::string::npos && line.find(that) != std::string::npos ? 1 : 0;
    }
    return count;
}

inline bool Storm::has_seen(const std::vector<std::string_view>& kinds) {
    return std::ranges::all_of(kinds, [this](std::string_view kind) {
        if (kind == fenced) {
            return redis_answers() && commands_fenced() > 0;
        }
        return kind == refused_late ? settlements_refused() > 0 : report().have_come({kind});
    });
}

inline std::uint64_t Storm::commands_fenced() {
    const std::string errors = m_redis.command({"INFO", "errorstats"}).text;
    const std::string name = "errorstat_WRONGTYPE:count=";
    const auto found = errors.find(name);
    return found == std::string::npos
               ? 0
               : number_in(std::string_view(errors).substr(found + name.size()));
}

inline std::uint64_t Storm::settlements_refused() const {
    std::uint64_t count = 0;
    for (const Member& member : members()) {
        count += static_cast<std::uint64_t>(std::ranges::count(Journal::read(member.work().journal),
                                                               Step::not_settled, &Record::step));
    }
    return count;
}

inline void Storm::cut_one() {
    const Member& member = pick([](const Member& any) { return has_proxy(any.work()); });
    Proxy& proxy = *m_proxies.at(member.work().index);
    lives().hampered(member.work(), monotonic_time());
    switch (chance().below(3)) {
    case 0:
        report().came("consumer cut off by FIN");
        return proxy.break_all(Proxy::Cut::fin);
    case 1:
        report().came("consumer cut off by RST");
        return proxy.break_all(Proxy::Cut::rst);
    default:
        report().came("consumer cut off, half-open");
        return proxy.lose_clients();
    }
}

} // namespace orizuru::test

#include "crash/support/storm_end.hpp"
