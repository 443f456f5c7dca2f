// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Scenes for each script of the library, one for every way that it can go: the keys in Redis before
// it, and its arguments.

#pragma once

#include "library_scripts.hpp"

#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/keys.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

struct SceneKey {
    std::string name;
    std::string kind; ///< as Redis' TYPE says; empty: any will do
};

struct Scene {
    std::string script; ///< its name in library_scripts()
    std::string way;
    std::vector<std::vector<std::string>> before; ///< commands
    std::vector<SceneKey> keys;
    std::vector<std::string> args;
    std::vector<SceneKey> named = {}; ///< keys that only messages name

    [[nodiscard]] std::vector<SceneKey> all_keys() const {
        std::vector<SceneKey> all = keys;
        all.insert(all.end(), named.begin(), named.end());
        return all;
    }
};

class Scenes {
  public:
    Scenes() {
        consumer();
        guard();
        collector();
        schedule();
        recurring();
        dead();
        unique_and_bounded();
        order();
        group();
        progress();
        once();
        shards();
        inspector();
        report();
        add("send by a ledger", "", {{"SET", m_keys.ledger(), "1:1"}},
            {{m_keys.ledger(), "string"}, m_source}, {"1:1", "1:2", "a", "b"});
        add("find what a ledger has lost", "",
            {{"SET", m_keys.ledger(), "1:1"}, {"LPUSH", "q", "a"}, {"LPUSH", m_dead.name, m_entry}},
            {{m_keys.ledger(), "string"}, m_source, m_dead}, {"0", "100", "100", "10", "1000"});
    }
    [[nodiscard]] const std::vector<Scene>& all() const noexcept { return m_all; }

  private:
    using Words = std::vector<std::string>;
    using Commands = std::vector<Words>;

    void add(std::string script, std::string way, Commands before, std::vector<SceneKey> keys,
             Words args) {
        m_all.push_back({std::move(script), std::move(way), std::move(before), std::move(keys),
                         std::move(args)});
    }
    /// The last scene has a unique job that holds its lock.
    void with_lock() {
        m_all.back().before.push_back({"SET", m_lock.name, "ack id"});
        m_all.back().named.push_back(m_lock);
    }
    /// The last scene ends a member of a group: the last one, behind which a job follows.
    void with_group(const std::string& left = "1") {
        m_all.back().before.insert(m_all.back().before.begin(), grouped(left));
        m_all.back().named.push_back(m_group);
        m_all.back().named.push_back(m_follower);
    }
    Words grouped(const std::string& left) {
        return {"HSET",   m_group.name, "job id", "",  "left",    left,    "to",      "follower",
                "then",   "a",          "then 2", "b", "then 3",  "c",     "then 4",  "d",
                "failed", "0",          "jobs",   "1", "on_dead", "count", "expires", "60000"};
    }
    void consumer();
    void guard();
    void collector();
    void schedule();
    void recurring();
    void dead();
    void unique_and_bounded();
    void order();
    void group();
    void progress();
    void once();
    void shards();
    void inspector();
    void report();

    /// A scene for a script that removes the message of a guard.
    void by_guard(const std::string& script, const std::string& way, Commands before,
                  std::vector<SceneKey> keys, const Words& args) {
        before.insert(before.begin(), m_held.begin(), m_held.end());
        keys.insert(keys.begin(), m_processing);
        Words all{"orz:n:0", "orz:n:1", "3", "-3"};
        all.insert(all.end(), args.begin(), args.end());
        add(script, way, std::move(before), std::move(keys), std::move(all));
    }

    /// An entry of the dead list.
    const std::string m_entry = std::string("\x94\x01\xa1p\xa1r\xcf", 7) + std::string(8, '\x00');

    /// The beginning of a unique job: what says which lock it has.
    const std::string m_unique_job{"\x9a\x01\xa2id\x01\x01\x01\xc0\xc0\xa0\xa1u\xa0"};
    /// A member of a group.
    const std::string m_member =
        std::string(
            "\xdc\0\x11\x01\xa2id\x01\x01\x01\xc0\xc0\xa0\xa0\xa0\xc4\0\x81\xa1x\xa1y\xc0\xc0\xc0"
            "\xc0\xd9\x2c",
            28) +
        "orz-group:" + std::string(32, '0') + ":q";
    const std::string m_dead_member = std::string("\x94\x01\xd9") +
                                      static_cast<char>(m_member.size()) + m_member +
                                      std::string("\xa1r\xcf", 3) + std::string(8, '\x00');
    const std::string m_dead_job =
        "\x94\x01" + std::string(1, static_cast<char>(0xa0 + m_unique_job.size())) + m_unique_job +
        std::string("\xa1r\xcf", 3) + std::string(8, '\x00');

