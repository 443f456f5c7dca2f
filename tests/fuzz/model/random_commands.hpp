// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Commands as the library sends them, and as it never does: keys of the wrong type or missing,
// headers of another time, numbers that are none, arguments left out.

#pragma once

#include "fuzz/model/model_server.hpp"
#include "fuzz/model/server.hpp"
#include "fuzz/simulation/chance.hpp"

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/script.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

class RandomCommands {
  public:
    /// `redis` is looked at, so that a script often finds the header that it names.
    RandomCommands(Chance& chance, const RedisModel& redis) : m_chance(chance), m_redis(redis) {}

    Words next() {
        if (m_chance.happens(0.55)) {
            return script();
        }
        Words words = plain();
        if (m_chance.happens(0.02) && words.front() != "BLMOVE") {
            words.resize(1 + m_chance.below(words.size()));
        }
        return words;
    }

  private:
    static std::string id(std::size_t number) { return "c:" + std::to_string(number); }
    static std::string header(std::size_t owner, std::size_t version) {
        return "orz:000000000000000" + std::to_string(owner) + ":" + std::to_string(version);
    }

    std::string any_id() { return id(m_chance.below(3)); }
    // Not the dead list: what a script writes there has the time in it.
    std::string any_key() {
        const std::string own[] = {m_keys.source(),
                                   m_keys.unack(),
                                   m_keys.consumers(),
                                   m_keys.recoveries(),
                                   m_keys.heartbeat(any_id()),
                                   m_keys.processing(any_id()),
                                   m_keys.processing(any_id()),
                                   "other",
                                   "missing"};
        return own[m_chance.below(std::size(own))];
    }
    /// Mostly the right one.
    std::string mostly(const std::string& key) { return m_chance.happens(0.9) ? key : any_key(); }
    std::string any_text() {
        static const std::string texts[] = {"a",
                                            "a",
                                            "b",
                                            "b",
                                            "",
                                            std::string("\0\r\n\xff", 4),
                                            std::string(40, 'x'),
                                            std::string(300, 'y'),
                                            "777777"};
        return m_chance.happens(0.1) ? header(m_chance.below(3), m_chance.below(3))
                                     : texts[m_chance.below(std::size(texts))];
    }
    std::string small(int first, int last) {
        static const std::string odd[] = {"x", "", "1.5", "99999999999999999999", "-9", "1000000"};
        return m_chance.happens(0.03) ? odd[m_chance.below(std::size(odd))]
                                      : std::to_string(m_chance.between(first, last));
    }
    std::string any_end() { return m_chance.happens(0.5) ? "LEFT" : "RIGHT"; }

    Words plain();
    Words script();
    Words settling_script(std::size_t owner);
    Words collecting_script(std::size_t owner);
    Words call(std::string_view source, Words keys, Words args);

    Chance& m_chance;
    const RedisModel& m_redis;
    const Keys m_keys{"q"};
};

