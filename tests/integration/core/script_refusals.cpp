// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Runs each script of the library without each of its commands, without each right to each of its
// keys, and with each of its keys of another type: a refused script has changed nothing.

#include "integration/core/queue_fixture.hpp"
#include "support/script_scenes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace script_refusals_test {

using orizuru::test::Answer;
using orizuru::test::contains;
using orizuru::test::library_scripts;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::Scene;
using orizuru::test::SceneKey;
using orizuru::test::scenes;
using orizuru::test::server;
using orizuru::test::Texts;

#ifdef SOURCE_ROOT
const std::filesystem::path source_root = SOURCE_ROOT;
#else
const std::filesystem::path source_root = ".";
#endif

/// The names of the Redis commands in a script.
std::set<std::string> commands_in(const std::string& script) {
    static const std::regex call(R"(redis\.p?call\('([A-Z]+)')");
    std::set<std::string> names;
    for (std::sregex_iterator at(script.begin(), script.end(), call), end; at != end; ++at) {
        names.insert((*at)[1]);
    }
    return names;
}

/// One server, a user who may do everything, and one who may not.
class Stage {
  public:
    explicit Stage(const std::string& uri, std::string renamed = {})
        : m_renamed(std::move(renamed)), m_all(uri), m_clerk(uri) {
        allow({"~*", "+@all"});
        m_clerk.command({"AUTH", "clerk", "x"});
    }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    ~Stage() { m_all.try_command({"ACL", "DELUSER", "clerk"}); }

    void allow(const Texts& rules) {
        Texts words{"ACL", "SETUSER", "clerk", "reset", "on", "nopass"};
        words.insert(words.end(), rules.begin(), rules.end());
        m_all.command(words);
    }
    void set(const Scene& scene) {
        m_all.command({"FLUSHALL"});
        for (Texts words : scene.before) {
            if (words.front() == m_renamed) {
                words.front() = hidden(m_renamed);
            }
            m_all.command(words);
        }
    }
    void spoil(const std::string& key, const std::string& kind) {
        static const std::map<std::string, Texts> commands{{"list", {"RPUSH", "x"}},
                                                           {"hash", {"HSET", "x", "y"}},
                                                           {"set", {"SADD", "x"}},
                                                           {"string", {"SET", "x"}}};
        m_all.command({"DEL", key});
        Texts words = commands.at(kind);
        words.insert(words.begin() + 1, key);
        m_all.command(words);
    }
    Answer run(const Scene& scene) {
        Texts words{"EVAL", library_scripts().at(scene.script), std::to_string(scene.keys.size())};
        for (const SceneKey& key : scene.keys) {
            words.push_back(key.name);
        }
        words.insert(words.end(), scene.args.begin(), scene.args.end());
        return m_clerk.try_command(words);
    }
    /// All keys and values, byte by byte, and whether they expire.
    std::map<std::string, std::string> everything() {
        std::map<std::string, std::string> found;
        for (const std::string& key : m_all.keys()) {
            found[key] = m_all.command({"DUMP", key}).text +
                         std::to_string(m_all.command({"EXPIRETIME", key}).integer);
        }
        return found;
    }
    /// The elements of all lists.
    std::multiset<std::string> listed() {
        std::multiset<std::string> found;
        for (const std::string& key : m_all.keys()) {
            if (m_all.type(key) == "list") {
                const Texts elements = m_all.lrange(key);
                found.insert(elements.begin(), elements.end());
            }
        }
        return found;
    }

    static std::string hidden(const std::string& command) { return "hidden-" + command; }

  private:
    std::string m_renamed;
    RedisClient m_all;
    RedisClient m_clerk;
};

/// Counts the cells, and those that were refused.
struct Count {
    int cells = 0;
    int refused = 0;
};

/// Runs a scene with an obstacle. Returns the error, if there was one.
std::optional<std::string> try_cell(Stage& stage, const Scene& scene, Count& count) {
    const bool settles = scene.script == "settle";
    const auto before = stage.everything();
    auto lists_before = settles ? stage.listed() : std::multiset<std::string>();
    const Answer answer = stage.run(scene);
    ++count.cells;
    if (!answer.is_error()) {
        return std::nullopt;
    }
    ++count.refused;
    if (!settles) {
        CHECK_MESSAGE(stage.everything() == before, answer.text);
        return answer.text;
    }
    // It checks one right; the others were checked at the start. It may lose only the messages that
    // were to be settled: a, and c or b.
    for (const std::string& element : stage.listed()) {
        const auto found = lists_before.find(element);
        if (found != lists_before.end()) {
            lists_before.erase(found);
        }
    }
    for (const std::string settled : {"a", "b", "c", "orz:n:0"}) {
        lists_before.erase(settled);
    }
    CHECK_MESSAGE(lists_before.empty(), answer.text);
    return answer.text;
}