    Keys m_keys{"q"};
    SceneKey m_lock{m_keys.unique("u"), ""};
    SceneKey m_group{m_keys.group(std::string(32, '0')), "hash"};
    SceneKey m_follower{"follower", "list"};
    SceneKey m_source{"q", "list"};
    SceneKey m_heartbeat{m_keys.heartbeat("id"), "string"};
    SceneKey m_processing{m_keys.processing("id"), "list"};
    SceneKey m_consumers{m_keys.consumers(), "set"};
    SceneKey m_dead{m_keys.dead(), "list"};
    // The oldest message is a; another one is in the source.
    Commands m_held{{"LPUSH", m_keys.processing("id"), "orz:n:0", "a", "b", "c"},
                    {"SADD", m_keys.consumers(), "id"},
                    {"LPUSH", "q", "d", "e"}};
    std::vector<Scene> m_all;
};

inline void Scenes::consumer() {
    const SceneKey unack{m_keys.unack(), ""};
    add("start", "", {},
        {m_heartbeat, m_processing, m_consumers, {"q", ""}, unack, {m_dead.name, ""}},
        {"id", "30000", "orz:n:0"});
    Commands alive = m_held;
    alive.push_back({"SET", m_heartbeat.name, "1", "PX", "60000"});
    const std::vector<SceneKey> beats{
        m_heartbeat, {m_processing.name, ""}, m_consumers, {m_keys.writes(), ""}};
    const Words beat{"id", "30000", m_keys.suspects(), m_keys.suspects_asked(), "60000"};
    add("beat", "", alive, beats, beat);
    add("beat", "of one whose list is lost", {}, beats, beat);
    const auto settle = [&](const std::string& way, const Words& args) {
        Words all{"orz:n:0", "orz:n:1"};
        all.insert(all.end(), args.begin(), args.end());
        std::vector<SceneKey> keys{m_processing};
        if (args.size() > 1 && args[1] != "0") {
            keys.push_back({"q", ""});
        }
        add("settle", way, m_held, keys, all);
    };
    settle("all", {"-4"});
    settle("all, and fetches", {"-4", "2"});
    settle("the oldest", {"-2", "0", "3"});
    settle("one in the middle", {"-1", "0", "3", "-3"});
    settle("the oldest and the newest", {"-2", "0", "3", "-4"});
    settle("the newest, by runs", {"-1", "0", "3", "2", "1"});
    settle("all but one, by runs, and fetches", {"-2", "2", "3", "1", "1"});
    settle("none, and fetches", {"-1", "2", "3"});
    settle("the oldest and the newest, and fetches", {"-2", "2", "3", "-4"});
    const SceneKey heartbeat{m_heartbeat.name, ""};
    add("release", "what is not held", alive,
        {m_processing, m_source, heartbeat, {m_consumers.name, ""}},
        {"orz:n:0", "orz:n:1", "3", "1", "id", "60000"});
    add("release", "all", alive, {m_processing, m_source, heartbeat, m_consumers},
        {"orz:n:0", "orz:n:1", "3", "0", "id", "60000"});
    const std::vector<SceneKey> both{{m_heartbeat.name, ""},
                                     m_processing,
                                     {m_keys.heartbeat("new"), "string"},
                                     {m_keys.processing("new"), ""},
                                     m_consumers};
    const Words args{"id", "new", "orz:m:0", "60000", "30000", "orz:n:"};
    add("adopt", "", alive, both, args);
    Commands marked = alive;
    marked.push_back({"LSET", m_processing.name, "1", "orz:n:1"});
    add("adopt", "a list with a header in its middle", marked, both, args);
    add("measure", "", alive, {heartbeat, {m_processing.name, ""}}, {"30000"});
    add("adopt", "a list without messages", {{"LPUSH", m_processing.name, "orz:n:0"}}, both, args);
}

inline void Scenes::guard() {
    by_guard("push by a guard", "", {}, {{"other", "list"}}, {});
    by_guard("push by a guard", "another payload", {}, {{"other", "list"}}, {"x"});
    by_guard("release by a guard", "", {}, {m_source}, {});
    by_guard("bury by a guard", "", {}, {m_dead}, {"a reason"});
    const SceneKey suspects{m_keys.suspects(), "list"};
    const SceneKey recoveries{m_keys.recoveries(), "hash"};
    Commands suspected = m_held;
    suspected.push_back({"HSET", recoveries.name, "field", "1"});
    by_guard("ack a suspect by a guard", "", {{"HSET", recoveries.name, "field", "1"}},
             {{recoveries.name, ""}}, {});
    suspected.push_back({"LPUSH", suspects.name, "x"});
    const std::vector<SceneKey> keys{
        m_processing, suspects, recoveries, {m_keys.suspects_asked(), "string"}};
    for (const std::string held : {"0", "1"}) {
        add("try a suspect", "beside " + held, suspected, keys,
            {"orz:n:0", "orz:n:1", "3", held, held, "1", "1", "1", "60000"});
    }
}

