// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The model of Redis against Redis: random commands and scripts, right and wrong ones, go to both;
// all replies must be equal, and so must all data at the end of each round.
//
// usage: commands [--seed FIRST] [--size COMMANDS]

#include "fuzz/model/model_server.hpp"
#include "fuzz/model/random_commands.hpp"
#include "fuzz/model/raw_redis.hpp"
#include "fuzz/simulation/chance.hpp"
#include "support/fault_run.hpp"
#include "support/redis_server.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

namespace {

using orizuru::Reply;
using orizuru::test::Chance;
using orizuru::test::FaultOptions;
using orizuru::test::FaultReport;
using orizuru::test::ModelledRedis;
using orizuru::test::ModelServer;
using orizuru::test::RandomCommands;
using orizuru::test::RawRedis;
using orizuru::test::RedisModel;
using orizuru::test::RedisServer;
using orizuru::test::Words;

constexpr std::uint64_t commands_per_round = 500;

/// As text, without what Redis does not promise: the order in a set or a hash, and the time, which
/// ends an entry of the dead list.
std::string text_of(const Reply& reply, const Words& command) {
    std::string text = std::to_string(static_cast<int>(reply.type)) + ' ';
    if (reply.is(Reply::Type::integer)) {
        constexpr int minute = 60'000;
        // So many are a time, also in the answer of a script: what else these count is below. It
        // has run down by less than a minute on the one side and stands still on the other.
        const bool time = reply.integer > (command.front() == "PTTL" ? 0 : minute);
        return text + std::to_string(time ? (reply.integer + minute - 1) / minute : reply.integer);
    }
    if (reply.is(Reply::Type::array)) {
        std::vector<std::string> elements;
        const std::size_t together = command.front() == "HGETALL" ? 2 : 1;
        for (std::size_t i = 0; i < reply.elements.size(); i += together) {
            elements.emplace_back();
            for (std::size_t part = i; part < i + together; ++part) {
                elements.back() += text_of(reply.elements[part], command) + ' ';
            }
        }
        if (together == 2 || command.front() == "SMEMBERS" || command.front() == "KEYS") {
            std::sort(elements.begin(), elements.end());
        }
        for (const std::string& element : elements) {
            text += element + ", ";
        }
        return text;
    }
    static const std::regex series("([0-9]+) [0-9]+ ([0-9]+)"); // of writes, and for how long
    if (std::smatch parts; std::regex_match(reply.text, parts, series)) {
        return text + parts.str(1) + ' ' + parts.str(2);
    }
    constexpr std::size_t number = 9;
    if (reply.text.starts_with("\x94\x02") && reply.text.size() > number &&
        reply.text[reply.text.size() - number] == '\xcf') {
        return text + reply.text.substr(0, reply.text.size() - number);
    }
    return text + reply.text;
}

std::string shown(const Words& words) {
    std::string text;
    for (const std::string& word : words) {
        text += word.find('\n') == std::string::npos || word.size() < 10 ? word : "(script)";
        text += ' ';
    }
    return text;
}

class Comparison {
  public:
    Comparison(RawRedis& redis, FaultReport& report) : m_redis(redis), m_report(report) {}

    void round(std::uint64_t seed) {
        m_seed = seed;
        Chance chance(seed);
        RandomCommands commands(chance, m_model.data);
        both({"FLUSHALL"}, m_all_rights);
        for (std::uint64_t i = 0; i < commands_per_round; ++i) {
            if (chance.happens(0.002)) {
                both({"SCRIPT", "FLUSH"}, m_all_rights);
            }
            if (chance.happens(0.02)) {
                become("reader");
                both(commands.next(), m_without_lset);
                become("default");
            } else {
                both(commands.next(), m_all_rights);
            }
        }
        look_at_all_data();
        compare();
    }

  private:
    struct Pending {
        Words command;
        std::string expected;
    };

    void both(const Words& command, ModelServer& user) {
        m_pending.push_back({command, text_of(user.run(command), command)});
    }
    void become(const std::string& user) {
        m_pending.push_back({{"AUTH", user, "any"}, text_of(RedisModel::status("OK"), {"AUTH"})});
    }
    void look_at_all_data();
    void compare();

    RawRedis& m_redis;
    FaultReport& m_report;
    ModelledRedis m_model;
    ModelServer m_all_rights{m_model};
    ModelServer m_without_lset{m_model, {"LSET"}};
    std::uint64_t m_seed = 0;
    std::vector<Pending> m_pending;
};

void Comparison::look_at_all_data() {
    both({"KEYS", "*"}, m_all_rights);
    for (const std::string& key : m_all_rights.keys()) {
        const std::string type = m_all_rights.type(key);
        both(type == "list"  ? Words{"LRANGE", key, "0", "-1"}
             : type == "set" ? Words{"SMEMBERS", key}
                             : Words{type == "hash" ? "HGETALL" : "GET", key},
             m_all_rights);
        both({"PTTL", key}, m_all_rights);
    }
}

void Comparison::compare() {
    std::string bytes;
    for (const Pending& pending : m_pending) {
        bytes += orizuru::test::command_of(pending.command);
    }
    m_redis.send(bytes);
    bool equal = true;
    for (const Pending& pending : m_pending) {
        const Reply reply = m_redis.receive();
        const std::string found = text_of(reply, pending.command);
        const std::string name = pending.command.front();
        m_report.came(name);
        m_report.came(reply.is(Reply::Type::error) ? "answered by an error" : "carried out");
        if (equal && found != pending.expected) {
            equal = false; // the rest of the round follows from it
            m_report.violation(shown(pending.command) + "\n  the model: " + pending.expected +
                                   "\n  Redis:     " + found,
                               {{"seed", std::to_string(m_seed)}, {"size", "1"}});
        }
    }
    m_pending.clear();
}

} // namespace

int main(int count, char** arguments) {
    return orizuru::test::run_fault_program([&] {
        const FaultOptions options(count, arguments, {{"seed", "1"}, {"size", "100000"}});
        FaultReport report(options);
        const RedisServer server;
        RawRedis redis(server.socket_path());
        redis.command({"ACL", "SETUSER", "reader", "on", "nopass", "~*", "&*", "+@all", "-lset"});
        Comparison comparison(redis, report);
        std::uint64_t seed = options.number("seed");
        for (std::uint64_t done = 0; done < options.number("size"); done += commands_per_round) {
            comparison.round(seed++);
        }
        return report.finish(
            {"BLMOVE", "DEL",     "EVAL",    "EVALSHA",   "EXISTS",   "EXPIRE", "GET",    "HDEL",
             "HGET",   "HGETALL", "HINCRBY", "INCR",      "KEYS",     "LINDEX", "LLEN",   "LMOVE",
             "LPUSH",  "LRANGE",  "LREM",    "LSET",      "LTRIM",    "PTTL",   "RENAME", "RPOP",
             "RPUSH",  "SADD",    "SET",     "SISMEMBER", "SMEMBERS", "SREM",   "TYPE"});
    });
}
