// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What can happen next in a World, and what must be true in each.
//
// A collector does nothing between its commands, so any number of them is: REAP for anybody who was
// ever registered, at any time. One that knows an id only from long ago may come or not; nothing
// may depend on it.

#pragma once

#include "fuzz/search/search_tables.hpp"
#include "fuzz/search/search_world.hpp"
#include "fuzz/simulation/violation.hpp"

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

/// Of two consumers' requests.
enum class Links { own, shared };

struct Step {
    enum class Kind {
        sure,  ///< it comes, sooner or later
        maybe, ///< it may never come
        fault
    };
    Kind kind;
    std::string_view name;
    int who = -1; ///< 0 or 1: a consumer
};

class SearchSteps {
  public:
    struct Size {
        std::string messages = "aa";
        int faults = 1;
        int odd = 1; ///< settlements other than acks
        Links links = Links::own;
        Blamed blamed = Blamed::go_back;
    };

    SearchSteps(Size size, const Sabotage* sabotage)
        : m_size(std::move(size)), m_sabotage(sabotage), m_tables(m_size.blamed, sabotage) {}

    [[nodiscard]] const SearchTables& tables() const noexcept { return m_tables; }
    World first(); ///< one consumer has registered, the other has not

    /// Calls `visit(step, world)` for all that can come next. Throws Violation.
    template <class Visit>
    void each(const World& world, Visit visit);

    /// Throws Violation.
    void check(const World& world) const;
    /// Of a state from which nothing is sure to come.
    void check_end(const World& world) const;

  private:
    using Kind = Event::Kind;

    void check_list(const RedisModel& model, const SearchTables::Consumer& consumer) const;

    [[nodiscard]] std::size_t line_of(std::size_t who) const noexcept {
        return m_size.links == Links::shared ? 0 : who;
    }
    /// What it is answered may come to count no more before it is read.
    [[nodiscard]] bool may_miss(const World& world, std::size_t who) const {
        const SearchTables::Consumer& consumer =
            m_tables.consumer(world.fixed.clients[who].consumer);
        const SearchTables::Redis& redis = m_tables.redis(world.fixed.redis);
        return world.fixed.faults > 0 || redis.fences.contains(consumer.processing) ||
               !redis.heartbeats.contains(consumer.heartbeat);
    }
    [[nodiscard]] bool has(Defect defect) const noexcept {
        return m_sabotage != nullptr && m_sabotage->defect == defect;
    }
    void run(World& world, Parcel& request) {
        const auto ran = m_tables.run(world.fixed.redis, request.number);
        world.fixed.redis = ran.redis;
        request.kind = Parcel::Kind::reply;
        request.number = ran.reply;
    }

    template <class Visit>
    void consumer(const World& world, int who, Visit& visit);
    template <class Visit>
    void running(const World& world, int who, Visit& visit);
    template <class Visit>
    void line(const World& world, std::size_t at, Visit& visit);
    template <class Visit>
    void wait(const World& world, int who, Visit& visit);
    template <class Visit>
    void others(const World& world, Visit& visit);
    template <class Visit>
    void line_faults(const World& world, std::size_t at, Visit& visit);
    template <class Visit>
    void faults(const World& world, int who, Visit& visit);
    template <class Visit>
    void tell(Step step, World world, Kind kind, std::size_t which, Number reply, Visit& visit);
    using Closing = std::array<bool, 2>; ///< whose wait connections
    template <class Visit>
    void break_line(Step step, World world, std::size_t at, Closing closing, Visit& visit);
    template <class Visit>
    void close_waits(Step step, const World& world, Closing closing, Visit& visit);

    Size m_size;
    const Sabotage* m_sabotage;
    SearchTables m_tables;
    const Keys& m_keys = SearchConsumer::keys();
};

inline World SearchSteps::first() {
    World world;
    world.fixed.redis =
        m_tables.run(m_tables.first_redis(), m_tables.command({"SET", "no list", "x"})).redis;
    const auto sent = m_tables.tell(m_tables.first_consumer(1), Kind::start, 0, 0);
    const auto ran = m_tables.run(world.fixed.redis, sent.command);
    world.fixed.redis = ran.redis;
    world.fixed.clients[0].consumer =
        m_tables.tell(sent.consumer, Kind::answer, 0, ran.reply).consumer;
    world.fixed.clients[1].consumer = m_tables.first_consumer(2);
    world.fixed.faults = static_cast<std::uint8_t>(m_size.faults);
    world.fixed.odd = static_cast<std::uint8_t>(m_size.odd);
    return world;
}