inline void Scenes::collector() {
    const SceneKey recoveries{m_keys.recoveries(), "hash"};
    const std::vector<SceneKey> keys{{m_heartbeat.name, ""},
                                     m_processing,
                                     m_source,
                                     m_consumers,
                                     recoveries,
                                     m_dead,
                                     {m_keys.writes(), ""},
                                     {m_keys.suspects(), ""},
                                     {m_keys.suspects_asked(), ""}};
    const auto with_grace = [](Words arguments, const std::string& grace,
                               const std::string& takers = "0") {
        for (const std::string& more : Words{grace, "0", "1", "5", "86400000", "60000", takers}) {
            arguments.push_back(more);
        }
        return arguments;
    };
    add("reap", "and put apart", m_held, keys,
        with_grace({"id", "60000", "3", "1000", "0", "2"}, "0", "1"));
    add("return suspects", "", {{"RPUSH", m_keys.suspects(), "a", "b"}},
        {{m_keys.suspects(), "list"}, m_source, {m_keys.suspects_asked(), ""}}, {});
    add("reap", "", m_held, keys, with_grace({"id", "60000", "3", "1000", "0", "1"}, "0"));
    add("reap", "not yet", m_held, keys,
        with_grace({"id", "60000", "3", "1000", "0", "1"}, "60000"));
    Commands often = m_held;
    const auto sha1 = detail::sha1_hex("a");
    often.push_back({"HSET", recoveries.name, std::string(std::string_view(sha1)), "3"});
    add("reap", "and bury", often, keys, with_grace({"id", "60000", "3", "1000", "5", "2"}, "0"));
    Commands dies = m_held;
    dies.push_back({"LSET", m_processing.name, "2", m_member});
    dies.push_back({"HSET", recoveries.name, "job id", "3"});
    dies.push_back(grouped("1"));
    add("reap", "and bury a member", dies, keys,
        with_grace({"id", "60000", "3", "1000", "0", "1"}, "0"));
    m_all.back().named = {{m_group.name, ""}, {m_follower.name, ""}};
    often.push_back({"LPUSH", m_dead.name, m_dead_job});
    add("reap", "and bury in place of a unique job", often, keys,
        with_grace({"id", "60000", "3", "1000", "1", "2"}, "0"));
    with_lock();
    add("reap", "what is fenced",
        {{"SADD", m_consumers.name, "id"}, {"SET", m_processing.name, "reaped orz:n:3"}},
        {{m_heartbeat.name, ""},
         {m_processing.name, ""},
         {"q", ""},
         m_consumers,
         {recoveries.name, ""},
         {m_dead.name, ""},
         {m_keys.writes(), ""},
         {m_keys.suspects(), ""},
         {m_keys.suspects_asked(), ""}},
        with_grace({"id", "60000", "3", "1000", "0", "1"}, "0"));
    for (const std::string command : {"", "SCAN"}) {
        add("take a turn of the fleet", command, {}, {{m_keys.heartbeat("turn"), ""}},
            {"1000", "60000", command});
        add("take a turn of the fleet", command + " that somebody has",
            {{"SET", m_keys.heartbeat("turn"), "", "PX", "60000"}},
            {{m_keys.heartbeat("turn"), ""}}, {"60000", "60000", command});
    }
    add("visit", "", {{"SET", m_keys.writes(), "60000 1 0", "PX", "60000"}},
        {{m_keys.writes(), "string"}, {m_keys.heartbeat(""), ""}}, {"86400000", "1"});
    add("refill", "", {{"LPUSH", m_keys.unack(), "a", "b"}}, {{m_keys.unack(), "list"}, m_source},
        {"10"});
}

