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
    };

    SearchSteps(Size size, const Sabotage* sabotage)
        : m_size(std::move(size)), m_sabotage(sabotage), m_tables(sabotage) {}

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

    [[nodiscard]] static Parcel* first_request(World::Client& client) {
        for (Parcel& parcel : client.control) {
            if (parcel.kind == Parcel::Kind::request) {
                return &parcel;
            }
        }
        return nullptr;
    }
    /// The connections may come to be closed before anything more is read.
    [[nodiscard]] bool may_close(const World& world, int who) const {
        const SearchTables::Consumer& consumer =
            m_tables.consumer(world.fixed.clients[static_cast<std::size_t>(who)].consumer);
        const SearchTables::Redis& redis = m_tables.redis(world.fixed.redis);
        return world.fixed.faults > 0 || redis.fences.contains(consumer.processing) ||
               !redis.heartbeats.contains(consumer.heartbeat);
    }
    [[nodiscard]] bool late_replies() const noexcept {
        return m_sabotage != nullptr && m_sabotage->defect == Defect::late_replies;
    }
    void run(World& world, Parcel& request) {
        const auto ran = m_tables.run(world.fixed.redis, request.number);
        world.fixed.redis = ran.redis;
        request = {Parcel::Kind::reply, ran.reply};
    }

    template <class Visit>
    void consumer(const World& world, int who, Visit& visit);
    template <class Visit>
    void running(const World& world, int who, Visit& visit);
    template <class Visit>
    void network(const World& world, int who, Visit& visit);
    template <class Visit>
    void others(const World& world, Visit& visit);
    template <class Visit>
    void faults(const World& world, int who, Visit& visit);
    template <class Visit>
    void tell(Step step, World world, Kind kind, std::size_t which, Number reply, Visit& visit);
    template <class Visit>
    void close(Step step, const World& world, Visit& visit);

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
        std::erase_if(next.ghosts, [&](const World::Ghost& ghost) {
            return m_tables.in_vain(ghost[0], next.fixed.redis);
        });
        visit_all(step, next);
    };
    for (int who = 0; who < 2; ++who) {
        if (world.fixed.clients[static_cast<std::size_t>(who)].consumer != 0) {
            consumer(world, who, visit);
            network(world, who, visit);
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
    const World::Client& client = world.fixed.clients[static_cast<std::size_t>(who)];
    switch (m_tables.consumer(client.consumer).state) {
    case SearchConsumer::State::unregistered:
        if (client.control[0].kind == Parcel::Kind::none) {
            tell({Step::Kind::sure, "sends START", who}, world, Kind::start, 0, 0, visit);
        }
        return;
    case SearchConsumer::State::recovering:
        if (client.control[0].kind == Parcel::Kind::none) {
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
    if (consumer.can_send && consumer.has_moves) {
        may("sends MOVE", Kind::move);
    }
    if (consumer.can_send && consumer.has_acks) {
        may("sends SETTLE", Kind::settle);
    }
    if (consumer.can_send && consumer.has_acks && !consumer.blocked) {
        may("sends SETTLE with a fetch", Kind::fetch);
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
        if (m_tables.reply(ran.reply).integer == 1) {
            visit(Step{Step::Kind::sure, "beats", who}, next);
        } else {
            tell({Step::Kind::sure, "beats and is fenced", who}, std::move(next), Kind::fenced, 0,
                 0, visit);
        }
    }
}

template <class Visit>
void SearchSteps::tell(Step step, World world, Kind kind, std::size_t which, Number reply,
                       Visit& visit) {
    World::Client& client = world.fixed.clients[static_cast<std::size_t>(step.who)];
    const SearchTables::Told& told = m_tables.tell(client.consumer, kind, which, reply);
    client.consumer = told.consumer;
    if (told.command != 0 && kind == Kind::wait) {
        client.wait = {Parcel::Kind::request, told.command};
    } else if (told.command != 0) {
        client.control[client.control[0].kind == Parcel::Kind::none ? 0 : 1] = {
            Parcel::Kind::request, told.command};
    }
    for (const std::string& payload : told.effect.acked) {
        count(world.fixed.acked, payload);
    }
    if (told.effect.closes) {
        close(step, world, visit);
    } else {
        visit(step, world);
    }
}

// ---- What the network and Redis do

// A reply is read as soon as a request has run, or not before the connection is closed: what the
// consumer does in between could as well have come before, since it knows no more.
template <class Visit>
void SearchSteps::network(const World& world, int who, Visit& visit) {
    const auto index = static_cast<std::size_t>(who);
    const World::Client& client = world.fixed.clients[index];
    World next = world;
    if (Parcel* request = first_request(next.fixed.clients[index])) {
        run(next, *request);
        auto& control = next.fixed.clients[index].control;
        if (may_close(next, who)) {
            visit(Step{Step::Kind::sure, "has a request run", who}, next);
        }
        if (request == &control[0]) {
            const Number reply = control[0].number;
            control = {control[1], {}};
            tell({Step::Kind::sure, "has a request run and reads the reply", who}, std::move(next),
                 Kind::answer, 0, reply, visit);
        }
    }
    if (client.wait.kind == Parcel::Kind::request &&
        !m_tables.waits(client.wait.number, world.fixed.redis)) {
        next = world;
        Parcel& wait = next.fixed.clients[index].wait;
        run(next, wait);
        if (may_close(next, who)) {
            visit(Step{Step::Kind::sure, "has its BLMOVE run", who}, next);
        }
        const Number reply = std::exchange(wait, {}).number;
        tell({Step::Kind::sure, "has its BLMOVE run and reads the reply", who}, std::move(next),
             Kind::wait_answer, 0, reply, visit);
    }
    const bool runs = m_tables.consumer(client.consumer).state == SearchConsumer::State::running;
    if (late_replies() && runs && client.wait.kind == Parcel::Kind::reply) {
        next = world;
        next.fixed.clients[index].wait = {};
        tell({Step::Kind::sure, "reads the reply late", who}, std::move(next), Kind::wait_answer, 0,
             client.wait.number, visit);
    }
}

// Of what has not run, the first ones may still arrive: on each connection by itself.
template <class Visit>
void SearchSteps::close(Step step, const World& world, Visit& visit) {
    const auto index = static_cast<std::size_t>(step.who);
    std::vector<Number> requests;
    for (const Parcel& parcel : world.fixed.clients[index].control) {
        if (parcel.kind == Parcel::Kind::request) {
            requests.push_back(parcel.number);
        }
    }
    const Parcel wait = world.fixed.clients[index].wait;
    const bool waiting = wait.kind == Parcel::Kind::request;
    World closed = world;
    closed.fixed.clients[index].control = {};
    if (!late_replies() || waiting) {
        closed.fixed.clients[index].wait = {};
    }
    for (std::size_t arrive = 0; arrive <= requests.size(); ++arrive) {
        World next = closed;
        if (arrive > 0) {
            next.add_ghost({requests[0], arrive > 1 ? requests[1] : 0});
        }
        visit(step, next);
        if (waiting) {
            next.add_ghost({wait.number, 0});
            visit(step, next);
        }
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
        const World::Ghost ghost = world.ghosts[i];
        if ((i > 0 && world.ghosts[i - 1] == ghost) ||
            m_tables.waits(ghost[0], world.fixed.redis)) {
            continue;
        }
        World next = world;
        next.fixed.redis = m_tables.run(world.fixed.redis, ghost[0]).redis;
        next.ghosts.erase(next.ghosts.begin() + static_cast<std::ptrdiff_t>(i));
        if (ghost[1] != 0) {
            next.add_ghost({ghost[1], 0});
        }
        visit(Step{Step::Kind::sure, "a ghost runs"}, next);
    }
    const SearchTables::Redis& redis = m_tables.redis(world.fixed.redis);
    for (const SearchTables::Reap& reap : redis.reaps) {
        run_command({reap.registered ? Step::Kind::sure : Step::Kind::maybe, "a collector reaps"},
                    reap.command, world);
    }
    if (redis.unack) {
        run_command({Step::Kind::sure, "a collector refills"},
                    m_tables.script(detail::refill_script(),
                                    {"2", m_keys.unack(), m_keys.source(), "1000"}),
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

template <class Visit>
void SearchSteps::faults(const World& world, int who, Visit& visit) {
    const auto index = static_cast<std::size_t>(who);
    const World::Client& client = world.fixed.clients[index];
    World next = world;
    --next.fixed.faults;
    if (!client.idle()) {
        tell({Step::Kind::fault, "is cut off", who}, next, Kind::cut, 0, 0, visit);
    }
    World refused = next;
    if (Parcel* request = first_request(refused.fixed.clients[index])) {
        *request = {Parcel::Kind::reply, m_tables.refusal("BUSY a script runs")};
        visit(Step{Step::Kind::fault, "has its request refused", who}, refused);
    }
    if (client.wait.kind == Parcel::Kind::request) {
        refused = next;
        refused.fixed.clients[index].wait = {Parcel::Kind::reply,
                                             m_tables.refusal("BUSY a script runs")};
        visit(Step{Step::Kind::fault, "has its BLMOVE refused", who}, refused);
    }
    if (world.fixed.clients[1 - index].consumer != 0) {
        const Counts unknown = m_tables.consumer(client.consumer).acks_sent;
        for (std::size_t i = 0; i < unknown.size(); ++i) {
            next.fixed.unknown[i] = static_cast<std::uint8_t>(next.fixed.unknown[i] + unknown[i]);
        }
        next.fixed.clients[index].consumer = 0;
        close({Step::Kind::fault, "dies", who}, next, visit);
    }
}

} // namespace orizuru::test

#include "fuzz/search/search_checks.hpp"