template <class Visit>
void SearchSteps::each(const World& world, Visit visit_all) {
    // Without the ghosts that change nothing any more.
    auto visit = [&](const Step& step, World next) {
        std::vector<World::Ghost> ghosts;
        ghosts.swap(next.ghosts);
        for (World::Ghost& ghost : ghosts) {
            const auto left = std::remove_if(ghost.begin(), ghost.end(), [&](Number command) {
                return command == 0 || m_tables.in_vain(command, next.fixed.redis);
            });
            std::fill(left, ghost.end(), 0);
            next.add_ghost(ghost);
        }
        visit_all(step, next);
    };
    for (std::size_t at = 0; at < world.lines.size(); ++at) {
        line(world, at, visit);
        if (world.fixed.faults > 0) {
            line_faults(world, at, visit);
        }
    }
    for (int who = 0; who < 2; ++who) {
        if (world.fixed.clients[static_cast<std::size_t>(who)].consumer != 0) {
            consumer(world, who, visit);
            wait(world, who, visit);
            if (world.fixed.faults > 0) {
                faults(world, who, visit);
            }
        }
    }
    others(world, visit);
}

// ---- What a consumer does by itself

template <class Visit>
void SearchSteps::consumer(const World& world, int who, Visit& visit) {
    const auto index = static_cast<std::size_t>(who);
    const Line& line = world.lines[line_of(index)];
    const bool asked =
        line.has(index, Parcel::Kind::request) || line.has(index, Parcel::Kind::reply);
    switch (m_tables.consumer(world.fixed.clients[index].consumer).state) {
    case SearchConsumer::State::unregistered:
        if (!asked) {
            tell({Step::Kind::sure, "sends START", who}, world, Kind::start, 0, 0, visit);
        }
        return;
    case SearchConsumer::State::recovering:
        if (!asked) {
            tell({Step::Kind::sure, "sends ADOPT", who}, world, Kind::adopt, 0, 0, visit);
        }
        return;
    case SearchConsumer::State::running:
        running(world, who, visit);
        return;
    case SearchConsumer::State::left:
        return;
    }
}

template <class Visit>
void SearchSteps::running(const World& world, int who, Visit& visit) {
    const World::Client& client = world.fixed.clients[static_cast<std::size_t>(who)];
    const SearchTables::Consumer& consumer = m_tables.consumer(client.consumer);
    const auto may = [&](std::string_view name, Kind kind, std::size_t which = 0) {
        tell({Step::Kind::sure, name, who}, world, kind, which, 0, visit);
    };
    if (consumer.can_move && consumer.has_moves) {
        may("sends MOVE", Kind::move);
    }
    if (consumer.can_send && consumer.has_acks) {
        may("sends SETTLE", Kind::settle);
    }
    if (consumer.can_send && consumer.has_acks && !consumer.blocked) {
        may("sends SETTLE with a fetch", Kind::fetch);
    }
    const bool suspects = m_tables.redis(world.fixed.redis).suspects;
    if (consumer.can_send && !consumer.blocked && !consumer.fetching && suspects) {
        may("asks for a suspect", Kind::suspect);
    }
    if (!consumer.blocked && !consumer.fetching) {
        may("sends BLMOVE", Kind::wait);
    }
    for (std::size_t guard = 0; guard < consumer.guards; ++guard) {
        may("acks", Kind::ack, guard);
        if (world.fixed.odd > 0) {
            World odd = world;
            --odd.fixed.odd;
            tell({Step::Kind::maybe, "rejects", who}, odd, Kind::reject, guard, 0, visit);
            tell({Step::Kind::maybe, "pushes to what is no list", who}, std::move(odd),
                 Kind::misdirect, guard, 0, visit);
        }
    }
    if (!m_tables.redis(world.fixed.redis).heartbeats.contains(consumer.heartbeat)) {
        const auto ran = m_tables.run(world.fixed.redis, consumer.beat);
        World next = world;
        next.fixed.redis = ran.redis;
        const std::int64_t answer = m_tables.reply(ran.reply).integer;
        if (answer == 1 || answer == 3) { // 3: suspects wait
            visit(Step{Step::Kind::sure, "beats", who}, next);
        } else {
            tell({Step::Kind::sure, "beats and is fenced", who}, std::move(next), Kind::doubt, 0, 0,
                 visit);
        }
    }
}