inline void Scenes::schedule() {
    const SceneKey scheduled{m_keys.scheduled(), "zset"};
    const std::vector<SceneKey> keys{scheduled,
                                     m_source,
                                     {m_keys.scheduled_sequence(), "string"},
                                     {m_keys.scheduled_wake(), "list"}};
    for (const std::string delay : {"0", "60000"}) {
        add("schedule", delay, {}, keys, {"after", delay, "x"});
        add("schedule", delay + ", several", {}, keys, {"after", delay, "x", "y", "x"});
        by_guard("schedule by a guard", delay, {}, keys, {"after", delay});
        by_guard("schedule by a guard", delay + ", another payload", {}, keys,
                 {"after", delay, "x"});
        std::vector<SceneKey> charging = keys;
        charging.push_back({m_keys.recoveries(), ""});
        by_guard("schedule by a guard", delay + ", charging a death",
                 {{"HSET", m_keys.recoveries(), "job id", "1"}}, charging,
                 {"after", delay, "x", "job id", "1"});
        std::vector<SceneKey> with_lock = keys;
        with_lock.push_back({m_keys.unique("u"), "string"});
        for (const std::string ttl : {"0", "60000"}) {
            add("push what is unique", delay + ", " + ttl, {}, with_lock,
                {"after", delay, "x", "ack id", ttl});
        }
    }
    for (const std::string due : {"1", "9999999999999"}) {
        add("move what is due", due, {{"ZADD", scheduled.name, due, "12345678x"}},
            {scheduled, m_source, {m_keys.schedulers(), "zset"}},
            {"100", "1048576", "id", "60000"});
    }
    const SceneKey lock{m_keys.unique("u"), "string"};
    const Commands waiting{{"ZADD", scheduled.name, "1", "12345678x"},
                           {"SET", lock.name, "ack id"}};
    add("cancel what is scheduled", "without a lock", waiting, {scheduled}, {"12345678x"});
    add("cancel what is scheduled", "with its lock", waiting, {scheduled, lock},
        {"12345678x", "ack id"});
    add("run what is scheduled", "", waiting, {scheduled, m_source}, {"12345678x"});
}

inline void Scenes::recurring() {
    const SceneKey recurring{m_keys.recurring(), "hash"};
    add("look at recurrences", "", {{"HSET", recurring.name, "known", "5"}}, {recurring},
        {"known", "new", "other"});
    add("push occurrences", "", {{"HSET", recurring.name, "known", "5"}}, {recurring, m_source},
        {"known", "6", "a", "7", "b"});
    add("begin a recurrence anew", "", {{"HSET", recurring.name, "known", "5"}}, {recurring},
        {"known", "5"});
}

inline void Scenes::group() {
    Commands held = {{"LSET", m_processing.name, "1", m_member}};
    by_guard("ack a member by a guard", "the last", {}, {m_group}, {"job id"});
    m_all.back().before.push_back(grouped("1"));
    m_all.back().named.push_back(m_follower);
    by_guard("ack a member by a guard", "one of two", {grouped("2")}, {m_group}, {"job id"});
    by_guard("ack a member by a guard", "that has ended", {grouped("1")}, {m_group}, {"job other"});
    by_guard("bury by a guard", "a member", held, {m_dead}, {"a reason"});
    with_group();
    add("redrive or purge", "a member", {{"LPUSH", m_dead.name, m_dead_member}}, {m_dead},
        {"4", "0", "1000"});
    with_group();
    add("cut the dead", "a member", {{"LPUSH", m_dead.name, m_dead_member}}, {m_dead},
        {"0", "1000"});
    with_group();
    add("push within a bound", "a member goes", {{"LPUSH", "q", m_member}}, {m_source},
        {"1", "drop", "x"});
    with_group();
    add("remove a member", "that waits", {{"LPUSH", "q", m_member}}, {m_source},
        {m_member, m_member, "orizuru:{q}:"});
    with_group();
    add("cancel", "a member", {{"LPUSH", "q", m_member}}, {m_source, m_dead},
        {m_member, "why", m_member, "", ""});
    with_group();
    const std::string later = "12345678" + m_member;
    const SceneKey scheduled{m_keys.scheduled(), ""};
    add("remove a member", "that is scheduled", {{"ZADD", scheduled.name, "5", later}}, {scheduled},
        {later, m_member, "orizuru:{q}:"});
    with_group();
    add("remove a member", "that is unique", {{"LPUSH", "q", m_unique_job}}, {m_source},
        {m_unique_job, m_unique_job, "orizuru:{q}:"});
    with_lock();
    const SceneKey groups{m_keys.groups(), "zset"};
    add("open a group", "", {{"ZADD", groups.name, "1", std::string(32, '1')}}, {m_group, groups},
        {"expires", "60000", "open", "1"});
    add("open a group", "beside one that stays",
        {{"ZADD", groups.name, "1", std::string(32, '0')}, grouped("1")},
        {{m_keys.group(std::string(32, '1')), "hash"}, groups}, {"expires", "60000", "open", "1"});
    add("states of groups", "", {{"ZADD", groups.name, "1", std::string(32, '0')}, grouped("1")},
        {groups}, {m_keys.group(""), "0", "9"});
    Commands open{grouped("2")};
    open.push_back({"HSET", m_group.name, "open", "1"});
    add("push members", "", open, {m_group, m_source}, {"other", "x", "third", "y"});
    add("commit a group", "", open, {m_group}, {});
    open.push_back({"HDEL", m_group.name, "job id"});
    open.push_back({"HSET", m_group.name, "left", "1"});
    add("commit a group", "whose members have ended", open, {m_group}, {});
    m_all.back().named.push_back(m_follower);
    add("commit a group", "for the second time", {grouped("1")}, {m_group}, {});
}

