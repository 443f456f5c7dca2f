// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What must be true in each World, and at the end of each course. Part of search_steps.hpp.

#pragma once

#include "fuzz/search/search_steps.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>

namespace orizuru::test {

inline void SearchSteps::check(const World& world) const {
    const SearchTables::Redis& redis = m_tables.redis(world.fixed.redis);
    Counts doubtful = world.fixed.unknown;
    for (std::size_t who = 0; who < world.fixed.clients.size(); ++who) {
        const World::Client& client = world.fixed.clients[who];
        if (client.consumer == 0) {
            continue;
        }
        const SearchTables::Consumer& consumer = m_tables.consumer(client.consumer);
        for (std::size_t i = 0; i < doubtful.size(); ++i) {
            doubtful[i] = static_cast<std::uint8_t>(doubtful[i] + consumer.acks_sent[i]);
        }
        // A defect of a script must show in what becomes of the messages.
        const bool sabotaged = m_sabotage != nullptr && !m_sabotage->from.empty();
        if (!sabotaged && consumer.state == SearchConsumer::State::running &&
            !world.lines[line_of(who)].has(who, Parcel::Kind::reply) &&
            client.wait.kind != Parcel::Kind::reply) {
            check_list(redis.model, consumer);
        }
    }
    for (std::size_t i = 0; i < doubtful.size(); ++i) {
        const char payload = i == 0 ? 'a' : 'b';
        const auto pushed = std::count(m_size.messages.begin(),
                                       m_size.messages.begin() + world.fixed.pushed, payload);
        const auto gone = pushed - redis.in_lists[i];
        if (gone < world.fixed.acked[i] || gone > world.fixed.acked[i] + doubtful[i]) {
            throw Violation(std::string(gone < world.fixed.acked[i] ? "DUP " : "LOST ") + payload +
                            ": pushed " + std::to_string(pushed) + ", in lists " +
                            std::to_string(redis.in_lists[i]) + ", acks that said true " +
                            std::to_string(world.fixed.acked[i]) + ", in doubt " +
                            std::to_string(doubtful[i]));
        }
    }
}

// While no reply is on its way the mirror is the list.
inline void SearchSteps::check_list(const RedisModel& model,
                                    const SearchTables::Consumer& consumer) const {
    const auto found = model.data().find(consumer.processing);
    const auto* list =
        found == model.data().end() ? nullptr : std::get_if<RedisModel::List>(&found->second.data);
    if (list == nullptr && found != model.data().end()) {
        return; // fenced, which it does not know yet
    }
    if (list == nullptr || list->size() != consumer.list.size() + 1 ||
        !std::equal(consumer.list.begin(), consumer.list.end(), list->rbegin() + 1)) {
        throw Violation(consumer.processing + " is not what its owner holds");
    }
}

inline void SearchSteps::check_end(const World& world) const {
    const SearchTables::Redis& redis = m_tables.redis(world.fixed.redis);
    if (!redis.drained) {
        throw Violation("a message is left that nobody gets");
    }
    if (redis.orphan) {
        throw Violation("I4: a list is left of an id that is not registered");
    }
    for (const World::Client& client : world.fixed.clients) {
        if (client.consumer != 0) {
            const SearchTables::Consumer& consumer = m_tables.consumer(client.consumer);
            if (consumer.state != SearchConsumer::State::running || consumer.unanswered ||
                !consumer.list.empty()) {
                throw Violation("a consumer comes to no end");
            }
        }
    }
}

} // namespace orizuru::test
