// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What happens between the consumers and Redis. The class is in search_steps.hpp.

#pragma once

#include "fuzz/search/search_steps.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace orizuru::test {

// A reply is read as soon as a request has run, or perhaps too late: what the consumer does in
// between could as well have come before, since it knows no more.
template <class Visit>
void SearchSteps::line(const World& world, std::size_t at, Visit& visit) {
    const Line& line = world.lines[at];
    if (!line.empty() && line.begin()->kind == Parcel::Kind::reply) {
        World next = world;
        const Parcel reply = *line.begin();
        next.lines[at].erase(next.lines[at].begin());
        tell({Step::Kind::sure, "reads a reply", reply.who}, std::move(next), Kind::answer, 0,
             reply.number, visit);
    }
    World next = world;
    Parcel* const request = next.lines[at].first_request();
    if (request == nullptr) {
        return;
    }
    const std::uint8_t who = request->who;
    const bool is_old = request->kind == Parcel::Kind::old;
    run(next, *request);
    if (is_old) {
        next.lines[at].erase(request);
        visit(Step{Step::Kind::sure, "has an old request run", who}, next);
        return;
    }
    if (may_miss(next, who)) {
        visit(Step{Step::Kind::sure, "has a request run", who}, next);
    }
    if (request == next.lines[at].begin()) {
        const Number reply = request->number;
        next.lines[at].erase(request);
        tell({Step::Kind::sure, "has a request run and reads the reply", who}, std::move(next),
             Kind::answer, 0, reply, visit);
    }
}

template <class Visit>
void SearchSteps::wait(const World& world, int who, Visit& visit) {
    const auto index = static_cast<std::size_t>(who);
    const World::Client& client = world.fixed.clients[index];
    World next = world;
    Parcel& wait = next.fixed.clients[index].wait;
    if (client.wait.kind == Parcel::Kind::request &&
        !m_tables.waits(client.wait.number, world.fixed.redis)) {
        run(next, wait);
        if (may_miss(next, index)) {
            visit(Step{Step::Kind::sure, "has its BLMOVE run", who}, next);
        }
        const Number reply = std::exchange(wait, {}).number;
        tell({Step::Kind::sure, "has its BLMOVE run and reads the reply", who}, std::move(next),
             Kind::wait_answer, 0, reply, visit);
        return;
    }
    if (client.wait.kind == Parcel::Kind::request && m_tables.redis(world.fixed.redis).suspects) {
        wait = {};
        tell({Step::Kind::sure, "has its BLMOVE ended for a suspect", who}, std::move(next),
             Kind::wait_answer, 0, m_tables.nothing(), visit);
        return;
    }
    const bool runs = m_tables.consumer(client.consumer).state == SearchConsumer::State::running;
    if (runs && client.wait.kind == Parcel::Kind::reply) {
        wait = {};
        tell({Step::Kind::sure, "reads the reply to its BLMOVE", who}, std::move(next),
             Kind::wait_answer, 0, client.wait.number, visit);
    }
}

// Each consumer on the line that has something unanswered comes to recover. Of what has not run,
// the first ones may still arrive.
template <class Visit>
void SearchSteps::break_line(Step step, World world, std::size_t at, Closing closing,
                             Visit& visit) {
    for (std::size_t who = 0; who < 2; ++who) {
        World::Client& client = world.fixed.clients[who];
        const bool spared = has(Defect::one_recovers) && (closing[0] || closing[1]);
        if (!spared && line_of(who) == at && client.consumer != 0 &&
            m_tables.consumer(client.consumer).unanswered) {
            const SearchTables::Told& told = m_tables.tell(client.consumer, Kind::doubt, 0, 0);
            client.consumer = told.consumer;
            closing[who] = closing[who] || told.effect.recovers;
        }
    }
    const Line line = std::exchange(world.lines[at], {});
    World::Ghost ghost{};
    std::size_t arrived = 0;
    close_waits(step, world, closing, visit);
    for (const Parcel& parcel : line) {
        if (parcel.runs()) {
            ghost[arrived++] = parcel.number;
            World next = world;
            next.add_ghost(ghost);
            close_waits(step, next, closing, visit);
        }
    }
}

template <class Visit>
void SearchSteps::close_waits(Step step, const World& world, Closing closing, Visit& visit) {
    std::vector<World> worlds{world};
    for (std::size_t who = 0; who < 2; ++who) {
        const Parcel wait = world.fixed.clients[who].wait;
        const bool waits = wait.kind == Parcel::Kind::request;
        if (!closing[who] || (has(Defect::late_replies) && !waits)) {
            continue;
        }
        for (World& each : worlds) {
            each.fixed.clients[who].wait = {};
        }
        for (std::size_t i = waits ? worlds.size() : 0; i-- > 0;) {
            worlds.push_back(worlds[i]);
            worlds.back().add_ghost({wait.number});
        }
    }
    for (const World& each : worlds) {
        visit(step, each);
    }
}

// ---- Faults

template <class Visit>
void SearchSteps::line_faults(const World& world, std::size_t at, Visit& visit) {
    if (world.lines[at].empty()) {
        return;
    }
    World next = world;
    --next.fixed.faults;
    const int who = world.lines[at].begin()->who;
    break_line({Step::Kind::fault, "is cut off", who}, next, at, {}, visit);
    Parcel* const request = next.lines[at].first_request();
    if (request != nullptr && request->kind == Parcel::Kind::old) {
        next.lines[at].erase(request);
        visit(Step{Step::Kind::fault, "has an old request refused", who}, next);
    } else if (request != nullptr) {
        request->kind = Parcel::Kind::reply;
        request->number = m_tables.refusal("BUSY a script runs");
        visit(Step{Step::Kind::fault, "has its request refused", request->who}, next);
    }
}

template <class Visit>
void SearchSteps::faults(const World& world, int who, Visit& visit) {
    const auto index = static_cast<std::size_t>(who);
    const World::Client& client = world.fixed.clients[index];
    World next = world;
    --next.fixed.faults;
    const bool runs = m_tables.consumer(client.consumer).state == SearchConsumer::State::running;
    if (runs && client.wait.kind != Parcel::Kind::none) {
        tell({Step::Kind::fault, "has its wait cut off", who}, next, Kind::doubt, 0, 0, visit);
    }
    if (client.wait.kind == Parcel::Kind::request) {
        World refused = next;
        refused.fixed.clients[index].wait.kind = Parcel::Kind::reply;
        refused.fixed.clients[index].wait.number = m_tables.refusal("BUSY a script runs");
        visit(Step{Step::Kind::fault, "has its BLMOVE refused", who}, refused);
    }
    // Those that share a link are of one process: nobody would be left.
    if (m_size.links == Links::own && world.fixed.clients[1 - index].consumer != 0) {
        const Counts unknown = m_tables.consumer(client.consumer).acks_sent;
        for (std::size_t i = 0; i < unknown.size(); ++i) {
            next.fixed.unknown[i] = static_cast<std::uint8_t>(next.fixed.unknown[i] + unknown[i]);
        }
        next.fixed.clients[index].consumer = 0;
        Closing closing{};
        closing[index] = true;
        break_line({Step::Kind::fault, "dies", who}, std::move(next), line_of(index), closing,
                   visit);
    }
}

} // namespace orizuru::test