inline void Scenes::dead() {
    const Commands before{{"LPUSH", m_dead.name, m_entry, "no entry", m_entry, m_entry}};
    add("list the dead", "", before, {m_dead}, {"0", "9"});
    add("redrive one", "", before, {m_dead, m_source}, {m_entry});
    add("remove one of the dead", "", before, {m_dead}, {m_entry});
    add("remove one of the dead", "a unique one",
        {before.front(), {"SET", m_keys.unique("u"), "ack id"}}, {m_dead, {m_keys.unique("u"), ""}},
        {m_entry, "ack id"});
    add("redrive or purge", "to the source", before, {m_dead, m_source}, {"4", "0"});
    add("redrive or purge", "away", before, {m_dead}, {"4", "0", "1000"});
    add("redrive or purge", "a unique job away", {{"LPUSH", m_dead.name, m_dead_job}}, {m_dead},
        {"4", "0", "1000"});
    with_lock();
    add("cut the dead", "", before, {m_dead}, {"1", "1000"});
    add("cut the dead", "a unique job", {{"LPUSH", m_dead.name, m_dead_job}}, {m_dead},
        {"0", "1000"});
    with_lock();
}

inline void Scenes::unique_and_bounded() {
    const SceneKey lock{m_keys.unique("u"), "string"};
    by_guard("unlock by a guard", "", {{"SET", lock.name, "ack id"}}, {lock}, {"ack id"});
    by_guard("bury unlocked by a guard", "", {{"SET", lock.name, "ack id"}}, {lock, m_dead},
             {"ack id", "why"});
    const SceneKey any_lock{lock.name, ""};
    add("take a permit", "", {}, {{m_keys.rate("k"), "string"}}, {"10", "1", "100"});
    const auto admit = [&](const std::string& way, Commands before, Texts asked) {
        const bool has_slots = asked[3] != "0";
        const bool has_rate = asked[4] != "0";
        asked.insert(asked.begin(), {"o", "1000"});
        add("admit", way, std::move(before),
            {{m_keys.slots_taken(), has_slots ? "zset" : ""},
             {m_keys.slots_freed(), has_slots ? "list" : ""},
             {m_keys.queue_rate(), has_rate ? "string" : ""},
             {m_keys.writes(), has_slots ? "string" : ""},
             m_source,
             {m_keys.suspects(), "list"}},
            asked);
    };
    const Texts some{"LPUSH", "q", "x", "y"};
    admit("to a slot", {some}, {"1", "2", "0", "5", "0", "0", "0", "2", "fetch", "0", "0"});
    admit("to a rate", {some, {"SET", m_keys.queue_rate(), "7 9"}},
          {"0", "0", "0", "0", "10", "1", "100", "1", "fetch", "7", "2"});
    admit("where slots have lapsed",
          {some,
           {"ZADD", m_keys.slots_taken(), "1", "1 p 1", "9000000000000000", "1 p 2"},
           {"SET", m_keys.writes(), "1000 5000 0", "PX", "900"}},
          {"0", "3", "0", "2", "10", "1", "100", "2", "hold", "0", "0"});
    add("cancel", "a unique job", {{"LPUSH", "q", "x"}, {"SET", lock.name, "ack id"}},
        {m_source, m_dead, any_lock}, {"x", "why", "x", "", "ack id"});
    add("cancel", "what is scheduled", {{"ZADD", m_keys.scheduled(), "5", "12345678x"}},
        {{m_keys.scheduled(), ""}, m_dead}, {"12345678x", "why", "x", "", ""});
    add("extend a lock", "", {{"SET", lock.name, "ack id", "PX", "60000"}}, {lock},
        {"70000", "ack id"});
    add("push within a bound", "", {}, {m_source}, {"2", "refuse", "x"});
    add("push within a bound", "the oldest goes", {{"LPUSH", "q", "a", "b"}}, {m_source},
        {"2", "drop", "x"});
    add("push within a bound", "a unique job goes", {{"LPUSH", "q", m_unique_job}}, {m_source},
        {"1", "drop", "x"});
    with_lock();
}