inline Words RandomCommands::plain() {
    const std::string key = any_key();
    switch (m_chance.below(32)) {
    case 0:
    case 1:
    case 2:
    case 3:
        return {"LPUSH", m_keys.source(), any_text(), any_text()};
    case 4:
        return {"LPUSH", mostly(m_keys.unack()), any_text()};
    case 5:
        return {"RPUSH", mostly("other"), any_text(), any_text()};
    case 6:
        return {"RPOP", key};
    case 7:
        return {"RPOP", key, small(0, 3)};
    case 8:
    case 9: {
        const std::string owner = any_id();
        const bool waits = !m_redis.data().contains(m_keys.source());
        Words words{waits ? "LMOVE" : "BLMOVE", m_keys.source(), m_keys.processing(owner), "RIGHT",
                    "LEFT"};
        if (!waits) {
            words.emplace_back("1.000");
        }
        return words;
    }
    case 10:
        return {"LMOVE", key, mostly("other"), any_end(), any_end()};
    case 11:
        return {"LLEN", key};
    case 12:
        return {"LRANGE", key, small(-5, 5), small(-5, 5)};
    case 13:
        return {"LINDEX", key, small(-5, 5)};
    case 14:
        return {"LSET", key, small(-5, 5), any_text()};
    case 15:
        return {"LREM", key, small(-2, 2), any_text()};
    case 16:
        return {"LTRIM", key, small(-5, 5), small(-5, 5)};
    case 17:
        return {"SADD", mostly(m_keys.consumers()), any_id(), any_id()};
    case 18:
        return {"SREM", mostly(m_keys.consumers()), any_id()};
    case 19:
        return {"SMEMBERS", mostly(m_keys.consumers())};
    case 20:
        return {"SISMEMBER", mostly(m_keys.consumers()), any_id()};
    case 21:
        return {"HINCRBY", mostly(m_keys.recoveries()), any_text(), small(-2, 3)};
    case 22:
        return {"HDEL", mostly(m_keys.recoveries()), any_text()};
    case 23:
        return m_chance.happens(0.5) ? Words{"HGET", mostly(m_keys.recoveries()), any_text()}
                                     : Words{"HGETALL", mostly(m_keys.recoveries())};
    case 24:
        return m_chance.happens(0.2) ? Words{"SET", key, any_text()}
                                     : Words{"SET", mostly(m_keys.heartbeat(any_id())), any_text(),
                                             "PX", small(9, 15) + "0000"};
    case 25:
        return {"GET", key};
    case 26:
        return {"INCR", mostly("missing")};
    case 27:
        return {"TYPE", key};
    case 28:
        return {"EXISTS", key, any_key()};
    case 29:
        return {"DEL", key, m_chance.happens(0.5) ? m_keys.dead() : any_key()};
    case 30:
        return {"RENAME", key, mostly(key)};
    default:
        return m_chance.happens(0.7) ? Words{"EXPIRE", key, small(9, 15) + "0"}
                                     : Words{"LRANGE", m_keys.dead(), "0", "-1"};
    }
}

inline Words RandomCommands::call(std::string_view source, Words keys, Words args) {
    for (std::string& key : keys) {
        key = m_chance.happens(0.02) && key != m_keys.dead() ? any_key() : key;
    }
    for (std::string& arg : args) {
        arg = m_chance.happens(0.02) ? any_text() : arg;
    }
    // Without its reason, an entry of the dead list is no array to Redis.
    if (m_chance.happens(0.03) && keys.back() != m_keys.dead()) {
        args.resize(m_chance.below(args.size() + 1));
    }
    Words words{"EVAL", std::string(source), std::to_string(keys.size())};
    if (m_chance.happens(0.6)) {
        const detail::Sha1Hex sha1 = detail::sha1_hex(source);
        words[0] = "EVALSHA";
        words[1].assign(std::string_view(sha1));
    }
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), args.begin(), args.end());
    return words;
}

inline Words RandomCommands::script() {
    const std::size_t owner = m_chance.below(3);
    const std::string heartbeat = m_keys.heartbeat(id(owner));
    const std::string processing = m_keys.processing(id(owner));
    switch (m_chance.below(10)) {
    case 0:
    case 1:
        return call(detail::start_script(),
                    {heartbeat, processing, m_keys.consumers(), m_keys.source(), m_keys.unack(),
                     m_keys.dead()},
                    {id(owner), "600000", header(owner, 0)});
    case 2:
        return call(detail::beat_script(),
                    {heartbeat, processing, m_keys.consumers(), m_keys.writes()},
                    {id(owner), "600000", m_keys.suspects(),
                     m_chance.happens(0.5) ? m_keys.suspects_asked() : "", "600000"});
    case 3:
        return collecting_script(owner);
    default:
        return settling_script(owner);
    }
}