/// True when the script itself refused, with a reason.
void check_named(const std::string& error, const std::string& command, const Scene& scene) {
    // Before all other checks, these scripts check that the list is still their own.
    const bool looks_first = (command == "LINDEX" || command == "LLEN") &&
                             scene.keys.front().name == orizuru::Keys("q").processing("id");
    if (looks_first || scene.script == "settle") {
        return;
    }
    CHECK_MESSAGE(contains(error, "NOPERM "), error);
    CHECK_MESSAGE(contains(error, " " + command), error);
    const bool names_key = std::ranges::any_of(
        scene.all_keys(), [&](const SceneKey& key) { return contains(error, " on " + key.name); });
    CHECK_MESSAGE((names_key || command == "TIME"), error);
}

TEST_CASE_FIXTURE(QueueFixture, "each scene of each script runs, and each script has one") {
    Stage stage(uri);
    std::set<std::string> seen;
    for (const Scene& scene : scenes()) {
        CAPTURE(scene.script);
        CAPTURE(scene.way);
        stage.set(scene);
        const Answer answer = stage.run(scene);
        CHECK_MESSAGE(!answer.is_error(), answer.text);
        seen.insert(scene.script);
    }
    CHECK(seen.size() == library_scripts().size());
}

TEST_CASE_FIXTURE(QueueFixture, "a script whose user lacks a command has changed nothing") {
    Stage stage(uri);
    Count count;
    std::map<std::string, std::set<std::string>> needed;
    for (const Scene& scene : scenes()) {
        CAPTURE(scene.script);
        CAPTURE(scene.way);
        for (const std::string& command : commands_in(library_scripts().at(scene.script))) {
            CAPTURE(command);
            stage.set(scene);
            stage.allow({"~*", "+@all", "-" + command});
            if (const auto error = try_cell(stage, scene, count)) {
                needed[scene.script].insert(command);
                check_named(*error, command, scene);
            }
        }
    }
    for (const auto& entry : library_scripts()) {
        const std::string& name = entry.first;
        CAPTURE(name);
        std::set<std::string> commands = commands_in(entry.second);
        if (name == "settle") {
            commands.erase("RPOP"); // settled nevertheless
            needed[name].erase("RPOP");
        }
        if (name == "list the jobs that run") {
            commands.erase("TYPE"); // what a report of another type says is left out
        }
        if (name == "take a turn of the fleet") {
            commands.erase("TYPE"); // it takes its key back from any value there
        }
        if (name == "reap" || name == "beat") {
            commands.erase("GET");   // without it, all stay on the dead list
            commands.erase("PTTL");  // without these two, the series of writes is not told
            commands.erase("HMGET"); // without it, who dies does not count in its group
        }
        if (name == "beat") {
            commands.erase("EXISTS"); // without it, nobody hears of suspects
        }
        if (name.ends_with(" by a guard") && name != "complete a claim by a guard" &&
            name != "ack a member by a guard" && name != "bury by a guard") {
            commands.erase("HDEL"); // without it, the count of a suspect stays
        }
        for (const std::string counting : {"ZINCRBY", "ZREM"}) {
            if (!contains(entry.second, "redis.call('" + counting)) {
                commands.erase(counting); // without it, only what an operator sees is wrong
            }
        }
        if (name == "end a turn" || name == "end a turn of the dead" ||
            name == "take out of an order") {
            commands.erase("DEL"); // no burst ends so
        }
        if (name == "ack in order by a guard" || name == "end a turn") {
            commands.erase("TYPE"); // what reads and writes first finds other types
        }
        if (name == "schedule by a guard") {
            commands.erase("HEXISTS"); // without these two, a death is charged once more
            commands.erase("HSET");
        }
        if (name == "ack a suspect by a guard") {
            commands.erase("TYPE"); // there is no other key whose type counts
        }
        if (name == "redrive one" || name == "run what is scheduled" || name == "move a message" ||
            name == "run some") {
            commands.erase("TIME"); // without it, a job is served as it is
        }
        if (name == "states of queues") {
            commands.erase("TIME"); // without it, nobody sees what waits for a rate
        }
        CHECK(needed[name] == commands);
    }
    MESSAGE(count.cells << " cells, " << count.refused << " refused");
}