inline void Scenes::order() {
    const std::string digits = "0123456789abcdef";
    const SceneKey list{m_keys.order("k"), "list"};
    const SceneKey behind{m_keys.keyed(), ""};
    const std::vector<SceneKey> keys{m_source, list, behind};
    const auto and_also = [](std::vector<SceneKey> some, const std::vector<SceneKey>& more) {
        some.insert(some.end(), more.begin(), more.end());
        return some;
    };
    const Commands two{{"RPUSH", list.name, digits, "fedcba9876543210x"},
                       {"ZADD", behind.name, "1", "k", "-1", ""}};
    const auto beside = [&](Commands others) {
        others.insert(others.begin(), two.begin(), two.end());
        return others;
    };
    const std::vector<SceneKey> pushes{m_source, list, {behind.name, "zset"}};
    add("push in order", "the first", {}, pushes, {digits, "x", digits, "y"});
    add("push in order", "behind others", two, pushes, {digits, "x"});
    by_guard("ack in order by a guard", "", two, keys, {digits});
    by_guard("ack in order by a guard", "the last", {{"RPUSH", list.name, digits}},
             {{"q", ""}, list, behind}, {digits});
    by_guard("ack in order by a guard", "another one's turn", two, {{"q", ""}, list, behind},
             {"none"});
    by_guard("bury in order by a guard", "", two, and_also(keys, {m_dead}), {digits, "why", "x"});
    const std::vector<SceneKey> scheduling{{m_keys.scheduled(), "zset"},
                                           {"other", "list"},
                                           {m_keys.scheduled_sequence(), "string"},
                                           {m_keys.scheduled_wake(), "list"}};
    for (const std::string delay : {"0", "60000"}) {
        by_guard("leave an order by a guard", delay, two, and_also(keys, scheduling),
                 {digits, "after", delay, "x"});
    }
    const SceneKey mark{m_keys.burst("k"), ""};
    const SceneKey any_source{"q", ""};
    const Commands burst{{"RPUSH", list.name, digits, "fedcba9876543210x", "0000000000000000y"},
                         {"ZADD", behind.name, "2", "k", "-2", ""},
                         {"SET", mark.name, digits + " 2"}};
    by_guard("ack in order by a guard", "a burst", burst, and_also(keys, {mark}),
             {digits + " 2 1 fedcba9876543210"});
    by_guard("ack in order by a guard", "all of a key", burst, {any_source, list, behind, mark},
             {digits + " 3 2 0000000000000000"});
    by_guard("bury in order by a guard", "a burst", burst, and_also(keys, {m_dead, mark}),
             {digits + " 2 1 fedcba9876543210", "why", "x"});
    for (const std::string delay : {"0", "60000"}) {
        by_guard("leave an order by a guard", "a burst, " + delay, burst,
                 and_also(and_also(keys, scheduling), {mark}),
                 {digits + " 2 1 fedcba9876543210", "after", delay, "x"});
        by_guard("defer in a burst by a guard", delay, burst,
                 and_also(and_also({any_source, list, behind}, scheduling), {mark}),
                 {digits + " 2 2 0000000000000000", "after", delay, "y"});
    }
    const SceneKey own_mark{mark.name, "string"};
    add("begin a burst", "", two, {list, own_mark}, {digits, "2"});
    add("begin a burst", "none behind", {{"RPUSH", list.name, digits}, {"SET", mark.name, "ab 1"}},
        {list, own_mark}, {digits, "2"});
    add("begin a burst", "behind one that was not settled", {two[0], {"SET", mark.name, "ab 3"}},
        {list, own_mark}, {digits, "2"});
    by_guard("enter an order by a guard", "the first", {}, keys, {digits, "x"});
    by_guard("enter an order by a guard", "behind others", two, keys, {digits, "x"});
    const SceneKey unack{m_keys.unack(), "list"};
    const SceneKey scheduled{m_keys.scheduled(), ""};
    const SceneKey other{"other", "list"};
    add("take out of an order", "what is rejected", beside({{"LPUSH", unack.name, "x"}}),
        and_also(keys, {unack}), {digits, "x"});
    add("take out of an order", "what is scheduled, into another queue",
        beside({{"ZADD", scheduled.name, "5", "12345678x"}}), and_also(keys, {scheduled, other}),
        {digits, "12345678x", "y"});
    add("cancel", "a job that has its turn", beside({{"LPUSH", unack.name, "x"}}),
        {unack, m_dead, m_source, list, behind}, {"x", "why", "y", digits, ""});
    add("take the turn of the upkeep", "", {}, {{m_keys.keyed_upkeep(), "string"}}, {"id", "1000"});
    const std::string entry = std::string("\x94\x01\xa8orz-key:\xa1r\xcf") + std::string(8, '\0');
    const Commands died = beside({{"LPUSH", m_dead.name, entry}});
    add("find turns of the dead", "", died, {m_dead}, {"0", "9"});
    add("end a turn of the dead", "", died, and_also(keys, {m_dead}), {digits, entry, "x"});
    add("recount keys", "", {{"ZADD", behind.name, "5", "k", "-5", ""}}, {{behind.name, "zset"}},
        {m_keys.order(""), "0", "9"});
    add("first digits of orders", "", two, {{list.name, ""}}, {});
    add("digits in a place", "a list", {{"LPUSH", "q", "orz-key:" + digits}}, {{"q", ""}},
        {"0", "9"});
    add("digits in a place", "the scheduled", {{"ZADD", scheduled.name, "5", "orz-key:" + digits}},
        {scheduled}, {"0", "9"});
    add("end a turn", "", two, keys, {digits});
}