inline Words RandomCommands::settling_script(std::size_t owner) {
    static const Script record_body("redis.call('RPUSH', KEYS[1], ARGV[1])");
    static const Script refuse_body("return redis.error_reply('NOTNOW ' .. payload)");
    static const Script refuse_by_word_body("return redis.error_reply('NOTNOW')");
    static const Script fail_body("redis.call('RPUSH', KEYS[1], payload)\n"
                                  "redis.call('INCR', KEYS[1])");
    static const Script throw_body("error(ARGV[1] == 'a' and 'no luck' or {err = 'BUSY luck'})");
    const std::string processing = m_keys.processing(id(owner));
    const auto found = m_redis.data().find(processing);
    const auto* list = found == m_redis.data().end()
                           ? nullptr
                           : std::get_if<RedisModel::List>(&found->second.data);
    const std::size_t held = list == nullptr ? 0 : list->size() - 1;
    const std::string expected =
        list != nullptr && m_chance.happens(0.9) ? list->back() : header(owner, m_chance.below(3));
    const std::string next = header(owner, m_chance.below(100000));
    const auto few = [&](std::size_t limit) { return std::to_string(m_chance.below(limit + 1)); };
    const std::string least = m_chance.happens(0.9) ? few(held) : small(0, 5);
    const auto move = [&](const Script& script, const std::string& target, Words args) {
        args.insert(args.begin(), {expected, next, least, std::to_string(-m_chance.between(2, 4))});
        return call(script.source(), {processing, target}, std::move(args));
    };
    const std::string target = mostly(m_keys.unack());
    switch (m_chance.below(12)) {
    case 0:
        return move(detail::push_body(), target, {});
    case 1:
        return move(detail::push_body(), target, {any_text()});
    case 2:
        return move(detail::release_body(), m_keys.source(), {});
    case 3:
        return move(detail::bury_body(), m_keys.dead(), {any_text()});
    case 4:
        return move(m_chance.happens(0.5) ? refuse_body : refuse_by_word_body, target, {});
    case 5:
        return move(m_chance.happens(0.5) ? fail_body : record_body, target, {any_text()});
    case 6:
        return move(throw_body, target, {any_text()});
    case 7:
        return call(detail::release_script.source(),
                    {processing, m_keys.source(), m_keys.heartbeat(id(owner)), m_keys.consumers()},
                    {expected, next, least, few(held), id(owner), "600000"});
    default: {
        const bool fetches = m_chance.happens(0.7);
        Words args{expected, next, std::to_string(-1 - static_cast<int>(m_chance.below(held + 2))),
                   fetches ? small(0, 4) : "0"};
        if (m_chance.happens(0.7)) {
            args.push_back(least);
            const bool runs = held > 1 && m_chance.happens(0.3);
            for (std::size_t i = m_chance.below(3); i > 0 && held > 0; --i) {
                if (runs) {
                    args.push_back(small(1, 2));
                    args.push_back(small(1, 2));
                } else {
                    args.push_back(
                        std::to_string(-m_chance.between(2, static_cast<int>(held) + 1)));
                }
            }
        } else if (!fetches) {
            args.pop_back();
        }
        return call(detail::settle_script.source(),
                    fetches ? Words{processing, m_keys.source()} : Words{processing},
                    std::move(args));
    }
    }
}

inline Words RandomCommands::collecting_script(std::size_t owner) {
    const std::string heir = any_id();
    switch (m_chance.below(3)) {
    case 0:
        return call(detail::adopt_script(),
                    {m_keys.heartbeat(id(owner)), m_keys.processing(id(owner)),
                     m_keys.heartbeat(heir), m_keys.processing(heir), m_keys.consumers()},
                    {id(owner), heir, header(owner, 0), "600000", "600000",
                     header(m_chance.happens(0.8) ? owner : 9, 0).substr(0, 21)});
    case 1:
        return call(detail::reap_script.source(),
                    {m_keys.heartbeat(id(owner)), m_keys.processing(id(owner)), m_keys.source(),
                     m_keys.consumers(), m_keys.recoveries(), m_keys.dead(), m_keys.writes(),
                     m_keys.suspects(), m_keys.suspects_asked()},
                    {id(owner), "600000", small(0, 2), "600", m_chance.happens(0.5) ? "0" : "2",
                     std::to_string(m_chance.below(3) + 1),
                     // By a single collect(), whose keys live long: real time passes in Redis.
                     m_chance.happens(0.3) ? "600000" : "0", "0", "0", "600000", "86400000",
                     "600000", m_chance.happens(0.5) ? "1" : "0"});
    default:
        return call(detail::refill_script.source(), {m_keys.unack(), m_keys.source()},
                    {small(1, 3)});
    }
}

} // namespace orizuru::test
