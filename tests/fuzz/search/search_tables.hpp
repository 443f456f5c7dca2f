// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What the exhaustive search has met: each state of Redis, state of a consumer, command and reply
// once, by a number. A step from one of them to the next is done once, too, and looked up from then
// on: so a state of the whole is a handful of numbers, and as fast to go on from.

#pragma once

#include "fuzz/model/model_server.hpp"
#include "fuzz/search/search_consumer.hpp"
#include "fuzz/simulation/sabotage.hpp"

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orizuru::test {

using Number = std::uint32_t; ///< from 1

/// Each value once.
template <class Value>
class Numbered {
  public:
    Number number(const std::string& text, Value value) {
        const auto [found, is_new] =
            m_numbers.try_emplace(text, static_cast<Number>(m_values.size() + 1));
        if (is_new) {
            m_values.push_back(std::move(value));
        }
        return found->second;
    }
    const Value& operator[](Number number) const { return m_values[number - 1]; }
    [[nodiscard]] std::size_t size() const noexcept { return m_values.size(); }

  private:
    std::unordered_map<std::string, Number> m_numbers;
    std::deque<Value> m_values; // which stay where they are
};

/// The payloads that are counted: 'a' and 'b'.
using Counts = std::array<std::uint8_t, 2>;
inline void count(Counts& counts, const std::string& payload) {
    counts[payload == "a" ? 0 : 1] += 1;
}

/// What becomes of a message that is blamed for a death.
enum class Blamed { go_back, wait_apart };

class SearchTables {
  public:
    struct Reap {
        Number command;
        bool registered; ///< whom it is for
    };
    struct Redis {
        RedisModel model;
        Counts in_lists = {}; ///< messages in all lists
        bool source = false;  ///< it holds a message
        bool unack = false;
        bool suspects = false;            ///< some wait apart
        bool drained = true;              ///< no message is in any list
        bool orphan = false;              ///< a list of an id that is not registered
        std::set<std::string> fences;     ///< their keys
        std::set<std::string> heartbeats; ///< their keys
        std::vector<Reap> reaps;          ///< for all who have a list or a fence
    };
    struct Consumer {
        std::vector<Event> told; ///< from its beginning
        SearchConsumer::State state = SearchConsumer::State::unregistered;
        std::string processing; ///< a key
        std::string heartbeat;  ///< a key
        Number beat = 0;        ///< a command
        Words list;             ///< what its list must hold, the oldest first
        std::size_t guards = 0;
        Counts acks_sent = {};
        bool can_send = false;
        bool can_move = false;
        bool has_acks = false;
        bool has_moves = false;
        bool blocked = false;
        bool fetching = false;
        bool unanswered = false;
    };
    struct Ran {
        Number redis;
        Number reply;
    };
    struct Told {
        Number consumer;
        Number command; ///< 0: none
        Effect effect;
    };

    SearchTables(Blamed blamed, const Sabotage* sabotage);

    Number first_redis() { return number_of(RedisModel()); }
    Number first_consumer(int number) { return number_of(SearchConsumer(number), number, {}); }
    Number command(const Words& words) {
        return m_commands.number(command_of(words), {words, list_of(words)});
    }

    Number script(std::string_view source, const Words& keys_and_args) {
        Words words{"EVALSHA", sha1_of(source)};
        words.insert(words.end(), keys_and_args.begin(), keys_and_args.end());
        return command(words);
    }

    [[nodiscard]] const Redis& redis(Number number) const { return m_redis[number]; }
    [[nodiscard]] const Consumer& consumer(Number number) const {
        return m_consumers[number].facts;
    }
    [[nodiscard]] bool waits(Number command, Number redis) const {
        return m_commands[command].words.front() == "BLMOVE" && !m_redis[redis].source;
    }
    /// It is a consumer's, of which the list is fenced: it changes nothing, now or later.
    [[nodiscard]] bool in_vain(Number command, Number redis) const {
        return m_redis[redis].fences.contains(m_commands[command].list);
    }
    [[nodiscard]] const Reply& reply(Number number) const { return m_replies[number]; }

    Number refusal(std::string_view text) {
        return number_of(RedisModel::error(std::string(text)));
    }
    Number nothing() { return number_of(Reply()); }
    const Ran& run(Number redis, Number command);
    /// `reply`: of an answer, else 0.
    const Told& tell(Number consumer, Event::Kind kind, std::size_t which, Number reply);

    [[nodiscard]] std::string sizes() const {
        return std::to_string(m_redis.size()) + " states of Redis, " +
               std::to_string(m_consumers.size()) + " of consumers, " +
               std::to_string(m_commands.size()) + " commands, " +
               std::to_string(m_replies.size()) + " replies";
    }

  private:
    struct Command {
        Words words;
        std::string list; ///< of the consumer that sends it
    };
    struct Known {
        int name;
        Consumer facts;
    };

    // The processing list is the first key, or behind a heartbeat.
    static std::string list_of(const Words& words) {
        const std::size_t first = words.front() == "BLMOVE" ? 2 : 3;
        const bool heartbeat = first == 3 && words.size() > 4 &&
                               words[first].starts_with(SearchConsumer::keys().heartbeat(""));
        return words.size() > 4 ? words[heartbeat ? 4 : first] : std::string();
    }
    /// Of a script of the library. Computed each time, it was a quarter of a search.
    const std::string& sha1_of(std::string_view source) {
        std::string& name = m_names[source.data()];
        if (name.empty()) {
            const detail::Sha1Hex sha1 = detail::sha1_hex(source);
            name.assign(std::string_view(sha1));
        }
        return name;
    }
    Reap reap(const std::string& id, const RedisModel& model);
    Number number_of(const RedisModel& model);
    Number number_of(const SearchConsumer& consumer, int name, std::vector<Event> told);
    Number number_of(const Reply& reply);

    Blamed m_blamed;
    ModelledRedis m_running;
    ModelServer m_server{m_running};
    std::unordered_map<const char*, std::string> m_names; ///< of scripts, by where they are
    Numbered<Redis> m_redis;
    Numbered<Known> m_consumers;
    Numbered<Command> m_commands;
    Numbered<Reply> m_replies;
    std::unordered_map<std::uint64_t, Ran> m_ran;
    std::deque<std::unordered_map<std::uint64_t, Told>> m_told; ///< by the consumer
};

inline SearchTables::SearchTables(Blamed blamed, const Sabotage* sabotage) : m_blamed(blamed) {
    // Redis knows all scripts by their names; one of them may not be what its name says.
    for (const std::string_view source : std::initializer_list<std::string_view>{
             detail::start_script(), detail::beat_script(), detail::settle_script.source(),
             detail::adopt_script(), detail::reap_script.source(), detail::refill_script.source(),
             detail::push_body().source(), detail::ack_body().source(),
             detail::try_suspect_script.source(), detail::return_suspects_script.source()}) {
        const std::string text =
            sabotage == nullptr ? std::string(source) : spoiled(source, *sabotage);
        m_running.cached[sha1_of(source)] = &m_running.lua.script(text);
    }
}

inline const SearchTables::Ran& SearchTables::run(Number redis, Number command) {
    const auto [found, is_new] = m_ran.try_emplace(std::uint64_t{redis} << 32 | command);
    if (is_new) {
        m_running.data = m_redis[redis].model;
        const Reply reply = m_server.run(m_commands[command].words);
        found->second = {number_of(m_running.data), number_of(reply)};
    }
    return found->second;
}

inline const SearchTables::Told& SearchTables::tell(Number consumer, Event::Kind kind,
                                                    std::size_t which, Number reply) {
    if (m_told.size() < consumer) {
        m_told.resize(consumer);
    }
    const auto what = std::uint64_t{reply} << 32 | static_cast<std::uint64_t>(kind) << 16 | which;
    const auto [found, is_new] = m_told[consumer - 1].try_emplace(what);
    if (is_new) {
        const Known& known = m_consumers[consumer];
        SearchConsumer again(known.name);
        std::vector<Event> told = known.facts.told;
        for (const Event& event : told) {
            again.take(event);
        }
        told.push_back({kind, which, reply == 0 ? Reply() : m_replies[reply]});
        Told& result = found->second;
        result.effect = again.take(told.back());
        result.command = result.effect.command.empty() ? 0 : command(result.effect.command);
        result.consumer = number_of(again, known.name, std::move(told));
    }
    return found->second;
}

inline Number SearchTables::number_of(const Reply& reply) {
    std::string text = std::to_string(static_cast<int>(reply.type)) + ' ' +
                       std::to_string(reply.integer) + ' ' + reply.text;
    for (const Reply& element : reply.elements) {
        text += '[' + std::to_string(number_of(element)) + ']';
    }
    return m_replies.number(text, reply);
}

inline SearchTables::Reap SearchTables::reap(const std::string& id, const RedisModel& model) {
    const Keys& keys = SearchConsumer::keys();
    const auto consumers = model.data().find(keys.consumers());
    return {script(detail::reap_script.source(), {"9",
                                                  keys.heartbeat(id),
                                                  keys.processing(id),
                                                  keys.source(),
                                                  keys.consumers(),
                                                  keys.recoveries(),
                                                  keys.dead(),
                                                  keys.writes(),
                                                  keys.suspects(),
                                                  keys.suspects_asked(),
                                                  id,
                                                  "604800000",
                                                  "100",
                                                  "259200",
                                                  "0",
                                                  m_blamed == Blamed::wait_apart ? "2" : "1",
                                                  "0",
                                                  "0",
                                                  "1",
                                                  "0",
                                                  "86400000",
                                                  "600000",
                                                  m_blamed == Blamed::wait_apart ? "1" : "0"}),
            consumers != model.data().end() &&
                std::get<RedisModel::Set>(consumers->second.data).contains(id)};
}

inline Number SearchTables::number_of(const RedisModel& model) {
    const Keys& keys = SearchConsumer::keys();
    Redis facts;
    facts.model = model;
    std::string text;
    for (const auto& [key, value] : model.data()) {
        text += key + '=';
        const bool list_or_fence = key.starts_with(keys.processing(""));
        if (list_or_fence) {
            facts.reaps.push_back(reap(key.substr(keys.processing("").size()), model));
            facts.orphan |= std::holds_alternative<RedisModel::List>(value.data) &&
                            !facts.reaps.back().registered;
        }
        if (const auto* string = std::get_if<std::string>(&value.data)) {
            text += *string;
            if (list_or_fence) {
                facts.fences.insert(key);
            } else if (key.starts_with(keys.heartbeat(""))) {
                facts.heartbeats.insert(key);
            }
        } else if (const auto* set = std::get_if<RedisModel::Set>(&value.data)) {
            for (const std::string& member : *set) {
                text += member + ' ';
            }
        } else if (const auto* hash = std::get_if<RedisModel::Hash>(&value.data)) {
            for (const auto& [field, number] : *hash) {
                text += field + ' ' + number + ' ';
            }
        } else {
            for (const std::string& element : std::get<RedisModel::List>(value.data)) {
                text += element + ' ';
                if (!element.starts_with("orz:")) {
                    count(facts.in_lists, element);
                    facts.drained = false;
                }
            }
        }
        text += '\n';
    }
    facts.source = model.data().contains(keys.source());
    facts.unack = model.data().contains(keys.unack());
    facts.suspects = model.data().contains(keys.suspects());
    return m_redis.number(text, std::move(facts));
}

inline Number SearchTables::number_of(const SearchConsumer& consumer, int name,
                                      std::vector<Event> told) {
    const detail::Mirror& mirror = consumer.mirror();
    Consumer facts;
    facts.told = std::move(told);
    facts.state = mirror.state();
    const Keys& keys = mirror.keys();
    const std::string& id = mirror.identity().id;
    facts.processing = keys.processing(id);
    facts.heartbeat = keys.heartbeat(id);
    facts.beat =
        script(detail::beat_script(), {"4", facts.heartbeat, facts.processing, keys.consumers(),
                                       keys.writes(), id, "60000", keys.suspects(), "", "600000"});
    for (const detail::DeliveryPtr& message : mirror.messages()) {
        facts.list.push_back(message->payload);
        if (message->state == detail::Delivery::State::sent &&
            (message->move == nullptr ||
             message->move->recoveries == detail::Move::Recoveries::ended)) {
            count(facts.acks_sent, message->payload);
        }
    }
    facts.guards = consumer.guards().size();
    facts.can_send = mirror.can_send();
    facts.can_move = mirror.can_move();
    facts.has_acks = mirror.has_acks();
    facts.has_moves = mirror.has_moves();
    facts.blocked = mirror.blocked();
    facts.fetching = mirror.fetching();
    facts.unanswered = mirror.unanswered();
    return m_consumers.number(std::to_string(name) + consumer.text(), {name, std::move(facts)});
}

} // namespace orizuru::test