inline void Scenes::progress() {
    add("set progress", "", {}, {{m_keys.progress("j"), "hash"}}, {"60000", "0.5", "half"});
    add("set a result", "", {}, {{m_keys.result("j"), "string"}}, {"60000", "x"});
}

inline void Scenes::once() {
    const SceneKey record{m_keys.once("o"), "hash"};
    const Commands claimed{
        {"HSET", record.name, "state", "claimed", "fence", "7", "until", "1", "nonce", "n"}};
    add("claim", "", {}, {record, {m_keys.fences(), "string"}}, {"30000", "60000", "n"});
    add("complete a claim", "", claimed, {record}, {"7", "60000", "result"});
    by_guard("complete a claim by a guard", "", claimed, {record}, {"7", "60000", "result"});
    add("release a claim", "", claimed, {record}, {"7"});
    Commands two = claimed;
    two.push_back(claimed.front());
    two.back()[1] = m_keys.once("p");
    add("renew claims", "", two, {{record.name, ""}, {m_keys.once("p"), ""}},
        {"30000", "60000", "7", "7"});
}

inline const std::vector<Scene>& scenes() {
    static const Scenes all;
    return all.all();
}

inline void Scenes::shards() {
    const SceneKey text{m_keys.shards(), ""};
    add("replace a text", "none by another", {}, {text}, {"", "4"});
    add("replace a text", "one by another", {{"SET", text.name, "4"}}, {text}, {"4", "4 8"});
    add("open a shard", "", {{"SET", "q", "orizuru:retired 5"}}, {{"q", ""}}, {"7"});
    add("retire a shard", "", {{"SADD", m_keys.consumers(), "id"}},
        {m_source,
         {m_keys.unack(), "list"},
         {m_keys.scheduled(), "zset"},
         m_dead,
         m_consumers,
         {m_keys.suspects(), "list"}},
        {"7", m_keys.processing("")});
}

inline void Scenes::report() {
    const std::vector<SceneKey> keys{
        {m_keys.worker("id"), "hash"}, {m_keys.counts(), "hash"}, {m_keys.counts("today"), "hash"}};
    const std::string today =
        std::to_string(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())
                           .time_since_epoch()
                           .count());
    const auto args = [&](const std::string& expiry) {
        return Words{
            today, expiry, "60000", "1", "10", "5", "6 2 id", "0", "succeeded 1 3 run:us 0 5000 "};
    };
    add("report of a worker", "", {{"HSET", m_keys.worker("id"), "succeeded", "2"}}, keys,
        args("15000"));
    add("report of a worker", "that has gone", {}, keys, args("0"));
    add("counts of days", "", {{"HSET", m_keys.counts("today"), "failed", "1"}},
        {{m_keys.counts("today"), "hash"}, {m_keys.counts("before"), "hash"}}, {});
    add("list the jobs that run", "",
        {{"SADD", m_consumers.name, "id"}, {"HSET", m_keys.worker("id"), "jobs", "6 2 id"}},
        {{m_consumers.name, ""}}, {m_keys.worker(""), "id"});
    add("forget cancels", "", {{"HSET", m_keys.cancelled(), "id", "5 why"}},
        {{m_keys.cancelled(), "hash"}}, {"id", "5 why"});
    add("request a cancel", "", {}, {{m_keys.cancelled(), "hash"}, {m_keys.worker("id"), "hash"}},
        {"id", "why", "1000", "9"});
    add("reports of workers", "",
        {{"SADD", m_consumers.name, "id"}, {"HSET", m_keys.worker("id"), "threads", "1"}},
        {m_consumers}, {m_keys.worker("")});
}