TEST_CASE_FIXTURE(QueueFixture, "a script whose user lacks a right to a key has changed nothing") {
    Stage stage(uri);
    Count count;
    for (const Scene& scene : scenes()) {
        CAPTURE(scene.script);
        CAPTURE(scene.way);
        for (const SceneKey& key : scene.all_keys()) {
            CAPTURE(key.name);
            for (const std::string right : {"%R~", "%W~", ""}) {
                CAPTURE(right);
                Texts rules{"+@all"};
                for (const SceneKey& other : scene.all_keys()) {
                    if (other.name != key.name) {
                        rules.push_back("~" + other.name);
                    } else if (!right.empty()) {
                        rules.push_back(right + key.name);
                    }
                }
                stage.set(scene);
                stage.allow(rules);
                try_cell(stage, scene, count);
            }
        }
    }
    MESSAGE(count.cells << " cells, " << count.refused << " refused");
}

TEST_CASE_FIXTURE(QueueFixture, "a script that finds a key of another type has changed nothing") {
    Stage stage(uri);
    Count count;
    for (const Scene& scene : scenes()) {
        CAPTURE(scene.script);
        CAPTURE(scene.way);
        for (const SceneKey& key : scene.all_keys()) {
            CAPTURE(key.name);
            for (const std::string kind : {"list", "hash", "set", "string"}) {
                CAPTURE(kind);
                // A string in place of a processing list is a fence.
                const bool fence = kind == "string" && contains(key.name, ":processing:");
                if (kind == key.kind || fence) {
                    continue;
                }
                stage.set(scene);
                stage.spoil(key.name, kind);
                const auto error = try_cell(stage, scene, count);
                CHECK_MESSAGE((error || key.kind.empty()), "it takes any type");
                if (error && scene.script != "settle") {
                    CHECK_MESSAGE((contains(*error, "WRONGTYPE ") || contains(*error, "BUSYNAME ")),
                                  *error);
                }
            }
        }
    }
    MESSAGE(count.cells << " cells, " << count.refused << " refused");
}

TEST_CASE("a script on a server without one of its commands has changed nothing") {
    std::set<std::string> all;
    for (const auto& [name, script] : library_scripts()) {
        all.merge(commands_in(script));
    }
    Count count;
    for (const std::string& command : all) {
        CAPTURE(command);
        const RedisServer renaming({"--rename-command", command, Stage::hidden(command)});
        Stage stage(renaming.uri(), command);
        for (const Scene& scene : scenes()) {
            CAPTURE(scene.script);
            CAPTURE(scene.way);
            if (!commands_in(library_scripts().at(scene.script)).contains(command)) {
                continue;
            }
            stage.set(scene);
            if (const auto error = try_cell(stage, scene, count)) {
                check_named(*error, command, scene);
            }
        }
    }
    MESSAGE(count.cells << " cells, " << count.refused << " refused");
}

TEST_CASE("the headers have no Lua but the listed scripts") {
    int pieces = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(source_root / "include/orizuru")) {
        if (!entry.is_regular_file()) {
            continue;
        }
        CAPTURE(entry.path().string());
        std::ifstream file(entry.path());
        const std::string text(std::istreambuf_iterator<char>(file), {});
        std::string others;
        std::size_t begin = 0;
        for (std::size_t open; (open = text.find("R\"lua(", begin)) != std::string::npos;) {
            const std::size_t close = text.find(")lua\"", open);
            REQUIRE(close != std::string::npos);
            others += text.substr(begin, open - begin);
            const std::string piece = text.substr(open + 6, close - open - 6);
            CAPTURE(piece);
            CHECK(std::ranges::any_of(library_scripts(), [&](const auto& script) {
                return contains(script.second, piece);
            }));
            ++pieces;
            begin = close;
        }
        others += text.substr(begin);
        // Doc comments show how to write a body.
        std::istringstream lines(others);
        for (std::string line; std::getline(lines, line);) {
            const bool comment = line.find_first_not_of(' ') == line.find("//");
            CHECK_MESSAGE((comment || !contains(line, "redis.call")), line);
        }
    }
    CHECK(pieces > 30);
}

} // namespace script_refusals_test