template <class Visit>
void SearchSteps::tell(Step step, World world, Kind kind, std::size_t which, Number reply,
                       Visit& visit) {
    const auto who = static_cast<std::size_t>(step.who);
    World::Client& client = world.fixed.clients[who];
    Line& line = world.lines[line_of(who)];
    const SearchTables::Told& told = m_tables.tell(client.consumer, kind, which, reply);
    client.consumer = told.consumer;
    if (told.command != 0 && kind == Kind::wait) {
        client.wait = {told.command, Parcel::Kind::request, static_cast<std::uint8_t>(who)};
    } else if (told.command != 0) {
        line.push_back({told.command, Parcel::Kind::request, static_cast<std::uint8_t>(who)});
    }
    for (const std::string& payload : told.effect.acked) {
        count(world.fixed.acked, payload);
    }
    Closing closing{};
    closing[who] = told.effect.recovers;
    if (told.effect.reconnects) {
        break_line(step, std::move(world), line_of(who), closing, visit);
    } else if (told.effect.recovers) {
        line.outdate(who);
        close_waits(step, world, closing, visit);
    } else {
        visit(step, world);
    }
}

// ---- The world around the consumers

template <class Visit>
void SearchSteps::others(const World& world, Visit& visit) {
    const auto run_command = [&](Step step, Number command, World next) {
        next.fixed.redis = m_tables.run(world.fixed.redis, command).redis;
        if (next.fixed.redis != world.fixed.redis) {
            visit(step, next);
        }
    };
    if (world.fixed.pushed < m_size.messages.size()) {
        World next = world;
        const std::string payload(1, m_size.messages[next.fixed.pushed++]);
        run_command({Step::Kind::sure, "the producer pushes"},
                    m_tables.command({"LPUSH", m_keys.source(), payload}), std::move(next));
    }
    for (std::size_t i = 0; i < world.ghosts.size(); ++i) {
        World::Ghost ghost = world.ghosts[i];
        if ((i > 0 && world.ghosts[i - 1] == ghost) ||
            m_tables.waits(ghost[0], world.fixed.redis)) {
            continue;
        }
        World next = world;
        next.fixed.redis = m_tables.run(world.fixed.redis, ghost[0]).redis;
        next.ghosts.erase(next.ghosts.begin() + static_cast<std::ptrdiff_t>(i));
        std::shift_left(ghost.begin(), ghost.end(), 1);
        ghost.back() = 0;
        next.add_ghost(ghost);
        visit(Step{Step::Kind::sure, "a ghost runs"}, next);
    }
    const SearchTables::Redis& redis = m_tables.redis(world.fixed.redis);
    for (const SearchTables::Reap& reap : redis.reaps) {
        run_command({reap.registered ? Step::Kind::sure : Step::Kind::maybe, "a collector reaps"},
                    reap.command, world);
    }
    if (redis.unack) {
        run_command({Step::Kind::sure, "a collector refills"},
                    m_tables.script(detail::refill_script.source(),
                                    {"2", m_keys.unack(), m_keys.source(), "1000"}),
                    world);
    }
    if (redis.suspects) {
        run_command({Step::Kind::maybe, "a collector returns suspects"},
                    m_tables.script(detail::return_suspects_script.source(),
                                    {"3", m_keys.suspects(), m_keys.source(), "nobody asks"}),
                    world);
    }
    for (const std::string& heartbeat : redis.heartbeats) {
        const bool first = heartbeat[m_keys.heartbeat("").size()] == '1';
        const bool dead = world.fixed.clients[first ? 0 : 1].consumer == 0;
        if (dead || world.fixed.faults > 0) {
            World next = world;
            next.fixed.faults -= dead ? 0 : 1;
            run_command({dead ? Step::Kind::sure : Step::Kind::fault,
                         dead ? "the lease of the dead ends" : "a lease ends"},
                        m_tables.command({"DEL", heartbeat}), std::move(next));
        }
    }
}

} // namespace orizuru::test

#include "fuzz/search/search_checks.hpp"
#include "fuzz/search/search_network.hpp"