inline void Scenes::inspector() {
    Commands before = m_held;
    before.push_back({"ZADD", m_keys.scheduled(), "5", "12345678x"});
    before.push_back({"ZADD", m_keys.groups(), "1", std::string(32, '0')});
    before.push_back(grouped("1"));
    before.push_back({"SET", m_keys.queue_rate(), "7 9"});
    add("states of queues", "", before,
        {m_source,
         {m_keys.unack(), "list"},
         {m_keys.scheduled(), "zset"},
         m_dead,
         m_consumers,
         {m_keys.paused(), ""},
         {m_keys.suspects(), "list"},
         {m_keys.keyed(), "zset"},
         {m_keys.groups(), "zset"},
         {m_keys.slots_taken(), "zset"},
         {m_keys.slots_freed(), "list"},
         {m_keys.queue_rate(), "string"}},
        {"600", m_keys.processing(""), m_keys.heartbeat(""), m_keys.group(""), m_keys.collected()});
    add("states of consumers", "", m_held, {m_consumers},
        {m_keys.heartbeat(""), m_keys.processing("")});
    add("list what is held", "", m_held, {m_consumers}, {m_keys.processing(""), "1", "9"});
    add("move an element", "to be served next", m_held, {m_source, m_source}, {"e", "first"});
    add("move an element", "to be served last", {{"LPUSH", m_keys.unack(), "a"}},
        {{m_keys.unack(), "list"}, m_source}, {"a", "last"});
    const SceneKey scheduled{m_keys.scheduled(), "zset"};
    const SceneKey other{"other", "list"};
    const SceneKey lock{m_keys.unique("u"), ""};
    const Commands later{{"ZADD", scheduled.name, "5", "12345678x"}, {"SET", lock.name, "ack id"}};
    const Commands died{{"LPUSH", m_dead.name, m_entry, "no entry"}, {"SET", lock.name, "ack id"}};
    add("first bytes of what lists serve next", "", m_held, {}, {"9", "q", "none"});
    add("find messages", "of those that wait", m_held, {m_source}, {"0", "9", "e", "waiting"});
    add("find messages", "of the scheduled", later, {scheduled}, {"0", "9", "x", "scheduled"});
    add("find messages", "of the dead", died, {m_dead}, {"0", "9", "p", "dead"});
    add("find what is held", "", m_held, {m_consumers},
        {m_keys.processing(""), "e", "1", "1", "x", "id", "other"});
    add("move a message", "that waits", m_held, {m_source, other}, {"e", "waiting"});
    add("move a message", "that is dead", died, {m_dead, other}, {m_entry, "dead"});
    add("move a message", "that is scheduled, of a unique job",
        {{"ZADD", scheduled.name, "5", "12345678x\xa0"}}, {scheduled, other},
        {"12345678x\xa0", "scheduled", "1", "\xa1q"});
    add("look back", "at those that wait", {{"LPUSH", "q", "a", "b", "c", "d"}}, {m_source},
        {"waiting", "0", "9", "b", "x", "2", "b"});
    add("look back", "at the scheduled", later, {scheduled},
        {"scheduled", "0", "9", "12345678x", "", "0", ""});
    add("look back", "at the dead", died, {m_dead}, {"dead", "0", "9", m_entry, "", "0", ""});
    add("remove some", "that are dead, one with its lock", died, {m_dead, lock},
        {"dead", "marker", "0", "10", m_entry, "2", "ack id", "no entry", "0", ""});
    add("remove some", "that are scheduled", later, {scheduled, lock},
        {"scheduled", "marker", "0", "10", "12345678x", "2", "ack id"});
    add("run some", "that wait", m_held, {m_source, m_source},
        {"waiting", "marker", "-1", "10", "2", "x", "e"});
    const SceneKey suspects{m_keys.suspects(), "list"};
    add("run some", "that are suspected", {{"LPUSH", suspects.name, "a", "b"}},
        {suspects, m_source}, {"suspected", "marker", "-1", "10", "0", "", "a"});
    add("run some", "that are dead", died, {m_dead, m_source},
        {"dead", "marker", "0", "10", "0", "", m_entry});
    add("run some", "that are scheduled", later, {scheduled, m_source},
        {"scheduled", "marker", "0", "10", "0", "", "12345678x"});
}

} // namespace orizuru::test
