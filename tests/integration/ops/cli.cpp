// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The commands of the program `orizuru`, without a process of their own.

#include "integration/core/queue_fixture.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/ops/cli.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace cli_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using Json = nlohmann::json;
using orizuru::Cli;
using orizuru::Consumer;
using orizuru::JobProducer;
using orizuru::PlacedMessage;
using orizuru::Raw;

struct Ran {
    int status;
    std::string out;
    std::string err;
};

struct Fixture : QueueFixture {
    Cli cli;
    JobProducer<Raw> jobs{uri, "q"};

    Ran run_at(const std::string& address, Texts arguments) {
        arguments.insert(arguments.begin(), {"-u", address});
        std::ostringstream out;
        std::ostringstream err;
        const int status = cli.run(arguments, out, err);
        return {status, out.str(), err.str()};
    }
    Ran run(const Texts& arguments) { return run_at(uri, arguments); }
    /// Of a command that succeeds.
    std::string text(const Texts& arguments) {
        const Ran ran = run(arguments);
        CHECK_MESSAGE(ran.status == 0, ran.err);
        return ran.out;
    }
    Json json(Texts arguments) {
        arguments.emplace_back("--json");
        const std::string document = text(arguments);
        CHECK(std::ranges::count(document, '\n') == 1);
        return Json::parse(document);
    }
    std::string payloads_in(const std::string& place) {
        const Json document = json({"peek", "q", "--where", place});
        std::string all;
        for (const Json& message : document.at("messages")) {
            all += message.at("payload").get<std::string>() + " ";
        }
        return all;
    }
    /// Of a wrong usage.
    std::string complaint(const Texts& arguments) {
        const Ran ran = run(arguments);
        CHECK_MESSAGE(ran.status == 2, ran.err);
        CHECK(ran.out.empty());
        return ran.err;
    }
    void bury_next(std::string_view reason = "bad") {
        Consumer<Raw> consumer(uri, "q");
        consumer.next()->bury(reason);
    }
    void push_as(const std::string& id, const std::string& payload = "payload") {
        orizuru::Job<Raw> job = orizuru::make_job(Raw{payload});
        job.id = id;
        std::string bytes;
        orizuru::Codec<orizuru::Job<Raw>>::encode(job, bytes);
        push({bytes});
    }
    void reject_next() {
        Consumer<Raw> consumer(uri, "q");
        consumer.next()->reject();
    }
    std::string all_keys() {
        std::string all;
        for (const std::string& key : redis.keys()) {
            all += key + redis.command({"DUMP", key}).text;
        }
        return all;
    }
};

/// Nothing that moves a terminal, hides, or reverses what stands beside it.
bool is_harmless(std::string_view text) {
    for (const std::string_view hidden :
         {"\x1b", "\x7f", "\r", "\x07", "\u009b", "\u202e", "\u2066", "\u200f", "\u061c", "\u200b",
          "\ufeff", "\xff", "\x9b"}) {
        // What continues a character of UTF-8 is no control.
        if (hidden != "\x9b" && contains(text, hidden)) {
            return false;
        }
    }
    return !contains(text, std::string(1, '\0'));
}

const std::string hostile = "a\x1b[2J\x07\r\nb\u009b31m\u202etxt\u2066\u200f\u061c\u200b\ufeff\xff";
const std::string hostile_shown = R"(a\u{1b}[2J\u{7}\r\nb\u{9b}31m\u{202e}txt\u{2066}\u{200f})"
                                  R"(\u{61c}\u{200b}\u{feff}\xff)";

TEST_CASE_FIXTURE(Fixture, "ls has a row for each queue, and a document of all") {
    redis.command({"SADD", "orizuru:queues", "q", "r"});
    push({"dead", "rejected"});
    bury_next();
    reject_next();
    redis.lpush("orizuru:{q}:suspects", {"suspected", "suspected"});
    jobs.push({"later"}, {.delay = 1h});
    jobs.push({"a"});
    push({"b", "c"});
    orizuru::Pause(uri, "q").pause();
    const Json queues = json({"ls"}).at("queues");
    REQUIRE(queues.size() == 2);
    const Json& q = queues[0];
    CHECK(q.at("queue") == "q");
    CHECK(q.at("waiting") == 3);
    CHECK(q.at("held") == 0);
    CHECK(q.at("scheduled") == 1);
    CHECK(q.at("rejected") == 1);
    CHECK(q.at("suspected") == 2);
    CHECK(q.at("dead") == 1);
    CHECK(q.at("consumers") == 0);
    CHECK(q.at("paused") == true);
    CHECK(q.at("oldest_ms") >= 0);
    CHECK(q.at("oldest_ms") < 60'000);
    CHECK(q.at("next_due").get<std::string>().ends_with("Z"));
    CHECK(queues[1].at("queue") == "r");
    CHECK(queues[1].at("oldest").is_null());
    const std::string table = text({"ls"});
    CHECK(
        table.starts_with("queue  waiting  held  scheduled  rejected  suspected  dead  consumers"));
    CHECK(
        contains(table, "\nq            3     0          1         1          2     1          0"));
    CHECK(contains(table, "yes\nr            0 "));
    CHECK(json({"ls", "r", "q"}).at("queues")[0].at("queue") == "r");
    // Names of commands and of options are names of queues, too.
    CHECK(json({"ls", "peek", "ls"}).at("queues").size() == 2);
    CHECK(contains(text({"ls", "--", "-n"}), "\n-n "));
}

TEST_CASE_FIXTURE(Fixture, "without a listed queue ls says so") {
    const Ran ran = run({"ls"});
    CHECK(ran.status == 0);
    CHECK(contains(ran.err, "no queue"));
}

TEST_CASE_FIXTURE(Fixture, "ls -n answers again and again until it is to stop") {
    std::stop_source stop;
    std::ostringstream out;
    std::ostringstream err;
    SUBCASE("at once") {
        stop.request_stop();
        CHECK(cli.run({"-u", uri, "ls", "q", "-n", "3600"}, out, err, stop.get_token()) == 0);
        CHECK(out.str().empty());
    }
    SUBCASE("in a pause") {
        const auto asked = [this] { return info("commandstats", "cmdstat_eval_ro:calls="); };
        redis.command({"CONFIG", "RESETSTAT"});
        std::jthread stopping([&] {
            CHECK(eventually([&] { return asked() >= 3; }));
            stop.request_stop();
        });
        CHECK(cli.run({"-u", uri, "ls", "q", "-n", "0.1", "--json"}, out, err, stop.get_token()) ==
              0);
        stopping.join();
        std::istringstream lines(out.str());
        int count = 0;
        for (std::string line; std::getline(lines, line); ++count) {
            CHECK(Json::parse(line).at("queues").size() == 1);
        }
        CHECK(count >= 3);
    }
    CHECK(err.str().empty());
}

TEST_CASE_FIXTURE(Fixture, "show has the numbers and consumers of a queue, workers those of all") {
    redis.command({"SADD", "orizuru:queues", "q"});
    push({"a", "b"});
    Consumer<Raw> consumer(uri, "q", {.lease = 60s});
    const auto guard = consumer.next();
    redis.command({"SADD", consumers, "gone"});
    const Json shown = json({"show", "q"});
    CHECK(shown.at("held") == 1);
    CHECK(shown.at("consumers") == 2);
    const Json all = json({"workers"}).at("consumers");
    CHECK(json({"workers", "q"}).at("consumers").size() == all.size());
    REQUIRE(all.size() == 2);
    CHECK(all[0].at("queue") == "q");
    CHECK(all[0].at("id") == consumer.name());
    CHECK(all[0].at("alive") == true);
    CHECK(all[0].at("lease_left_ms") > 50'000);
    CHECK(all[0].at("held") == 1);
    CHECK(all[0].at("steps") >= 0);
    CHECK(all[1].at("id") == "gone");
    CHECK(all[1].at("alive") == false);
    CHECK(all[1].at("lease_left_ms").is_null());
    CHECK(shown.at("consumer_list").size() == 2);
    CHECK(contains(text({"show", "q"}), "held       1\n"));
    CHECK(contains(text({"show", "q"}), consumer.name()));
    CHECK(contains(text({"workers"}), "gone"));
}

TEST_CASE_FIXTURE(Fixture, "workers and metrics show what workers have reported") {
    Consumer<Raw> plain(uri, "q");
    redis.command({"SADD", "orizuru:{q}:consumers", "w:host:1:0123456789abcdef"});
    redis.command({"HSET", "orizuru:{q}:worker:w:host:1:0123456789abcdef", "started", "5",
                   "threads", "4", "running", "2", "succeeded", "30", "settled", "1", "failed", "7",
                   "jobs", "6 3 a b7 1 c"});
    redis.command({"HSET", "orizuru:{q}:counts", "succeeded", "80"});
    const Json all = json({"workers", "q"}).at("consumers");
    REQUIRE(all.size() == 2);
    const bool first = all[0].at("id") == "w:host:1:0123456789abcdef";
    const Json worker = all[first ? 0 : 1].at("worker");
    CHECK(worker.at("running") == 2);
    CHECK(worker.at("threads") == 4);
    CHECK(worker.at("succeeded") == 30);
    CHECK(worker.at("failed") == 7);
    CHECK(worker.at("started") == "1970-01-01T00:00:00.005Z");
    CHECK(worker.at("jobs") == Json::array({{{"id", "a b"}, {"since", "1970-01-01T00:00:00.006Z"}},
                                            {{"id", "c"}, {"since", "1970-01-01T00:00:00.007Z"}}}));
    CHECK(all[first ? 1 : 0].at("worker").is_null());
    CHECK(
        contains(text({"workers", "q"}), "2    31       7  a b since 1970-01-01T00:00:00.006Z\n"));
    CHECK(contains(text({"workers", "q"}), "-     -       -\n"));
    CHECK(contains(text({"metrics", "q"}),
                   "orizuru_jobs_total{queue=\"q\",outcome=\"succeeded\"} 80\n"));
}

TEST_CASE_FIXTURE(Fixture, "peek shows the messages of each place") {
    JobProducer<Raw>(uri, "q", {.kind = "mail"}).push({"dead one"});
    push({"rejected one"});
    bury_next("no such user");
    reject_next();
    const orizuru::JobTime due = orizuru::job_time() + 1h;
    jobs.push({"later"}, {.at = due});
    redis.lpush("orizuru:{q}:suspects", "suspected one");
    push({"held one", "a", "b", "c"});
    Consumer<Raw> consumer(uri, "q");
    const auto guard = consumer.next();
    const auto only = [&](const std::string& place) {
        const Json document = json({"peek", "q", "--where", place, "-n", "1"});
        CHECK(document.at("queue") == "q");
        REQUIRE(document.at("messages").size() == 1);
        const Json message = document.at("messages")[0];
        CHECK(message.at("place") == place);
        CHECK(message.at("payload_encoding") == "utf-8");
        return message;
    };
    CHECK(only("waiting").at("payload") == "a");
    CHECK(only("waiting").at("job").is_null());
    CHECK(only("held").at("consumer") == consumer.name());
    CHECK(only("held").at("payload") == "held one");
    CHECK(only("rejected").at("payload") == "rejected one");
    CHECK(only("suspected").at("payload") == "suspected one");
    redis.command(
        {"HSET", "orizuru:{q}:recoveries", "5acf976ae080bcea878a2d30a3b2d46cc6026c67", "2"});
    CHECK(only("suspected").at("blamed") == 2);
    CHECK(only("waiting").at("blamed") == 0);
    CHECK(contains(text({"peek", "q", "--where", "suspected"}),
                   "blamed for 2 deaths  suspected one\n"));
    CHECK(contains(text({"show", "q"}), "\nsuspected  1\n"));
    CHECK(only("scheduled").at("payload") == "later");
    CHECK(only("scheduled").at("due_at").get<std::string>().size() == 24);
    CHECK(only("scheduled").at("died_at").is_null());
    const Json dead_one = only("dead");
    CHECK(dead_one.at("payload") == "dead one");
    CHECK(dead_one.at("reason") == "no such user");
    CHECK(dead_one.at("died_at").get<std::string>().ends_with("Z"));
    CHECK(dead_one.at("job").at("kind") == "mail");
    CHECK(dead_one.at("job").at("attempt") == 1);
    CHECK(dead_one.at("job").at("id").get<std::string>().size() == 32);
    CHECK(json({"peek", "q", "--where", "waiting"}).at("messages").size() == 3);
    CHECK(
        json({"peek", "q", "--where", "waiting", "--skip", "2"}).at("messages")[0].at("payload") ==
        "c");
    CHECK(contains(text({"peek", "q", "--where", "dead"}), "no such user  dead one\n"));
    CHECK(contains(text({"peek", "q", "--where", "held"}), consumer.name() + "  held one\n"));
}

TEST_CASE_FIXTURE(Fixture,
                  "keys shows what waits behind which key, and where the job is that is out") {
    CHECK_FALSE(contains(text({"ls", "q"}), "behind"));
    CHECK_FALSE(contains(text({"show", "q"}), "behind"));
    orizuru::KeyedJobProducer<Raw> keyed(uri, "q");
    keyed.push_all("a\x1b", std::vector<Raw>(3, Raw{"out"}));
    keyed.push("b", Raw{"b1"});
    CHECK(contains(text({"ls", "q"}), "queue  waiting  behind  held"));
    CHECK(contains(text({"ls", "q"}), "\nq            2       2     0"));
    CHECK(json({"ls", "q"}).at("queues")[0].at("behind") == 2);
    CHECK(json({"show", "q"}).at("keys") == 2);
    CHECK(contains(text({"show", "q"}), "keys       2\nbehind     2\n"));
    CHECK(json({"keys", "q"}) == Json{{"queue", "q"},
                                      {"keys", Json::array({{{"key", "a\x1b"}, {"behind", 2}},
                                                            {{"key", "b"}, {"behind", 0}}})}});
    CHECK(text({"keys", "q", "-n", "1"}) == "key      behind\na\\u{1b}       2\n");
    CHECK(text({"keys", "q", "--skip", "1"}) == "key  behind\nb         0\n");
    const Json one = json({"keys", "q", "a\x1b"}).at("keys");
    REQUIRE(one.size() == 1);
    CHECK(one[0].at("out").size() == 1);
    CHECK(one[0].at("out")[0].at("place") == "waiting");
    CHECK(one[0].at("out")[0].at("payload") == "out");
    CHECK(contains(text({"keys", "q", "b"}), "key  behind\nb         0\n\nplace    id"));
    CHECK(contains(text({"keys", "q", "b"}), "b1\n"));
    const Ran none = run({"keys", "q", "c"});
    CHECK(none.status == 1);
    CHECK(none.err == "orizuru: queue 'q' has no job of the key 'c'\n");
    redis.del("q");
    CHECK(contains(text({"keys", "q", "b"}), "its job that is out was not found"));
    CHECK(json({"keys", "q", "b"}).at("keys")[0] ==
          Json{{"key", "b"}, {"behind", 0}, {"out", Json::array()}});
    CHECK(json({"keys", "r"}).at("keys").empty());
    CHECK(contains(text({"metrics", "q"}),
                   "orizuru_queue_messages{queue=\"q\",state=\"behind\"} 2\n"));
}

TEST_CASE_FIXTURE(Fixture, "groups shows those that have not ended, and one that is done") {
    CHECK_FALSE(contains(text({"ls", "q"}), "groups"));
    orizuru::JobGroup group(uri, "q", {.then = orizuru::GroupThen("q", Raw{"then"})});
    group.push("q", Raw{"member"});
    CHECK(contains(text({"ls", "q"}), "dead  groups  consumers"));
    CHECK(json({"ls", "q"}).at("queues")[0].at("groups") == 1);
    CHECK(json({"ls", "q"}).at("queues")[0].at("members") == 1);
    CHECK(contains(text({"show", "q"}), "groups     1\nmembers    1\n"));
    const Json open = json({"groups", "q"}).at("groups");
    REQUIRE(open.size() == 1);
    CHECK(open[0].at("id") == group.id());
    CHECK(open[0].at("stage") == "open");
    CHECK(open[0].at("jobs") == 1);
    CHECK(open[0].at("pending") == 1);
    CHECK(open[0].at("failed") == 0);
    CHECK(open[0].at("made").get<std::string>().ends_with("Z"));
    CHECK(open[0].at("expires_ms") > 86'000'000);
    CHECK(open[0].at("then") == "q");
    group.commit();
    CHECK(json({"groups", "q", group.id()}).at("groups")[0].at("stage") == "waiting");
    CHECK(json({"groups", "q", group.id()}).at("groups")[0].at("expires_ms").is_null());
    CHECK(contains(text({"groups", "q"}), group.id() + "  waiting     1        1       0  20"));
    text({"clear", "q", "--where", "waiting", "--yes"});
    CHECK(json({"groups", "q"}).at("groups").empty());
    CHECK(contains(text({"groups", "q", group.id()}), "  done "));
    const Ran none = run({"groups", "q", "no"});
    CHECK(none.status == 1);
    CHECK(none.err == "orizuru: queue 'q' has no group 'no'\n");
}

TEST_CASE_FIXTURE(Fixture, "a long payload is cut but with --full, and bytes come as hex") {
    push({std::string(300, 'x'), std::string("\xff\x00", 2)});
    const Texts peek{"peek", "q", "--where", "waiting"};
    CHECK(contains(text(peek), std::string(80, 'x') + "… (300 bytes)\n"));
    CHECK(contains(text(peek), "\\xff\\u{0}\n"));
    Texts full = peek;
    full.emplace_back("--full");
    CHECK(contains(text(full), std::string(300, 'x') + "\n"));
    const Json messages = json(peek).at("messages");
    CHECK(messages[0].at("payload") == std::string(300, 'x'));
    CHECK(messages[1].at("payload") == "ff00");
    CHECK(messages[1].at("payload_encoding") == "hex");
}

TEST_CASE_FIXTURE(Fixture, "a payload in msgpack shows as JSON, and any other as its bytes") {
    const std::string map = "\x82\xa6"
                            "amount\x03\xa4"
                            "name\xa3g\x1bm";
    const std::string deep = std::string(1000, '\x91') + "\x01";
    push({map, std::string("\x93\x01\xc3\xc0", 4), "plain", "[1]", map + "x", deep,
          "\xc4\x02\x01\xff"});
    const std::string table = text({"peek", "q", "--where", "waiting"});
    CHECK(contains(table, R"(msgpack {"amount":3,"name":"g\\u001bm"})"));
    CHECK(contains(table, "msgpack [1,true,null]\n"));
    CHECK(contains(table, "  plain\n"));
    CHECK(contains(table, "  [1]\n"));
    CHECK(contains(table, R"(\x82\xa6amount\u{3}\xa4name\xa3g\u{1b}mx)"));
    CHECK(contains(table, R"(\x91\x91\x91)"));
    CHECK(is_harmless(table));
    CHECK(json({"peek", "q", "--where", "waiting"}).at("messages")[1].at("payload") == "9301c3c0");
}

TEST_CASE_FIXTURE(Fixture, "a formatter shows the payloads of its queue") {
    cli.formatter("q", [](const PlacedMessage& message) -> std::string {
        if (message.payload == "bad") {
            throw std::runtime_error("no\x1border");
        }
        return "order " + message.payload + "\x1b";
    });
    push({"7", "bad"});
    redis.lpush("r", "7");
    const std::string table = text({"peek", "q", "--where", "waiting"});
    CHECK(contains(table, "order 7\\u{1b}\n"));
    CHECK(contains(table, "(no\\u{1b}order) bad\n"));
    const Json messages = json({"peek", "q", "--where", "waiting"}).at("messages");
    CHECK(messages[0].at("payload") == "7");
    CHECK(messages[0].at("formatted") == "order 7\x1b");
    CHECK_FALSE(contains(text({"peek", "r", "--where", "waiting"}), "order"));
}

TEST_CASE_FIXTURE(Fixture, "show asks whether what should move messages runs") {
    const auto shown = [&] { return text({"show", "q"}); };
    const std::string of_scheduler = ": does a scheduler run?\n";
    const std::string of_collector = "rejected, and not put back: does a collector run?\n";
    jobs.push({"later"}, {.delay = 1h});
    CHECK_FALSE(contains(shown(), of_scheduler));
    CHECK_FALSE(contains(shown(), of_collector));
    const std::string scheduled = "orizuru:{q}:scheduled";
    const std::string first = redis.command({"ZRANGE", scheduled, "0", "0"}).elements.at(0).text;
    redis.command({"ZADD", scheduled, std::to_string(server_ms() - 7'000), first});
    CHECK(contains(shown(), "note       overdue "));
    CHECK(contains(shown(), of_scheduler));
    push({"a"});
    reject_next();
    CHECK(contains(shown(), of_collector));
    orizuru::GarbageCollector collector(uri, "q");
    collector.collect();
    push({"b"});
    reject_next();
    CHECK_FALSE(contains(shown(), of_collector));
}

TEST_CASE_FIXTURE(Fixture, "pause and resume act on the queue") {
    const Consumer<Raw> consumer(uri, "q");
    CHECK(json({"pause", "q"}) == Json{{"queue", "q"}, {"paused", true}, {"served", true}});
    CHECK(redis.exists("orizuru:{q}:paused"));
    CHECK(text({"resume", "q"}) == "resumed\n");
    CHECK_FALSE(redis.exists("orizuru:{q}:paused"));
    CHECK(text({"pause", "q"}) == "paused\n");
    CHECK(json({"resume", "q"}) == Json{{"queue", "q"}, {"paused", false}, {"was_paused", true}});
    CHECK(text({"resume", "q"}) == "'q' was not paused\n");
}

TEST_CASE_FIXTURE(Fixture, "a queue that nobody serves is told, when it is listed or paused") {
    const auto note = [&](const std::string& queue) { return text({"ls", queue}); };
    jobs.push({"a"});
    CHECK(contains(note("q"), "  no      nobody serves it\n"));
    CHECK(contains(text({"show", "q"}), "nobody serves it\n"));
    CHECK(json({"ls", "q"}).at("queues")[0].at("served") == false);
    CHECK(contains(note("typo"), "nobody serves it\n"));
    CHECK(text({"pause", "typo\u202e"}) == "paused; nobody serves 'typo\\u{202e}'\n");
    CHECK(json({"pause", "typo"}).at("served") == false);
    CHECK(redis.exists("orizuru:{typo}:paused"));
    {
        const Consumer<Raw> consumer(uri, "q");
        CHECK_FALSE(contains(note("q"), "note"));
        CHECK_FALSE(contains(text({"show", "q"}), "nobody"));
        CHECK(json({"ls", "q"}).at("queues")[0].at("served") == true);
    }
    redis.command({"SADD", consumers, "died:0123456789abcdef"});
    CHECK(contains(note("q"), "1  ")); // until a collector comes
    CHECK(contains(note("q"), "nobody serves it"));
    redis.command({"DEL", consumers});
    // A worker's consumer leaves a paused queue; the list has its name.
    redis.command({"SADD", "orizuru:queues", "q"});
    CHECK(contains(text({"pause", "q"}), "nobody serves"));
    CHECK(text({"pause", "q"}) == "paused\n");
    CHECK_FALSE(contains(note("q"), "nobody"));
    CHECK(json({"ls", "q"}).at("queues")[0].at("served").is_null());
}

TEST_CASE_FIXTURE(Fixture, "who may do no more than pause does so") {
    redis.command({"ACL", "SETUSER", "pauser", "reset", "on", ">x", "~orizuru:{q}:paused", "+set"});
    const Ran ran = run_at("unix://pauser:x@" + server().socket_path(), {"pause", "q"});
    CHECK_MESSAGE(ran.status == 0, ran.err);
    CHECK(ran.out == "paused\n");
    redis.command({"ACL", "DELUSER", "pauser"});
}

TEST_CASE_FIXTURE(Fixture, "a name that no queue can have is left out, and forget removes it") {
    redis.command({"SADD", "orizuru:queues", "q", "a{", "{" + hostile});
    for (const std::string command : {"ls", "metrics", "workers"}) {
        CAPTURE(command);
        const Ran ran = run({command});
        CHECK(ran.status == 0);
        CHECK(contains(ran.err, "queue 'a{' is left out: "));
        CHECK(contains(ran.err, "forget"));
        CHECK(is_harmless(ran.err));
    }
    CHECK(json({"ls"}).at("queues").size() == 1);
    CHECK(text({"forget", "a{"}) == "forgotten\n");
    CHECK(json({"forget", "{" + hostile_shown}) ==
          Json{{"queue", "{" + hostile.substr(0, hostile.size() - 1) + "\ufffd"},
               {"forgotten", true}});
    CHECK(run({"ls"}).err.empty());
    CHECK(redis.command({"SMEMBERS", "orizuru:queues"}).elements.size() == 1);
    const Ran none = run({"forget", "a{"});
    CHECK(none.status == 1);
    CHECK(contains(none.err, "'a{' is not on the list"));
}

TEST_CASE_FIXTURE(Fixture, "--scan finds queues that no worker has listed") {
    jobs.push({"later"}, {.delay = 1h});
    JobProducer<Raw>(uri, "r\u202e").push({"later"}, {.delay = 1h});
    CHECK(contains(run({"ls"}).err, "--scan"));
    const Json queues = json({"ls", "--scan"}).at("queues");
    REQUIRE(queues.size() == 2);
    CHECK(queues[0].at("queue") == "q");
    CHECK(queues[0].at("scheduled") == 1);
    CHECK(contains(text({"ls", "--scan"}), "r\\u{202e} "));
    CHECK(contains(text({"metrics", "--scan"}), "{queue=\"q\"} 0"));
    complaint({"ls", "q", "--scan"});
}

TEST_CASE_FIXTURE(Fixture, "find shows where a job is") {
    push({"a", "b"});
    const std::string waiting = *jobs.push({"a job"});
    const std::string later = *jobs.push({"another"}, {.delay = 1h});
    const Json found = json({"find", "q", waiting});
    REQUIRE(found.at("messages").size() == 1);
    CHECK(found.at("messages")[0].at("place") == "waiting");
    CHECK(found.at("messages")[0].at("job").at("id") == waiting);
    CHECK(contains(text({"find", "q", later}), "scheduled  " + later));
    const Ran none = run({"find", "q", "none\x1b"});
    CHECK(none.status == 1);
    CHECK(none.err == "orizuru: queue 'q' has no job 'none\\u{1b}'\n");
    complaint({"find", "q"});
}

TEST_CASE_FIXTURE(
    Fixture, "rm removes one job, run has it served, mv moves it, and once it is gone that is 1") {
    const std::string a = *jobs.push({"a"}, {.unique = "u"});
    const std::string b = *jobs.push({"b"});
    const std::string later = *jobs.push({"later"}, {.delay = 1h});
    const auto payloads = [&] { return payloads_in("waiting"); };
    CHECK(json({"run", "q", b}) == Json{{"queue", "q"}, {"id", b}, {"messages", 1}});
    CHECK(payloads() == "b a ");
    CHECK(contains(text({"run", "q", later}), "1 message "));
    CHECK(payloads() == "b a later ");
    CHECK(text({"rm", "q", a}) == "1 message removed: job '" + a + "'\n");
    CHECK_FALSE(redis.exists("orizuru:{q}:unique:u"));
    CHECK(payloads() == "b later ");
    CHECK(text({"mv", "q", b, "r"}) == "1 message moved: job '" + b + "'\n");
    CHECK(payloads() == "later ");
    CHECK(redis.llen("r") == 1);
    const std::string before = all_keys();
    for (const std::string command : {"rm", "run"}) {
        CHECK(contains(text({command, "q", later, "--dry-run"}), "1 message would be "));
    }
    CHECK(text({"mv", "q", later, "r", "--dry-run"}) ==
          "1 message would be moved: job '" + later + "'\n");
    for (const Texts& arguments : std::vector<Texts>{
             {"rm", "q", a}, {"run", "q", a}, {"mv", "q", b, "s"}, {"rm", "q", ""}}) {
        const Ran ran = run(arguments);
        CHECK(ran.status == (arguments.back().empty() ? 2 : 1));
        CHECK(ran.out.empty());
    }
    complaint({"mv", "q", later, "{"});
    complaint({"mv", "q", later});
    CHECK(all_keys() == before);
}

TEST_CASE_FIXTURE(Fixture,
                  "suspected messages are found, moved, removed and put back by commands") {
    Texts ids;
    for (const std::string payload : {"a", "b", "c", "d", "e", "f"}) {
        ids.push_back(*jobs.push({payload}, {.unique = payload}));
    }
    redis.command({"RENAME", "q", "orizuru:{q}:suspects"});
    push({"waits"});
    const auto left = [&] { return payloads_in("suspected"); };
    CHECK(contains(text({"find", "q", ids[1]}), "suspected  " + ids[1]));
    CHECK(text({"rm", "q", ids[1]}) == "1 message removed: job '" + ids[1] + "'\n");
    CHECK_FALSE(redis.exists("orizuru:{q}:unique:b"));
    CHECK(text({"mv", "q", ids[3], "r"}) == "1 message moved: job '" + ids[3] + "'\n");
    CHECK(redis.exists("orizuru:{q}:unique:d"));
    CHECK(redis.llen("r") == 1);
    CHECK(left() == "a c e f ");
    CHECK(json({"run", "q", ids[2]}) == Json{{"queue", "q"}, {"id", ids[2]}, {"messages", 1}});
    CHECK(payloads_in("waiting") == "c waits ");
    CHECK(text({"run", "q", "--where", "suspected", "-n", "1"}) ==
          "1 message put back to be served\n");
    CHECK(payloads_in("waiting") == "f c waits ");
    CHECK(left() == "a e ");
    CHECK(contains(complaint({"clear", "q", "--where", "suspected"}),
                   "removes 2 messages (suspected)"));
    CHECK(text({"clear", "q", "--where", "suspected", "--dry-run"}) ==
          "2 messages would be removed\n");
    CHECK(text({"clear", "q", "--where", "suspected", "--yes"}) == "2 messages removed\n");
    CHECK(redis.llen("orizuru:{q}:suspects") == 0);
    CHECK_FALSE(redis.exists("orizuru:{q}:unique:a"));
}

TEST_CASE_FIXTURE(Fixture, "what only one job's id begins with is enough, from 4 digits on") {
    const std::string rest(24, 'e');
    const std::string c1 = "5f0c1111" + rest;
    const std::string d2 = "5f0d2222" + rest;
    const std::string d3 = "5f0d3333" + rest;
    for (const std::string& id : {std::string("5f0c"), c1, d2, d3, std::string("abc"),
                                  "7777777" + rest + "7", std::string("6666-x")}) {
        push_as(id);
    }
    const auto found = [&](const std::string& id) {
        const Json messages = json({"find", "q", id}).at("messages");
        CHECK(messages.size() == 1);
        return messages.at(0).at("job").at("id");
    };
    CHECK(found("5f0c1") == c1);
    CHECK(found("5f0c") == "5f0c"); // whole ones come first
    CHECK(found("abc") == "abc");
    CHECK(found("7") == "7777777" + rest + "7");
    CHECK(found("6666-") == "6666-x");
    const std::string before = all_keys();
    for (const Texts& arguments :
         std::vector<Texts>{{"find", "q", "5f0d"}, {"rm", "q", "5f0d"}, {"mv", "q", "5f0d", "r"}}) {
        CHECK(contains(complaint(arguments), "begin with '5f0d': '" + d2 + "', '" + d3 + "'"));
    }
    for (const std::string part : {"777", "f0c1111", "payload", "6666", "6666-", "5f0D2"}) {
        CHECK(run({"rm", "q", part}).status == 1);
    }
    CHECK(all_keys() == before);
    CHECK(text({"rm", "q", "5f0d2"}) == "1 message removed: job '" + d2 + "'\n");
    CHECK(json({"run", "q", "5f0d3"}) == Json{{"queue", "q"}, {"id", d3}, {"messages", 1}});
    Consumer<Raw> consumer(uri, "q");
    const auto guard = consumer.next();
    CHECK(found("5f0d3") == d3);
    CHECK(contains(run({"rm", "q", "5f0d3"}).err, "holds job '" + d3 + "'"));
}

TEST_CASE_FIXTURE(Fixture, "the whole id of a job that has gone changes no other job") {
    push_as("order-12345");
    push_as("1234abcd");
    push_as(std::string(32, 'a') + "b");
    const std::string before = all_keys();
    for (const std::string& gone : {std::string("order-1234"), std::string("1234abc"),
                                    std::string(32, 'a'), std::string(31, 'a')}) {
        for (const Texts& arguments :
             std::vector<Texts>{{"rm", "q", gone}, {"run", "q", gone}, {"mv", "q", gone, "r"}}) {
            const Ran ran = run(arguments);
            CHECK(ran.status == 1);
            CHECK(ran.out.empty());
            CHECK(contains(ran.err, "queue 'q' has no job '" + gone + "'"));
        }
    }
    CHECK(all_keys() == before);
    CHECK(contains(run({"rm", "q", "1234abc"}).err, "'1234abcd' begins with it"));
    CHECK(contains(text({"find", "q", "order-1234"}), "order-12345"));
}

TEST_CASE_FIXTURE(Fixture, "a search that ends before it has seen all takes no job for the one") {
    const std::string large(16 << 20, 'x');
    SUBCASE("a whole id") {
        push_as("load-77");
        push_as("load-77b", large);
        CHECK(contains(text({"rm", "q", "load-77"}), "1 message removed"));
        CHECK(redis.llen("q") == 1);
        CHECK(contains(text({"find", "q", "load-77b"}), "load-77b"));
        CHECK(contains(complaint({"find", "q", "load-77"}), "'load-77b' and perhaps others"));
    }
    SUBCASE("the beginning of an id") {
        push_as("5f0c" + std::string(28, '1'));
        push_as("5f0c" + std::string(28, '2'), large);
        for (const Texts& arguments : std::vector<Texts>{
                 {"find", "q", "5f0c"}, {"rm", "q", "5f0c"}, {"mv", "q", "5f0c", "r"}}) {
            CHECK(contains(complaint(arguments), "5f0c" + std::string(28, '2') + "' and perhaps"));
        }
        CHECK(redis.llen("q") == 2);
    }
}

TEST_CASE_FIXTURE(Fixture, "what a consumer holds stays with it") {
    const std::string id = *jobs.push({"a"});
    Consumer<Raw> consumer(uri, "q");
    const auto guard = consumer.next();
    const std::string before = all_keys();
    for (const Texts& arguments :
         std::vector<Texts>{{"rm", "q", id}, {"run", "q", id}, {"mv", "q", id, "r"}}) {
        const Ran ran = run(arguments);
        CHECK(ran.status == 1);
        CHECK(contains(ran.err, "'" + consumer.name() + "' holds"));
    }
    CHECK(contains(complaint({"rm", "q", "--where", "held", "--reason", "x"}), "held not in"));
    CHECK(redis.llen(processing(consumer.name())) == 2);
    CHECK(contains(text({"find", "q", id}), "held   " + id));
}

TEST_CASE_FIXTURE(Fixture, "cancel buries a job that waits, and asks one that is held to stop") {
    const std::string a = *jobs.push({"a"});
    const std::string b = *jobs.push({"b"});
    Consumer<Raw> consumer(uri, "q");
    const auto guard = consumer.next();
    CHECK(text({"cancel", "q", b.substr(0, 12), "sold out"}) ==
          "job '" + b + "' is on the dead list\n");
    CHECK(json({"peek", "q", "--where", "dead"}).at("messages")[0].at("reason") == "sold out");
    CHECK(json({"cancel", "q", a}) == Json{{"queue", "q"}, {"id", a}, {"cancelled", "requested"}});
    CHECK(redis.command({"HGET", "orizuru:{q}:cancelled", a}).text.ends_with(" cancelled"));
    const std::string before = all_keys();
    for (const std::string& gone : {b, std::string("nobody")}) {
        CHECK(run({"cancel", "q", gone}).status == 1);
    }
    CHECK(contains(run({"cancel", "q", b}).err,
                   "job '" + b + "' of queue 'q' neither waits nor runs"));
    complaint({"cancel", "q"});
    CHECK(all_keys() == before);
    redis.command({"HSET", "orizuru:{q}:worker:" + consumer.name(), "jobs", "6 32 " + a});
    CHECK(contains(text({"peek", "q", "--where", "held"}), "runs since 1970-01-01T00:00:00.006Z"));
    CHECK(json({"find", "q", a}).at("messages")[0].at("running_since") ==
          "1970-01-01T00:00:00.006Z");
}

TEST_CASE_FIXTURE(Fixture, "messages of a place are chosen by their reason and their age") {
    const auto entry = [&](const std::string& payload, const std::string& reason, auto age) {
        const auto died =
            static_cast<std::uint64_t>(server_ms() - std::chrono::milliseconds(age).count());
        redis.lpush(dead, "\x94\x02" + msgpack_bin32(payload) + msgpack_bin32(reason) +
                              msgpack_u64(died));
    };
    entry("old", "no such user", 2h);
    entry("new", "no such user", 1min);
    entry("card", "no card", 2h);
    entry("last", "no card", 0s);
    const auto left = [&] { return payloads_in("dead"); };
    SUBCASE("to look at") {
        const auto seen = [&](Texts arguments) {
            arguments.insert(arguments.begin(), {"peek", "q", "--where", "dead"});
            const Json document = json(arguments);
            std::string all;
            for (const Json& message : document.at("messages")) {
                all += message.at("payload").get<std::string>() + " ";
            }
            return all;
        };
        CHECK(seen({"--reason", "such user"}) == "new old ");
        CHECK(seen({"--older", "1h"}) == "card old ");
        CHECK(seen({"--reason", "no card", "--older", "1h"}) == "card ");
        CHECK(seen({"--reason", "no", "-n", "2", "--skip", "1"}) == "card new ");
        CHECK(seen({"--reason", "other"}).empty());
        CHECK(left() == "last card new old ");
    }
    SUBCASE("without a change") {
        redis.lpush(dead, "no entry");
        const std::string before = all_keys();
        const Texts reason{"q", "--where", "dead", "--reason", "no", "--dry-run"};
        const auto dry = [&](const std::string& command, const Texts& more = {}) {
            Texts arguments = reason;
            arguments.insert(arguments.begin(), command);
            arguments.insert(arguments.end(), more.begin(), more.end());
            return text(arguments);
        };
        CHECK(dry("rm") == "4 messages would be removed\n");
        CHECK(dry("rm", {"-n", "3"}) == "3 messages would be removed\n");
        CHECK(dry("rm", {"--older", "1h"}) == "2 messages would be removed\n");
        CHECK(dry("run") == "4 messages would be put back to be served\n");
        CHECK(text({"run", "q", "--where", "dead", "--dry-run"}) ==
              "4 messages would be put back to be served\n");
        CHECK(text({"clear", "q", "--where", "dead", "--dry-run", "--yes"}) ==
              "5 messages would be removed\n");
        CHECK(json({"rm", "q", "--where", "dead", "--older", "1s", "--dry-run"}) ==
              Json{{"queue", "q"}, {"messages", 3}, {"dry_run", true}});
        CHECK(all_keys() == before);
    }
    SUBCASE("among more than one page") {
        for (int i = 0; i < 1500; ++i) {
            entry(std::to_string(i), i % 100 == 0 ? "rare" : "often", 0s);
        }
        CHECK(text({"rm", "q", "--where", "dead", "--reason", "rare", "--dry-run"}) ==
              "15 messages would be removed\n");
        CHECK(json({"peek", "q", "--where", "dead", "--reason", "rare", "--skip", "14"})
                  .at("messages")[0]
                  .at("payload") == "0");
    }
    SUBCASE("by both") {
        CHECK(json({"rm", "q", "--where", "dead", "--reason", "such user", "--older", "1h"}) ==
              Json{{"queue", "q"}, {"messages", 1}});
        CHECK(left() == "last card new ");
    }
    SUBCASE("by age") {
        CHECK(text({"rm", "q", "--where", "dead", "--older", "1h"}) == "2 messages removed\n");
        CHECK(left() == "last new ");
    }
    SUBCASE("by reason, and at most so many") {
        CHECK(text({"rm", "q", "--where", "dead", "--reason", "no", "-n", "3"}) ==
              "3 messages removed\n");
        CHECK(left() == "old ");
    }
    SUBCASE("none") {
        CHECK(text({"rm", "q", "--where", "dead", "--reason", "other"}) == "0 messages removed\n");
        CHECK(left() == "last card new old ");
    }
    SUBCASE("to run") {
        CHECK(
            contains(text({"run", "q", "--where", "dead", "--reason", "no card"}), "2 messages "));
        CHECK(left() == "new old ");
        CHECK(redis.llen("q") == 2);
        CHECK(contains(text({"run", "q", "--where", "dead"}), "2 messages "));
        CHECK(left().empty());
    }
    SUBCASE("of jobs that wait") {
        orizuru::Job<Raw> job = orizuru::make_job(Raw{"a"});
        job.last_error = "timeout";
        job.first_enqueued_at -= 48h;
        std::string bytes;
        orizuru::Codec<orizuru::Job<Raw>>::encode(job, bytes);
        jobs.push({"young"});
        push({bytes, "no job"});
        CHECK(text({"rm", "q", "--where", "waiting", "--reason", "other"}) ==
              "0 messages removed\n");
        CHECK(text({"rm", "q", "--where", "waiting", "--reason", "time", "--older", "1d"}) ==
              "1 message removed\n");
        CHECK(text({"rm", "q", "--where", "waiting", "--older", "1d"}) == "0 messages removed\n");
        CHECK(redis.llen("q") == 2);
    }
}

TEST_CASE_FIXTURE(Fixture, "a choice that is unclear changes nothing") {
    const std::string id = *jobs.push({"a"});
    push({"b"});
    const std::string before = all_keys();
    CHECK(contains(complaint({"rm", "q"}), "--where"));
    CHECK(contains(complaint({"run", "q"}), "--where"));
    CHECK(contains(complaint({"rm", "q", "--where", "waiting"}), "clear removes all"));
    complaint({"rm", "q", id, "--where", "waiting", "--older", "0s"});
    complaint({"rm", "q", "--reason", "x"});
    complaint({"rm", "q", id, "--older", "0s"});
    complaint({"rm", "q", id, "-n", "1"});
    complaint({"run", "q", "--where", "waiting", "-n", "0"});
    CHECK(contains(complaint({"rm", "q", "--where", "waiting", "--older", "1x"}),
                   "1x is no length of time"));
    CHECK(all_keys() == before);
}

TEST_CASE_FIXTURE(Fixture, "clear removes what a place has, and nothing without --yes") {
    push({"dead", "a", "b"});
    bury_next();
    jobs.push({"later"}, {.delay = 1h});
    const std::string before = all_keys();
    CHECK(
        contains(complaint({"clear", "q", "--where", "waiting"}), "removes 2 messages (waiting)"));
    CHECK(contains(complaint({"clear", "q", "--where", "dead"}), "removes 1 message (dead)"));
    complaint({"clear", "q", "--where", "held", "--yes"});
    complaint({"clear", "q", "--yes"});
    CHECK(all_keys() == before);
    CHECK(json({"clear", "q", "--where", "waiting", "--yes"}) ==
          Json{{"queue", "q"}, {"messages", 2}});
    CHECK(text({"clear", "q", "--where", "dead", "--yes"}) == "1 message removed\n");
    CHECK(redis.keys("*scheduled").size() == 1);
    CHECK(redis.llen("q") + redis.llen(dead) == 0);
}

TEST_CASE_FIXTURE(Fixture, "metrics are Prometheus' text of the queues") {
    redis.command({"SADD", "orizuru:queues", "q"});
    push({"a", "b"});
    CHECK(contains(text({"metrics"}), "orizuru_queue_messages{queue=\"q\",state=\"waiting\"} 2\n"));
    CHECK(contains(text({"metrics"}), "orizuru_jobs_total{queue=\"q\",outcome=\"died\"} 0\n"));
    const std::string resting = text({"metrics", "r"}); // and has no more than this
    CHECK(contains(resting, "\norizuru_queue_messages{queue=\"r\",state=\"dead\"} 0\n# "));
    CHECK(resting.find("\"r\"") == resting.rfind("\"r\""));
    CHECK(contains(complaint({"metrics", "--json"}), "not JSON"));
}

TEST_CASE_FIXTURE(Fixture, "what a queue at rest has counted stays in metrics") {
    Texts queues{"metrics"};
    for (int i = 0; i < 250; ++i) {
        queues.push_back("idle" + std::to_string(i));
    }
    redis.command({"HSET", "orizuru:{idle7}:counts", "succeeded", "80"});
    redis.command({"HSET", "orizuru:{idle249}:counts", "wait:0", "1"});
    redis.command({"HSET", "orizuru:{idle8}:counts", "succeeded", "0"});
    redis.command({"CONFIG", "RESETSTAT"});
    const std::string all = text(queues);
    CHECK(info("commandstats", "cmdstat_eval_ro:calls") == 6); // 100 queues in each
    CHECK(contains(all, "orizuru_jobs_total{queue=\"idle7\",outcome=\"succeeded\"} 80\n"));
    CHECK(contains(all, "orizuru_job_wait_seconds_count{queue=\"idle249\"} 1\n"));
    CHECK(contains(all, "\norizuru_queue_messages{queue=\"idle8\",state=\"dead\"} 0\n"));
    CHECK_FALSE(contains(all, "orizuru_jobs_total{queue=\"idle8\""));
}

TEST_CASE_FIXTURE(Fixture, "what others have chosen cannot move a terminal") {
    redis.command({"SADD", "orizuru:queues", hostile});
    orizuru::Job<Raw> job = orizuru::make_job(Raw{hostile});
    job.id = hostile;
    job.kind = "k\u202e";
    job.last_error = hostile;
    std::string bytes;
    orizuru::Codec<orizuru::Job<Raw>>::encode(job, bytes);
    push({bytes, hostile, bytes});
    redis.command({"SADD", consumers, hostile});
    bury_next(hostile);
    for (const Texts& arguments : std::vector<Texts>{{"ls"},
                                                     {"ls", hostile},
                                                     {"show", hostile},
                                                     {"show", "q"},
                                                     {"workers", "q"},
                                                     {"peek", "q", "--where", "waiting"},
                                                     {"peek", "q", "--where", "waiting", "--full"},
                                                     {"peek", "q", "--where", "dead"},
                                                     {"peek", "q", "--where", "dead", "--full"},
                                                     {"peek", hostile, "--where", "waiting"}}) {
        CAPTURE(arguments[0]);
        CHECK(is_harmless(text(arguments)));
    }
    CHECK(contains(text({"ls"}), hostile_shown + "        0"));
    CHECK(contains(text({"peek", "q", "--where", "dead", "--full"}), hostile_shown));
    // Prometheus' label is the name itself; a terminal gets escapes.
    CHECK(contains(text({"metrics"}), "{queue=\"a\x1b[2J\x07\r\\nb\u009b31m"));
    CHECK(is_harmless(json({"peek", "q", "--where", "waiting"}).dump(-1, ' ', true)));
    CHECK(is_harmless(text({"peek", "q", "--where", "waiting", "--json"})));
    CHECK(json({"peek", "q", "--where", "waiting"}).at("messages")[0].at("payload_encoding") ==
          "hex");

    redis.set(hostile, "no list");
    const Ran refused = run({"show", hostile});
    CHECK(refused.status == 1);
    CHECK(contains(refused.err, hostile_shown));
    CHECK(is_harmless(refused.err));
    for (const Texts& wrong : std::vector<Texts>{{"ls", "{" + hostile},
                                                 {hostile},
                                                 {"ls", "-n", hostile},
                                                 {"ls", "--" + hostile},
                                                 {"peek", "q", "--where", hostile}}) {
        const std::string said = complaint(wrong);
        CHECK(is_harmless(said));
        CHECK(contains(said, "\\u{1b}"));
    }
}

TEST_CASE_FIXTURE(Fixture, "a table keeps its columns, whatever is in it") {
    for (const std::string name : {"ab", "\x1b\xff", "鶴", "e\u0301"}) {
        redis.command({"SADD", "orizuru:queues", name});
    }
    // The rows have as many columns as they have characters, but for these two.
    std::istringstream lines(text({"ls"}));
    std::vector<std::size_t> ends;
    for (std::string line; std::getline(lines, line);) {
        std::size_t columns = 0;
        for (std::size_t at = 0; at < line.size(); ++at) {
            columns += (static_cast<unsigned char>(line[at]) & 0xc0U) != 0x80U ? 1 : 0;
        }
        columns += contains(line, "鶴") ? 1 : 0;
        columns -= contains(line, "\u0301") ? 1 : 0;
        ends.push_back(columns - (line.size() - line.rfind("  ")));
    }
    REQUIRE(ends.size() == 5);
    CHECK(std::ranges::all_of(ends, [&](std::size_t end) { return end == ends.front(); }));
}

TEST_CASE_FIXTURE(Fixture, "wrong usage is 2, says why, and changes nothing") {
    push({"a"});
    const std::string before = all_keys();
    CHECK(contains(complaint({}), "command"));
    CHECK(contains(complaint({"list"}), "list"));
    CHECK(contains(complaint({"show"}), "QUEUE is required"));
    CHECK(contains(complaint({"peek", "q"}), "--where is required"));
    CHECK(contains(complaint({"peek", "q", "--where", "nowhere"}), "nowhere not in {waiting,"));
    CHECK(contains(complaint({"peek", "q", "--where", "dead", "-n", "0"}), "not in range"));
    CHECK(contains(complaint({"peek", "q", "--where", "dead", "-n", "9e99"}), "9e99"));
    for (const std::string seconds : {"0", "-1", "nan", "-nan", "inf", "1e9"}) {
        CHECK(contains(complaint({"ls", "-n", seconds}), "not in range"));
    }
    CHECK(contains(complaint({"pause", "q", "r"}), "not expected"));
    CHECK(contains(complaint({"show", "orizuru:x"}), "reserved"));
    CHECK(all_keys() == before);
    const Ran help = run({"--help"});
    CHECK(help.status == 0);
    CHECK(contains(help.out, "Exit codes: 0 done"));
    CHECK(contains(text({"peek", "--help"}), "--skip"));
    CHECK(text({"help", "peek"}) == text({"peek", "--help"}));
    CHECK(text({"help"}) == help.out);
    CHECK(contains(complaint({"help", "fold"}), "no command 'fold'"));
    CHECK(text({"--version"}).starts_with("orizuru "));
}

TEST_CASE_FIXTURE(Fixture, "a Redis that is away is 1, with its address and the reason") {
    const std::string address = "unix://:secret@" + server().socket_path() + ".not";
    for (const Texts& arguments : std::vector<Texts>{
             {"ls"}, {"show", "q"}, {"pause", "q"}, {"ls", "q", "-n", "1"}, {"metrics", "q"}}) {
        const Ran ran = run_at(address, arguments);
        CHECK(ran.status == 1);
        CHECK(ran.out.empty());
        CHECK(contains(ran.err, "unix://" + server().socket_path() + ".not: "));
        CHECK(contains(ran.err, "No such file"));
        CHECK_FALSE(contains(ran.err, "secret"));
    }
}

TEST_CASE_FIXTURE(Fixture, "the password of an address is never shown") {
    redis.command({"ACL", "SETUSER", "u", "reset", "on", ">right", "~*", "+@all"});
    const Ran refused = run_at("unix://u:secret@" + server().socket_path(), {"ls", "q"});
    CHECK(refused.status == 1);
    CHECK(contains(refused.err, "WRONGPASS"));
    CHECK_FALSE(contains(refused.err, "secret"));
    redis.command({"ACL", "DELUSER", "u"});
    for (const std::string address :
         {"redis://u:secret@h:0", "redis://:secret@h?x=y", "rediss://u:secret@h",
          "unix://u:secret@", "secret://h", "=redis://u:secret@h", "redis://u:secret@h/x"}) {
        const Ran wrong = run_at(address, {"ls", "q"});
        CAPTURE(wrong.err);
        CHECK(wrong.status == 2);
        CHECK_FALSE(contains(wrong.err, "secret"));
    }
    // In a place where no address belongs.
    for (const Texts& wrong : std::vector<Texts>{{"redis://u:secret@h", "ls"},
                                                 {"show", "q", "redis://u:secret@h"},
                                                 {"peek", "q", "--where", "redis://u:secret@h"},
                                                 {"ls", "-n", "redis://u:secret@h"},
                                                 {"ls", "--uri=redis://u:secret@h"}}) {
        CHECK_FALSE(contains(complaint(wrong), "secret"));
    }
}

TEST_CASE_FIXTURE(Fixture, "the address is an Endpoint of the user's making") {
    std::string asked;
    cli = Cli([&](std::string_view address) {
        asked = address;
        return orizuru::Endpoint(uri);
    });
    CHECK(run_at("rediss://h", {"ls", "q"}).status == 0);
    CHECK(asked == "rediss://h");
}

TEST_CASE_FIXTURE(Fixture, "a user who may only read sees all and changes nothing") {
    redis.command({"SADD", "orizuru:queues", "q"});
    push({"a", "b"});
    bury_next();
    orizuru::KeyedJobProducer<Raw>(uri, "q").push("q", Raw{"q"});
    const orizuru::JobGroup group(uri, "q", {.then = orizuru::GroupThen("q", Raw{"then"})});
    redis.command({"ACL", "SETUSER", "guest", "reset", "on", ">x", "~*", "+@read", "+eval_ro"});
    const std::string guest = "unix://guest:x@" + server().socket_path();
    for (const Texts& arguments : std::vector<Texts>{{"ls"},
                                                     {"show", "q"},
                                                     {"workers"},
                                                     {"keys", "q", "q"},
                                                     {"groups", "q"},
                                                     {"peek", "q", "--where", "dead"},
                                                     {"metrics"}}) {
        const Ran ran = run_at(guest, arguments);
        CHECK_MESSAGE(ran.status == 0, ran.err);
        CHECK(contains(ran.out, arguments[0] == "peek" ? "a" : "q"));
    }
    const std::string before = all_keys();
    for (const Texts& arguments :
         std::vector<Texts>{{"pause", "q"},
                            {"clear", "q", "--where", "dead", "--yes"},
                            {"rm", "q", "--where", "dead", "--reason", "a"},
                            {"run", "q", "--where", "dead"}}) {
        const Ran refused = run_at(guest, arguments);
        CHECK(refused.status == 1);
        CHECK(contains(refused.err, "NOPERM"));
    }
    CHECK(all_keys() == before);
    redis.command({"ACL", "DELUSER", "guest"});
}

TEST_CASE_FIXTURE(Fixture, "a command of the user's gets the address and its arguments") {
    cli.command("count", "Count\n  --loud  Not so low", [](const Cli::Call& call) {
        if (call.arguments.size() != 2) {
            throw std::invalid_argument("two words, please");
        }
        call.out << orizuru::Inspector(call.endpoint).state(call.arguments[0]).waiting << ' '
                 << call.arguments[1] << '\n';
    });
    jobs.push({"a"});
    CHECK(text({"count", "q", "--loud"}) == "1 --loud\n");
    CHECK(contains(complaint({"count", "q"}), "two words, please"));
    CHECK(contains(text({"--help"}), "count"));
    CHECK_FALSE(contains(text({"--help"}), "--loud"));
    CHECK(contains(text({"count", "--help"}), "--loud  Not so low"));
    CHECK(contains(text({"help", "count"}), "--loud  Not so low"));
    const Ran away = run_at("unix:///nonexistent/redis.sock", {"count", "q", "x"});
    CHECK(away.status == 1);
    CHECK(contains(away.err, "/nonexistent/redis.sock"));
}

TEST_CASE_FIXTURE(Fixture, "a queue that is refused hides no other, unless it was asked for") {
    jobs.push({"a"});
    redis.command({"SADD", "orizuru:queues", "q", "odd"});
    redis.command({"SET", "odd", "no list"});
    for (const std::string command : {"ls", "metrics", "workers"}) {
        CAPTURE(command);
        const Ran ran = run({command});
        CHECK(ran.status == (command != "workers" ? 1 : 0));
        CHECK(contains(ran.err, "queue 'odd': ") == (command != "workers"));
    }
    CHECK(contains(run({"metrics"}).out, "{queue=\"q\",state=\"waiting\"} 1"));
    const Json document = Json::parse(run({"ls", "--json"}).out);
    CHECK(document.at("queues").size() == 1);
    CHECK(document.at("queues")[0].at("queue") == "q");
    CHECK(run({"ls", "q"}).status == 0);
    const Ran asked = run({"ls", "q", "odd"});
    CHECK(asked.status == 1);
    CHECK(asked.out.empty());
    CHECK(run({"ls", "a{"}).status == 2);
}

TEST_CASE_FIXTURE(Fixture, "a choice that chooses nothing removes nothing") {
    push({"dead"});
    bury_next();
    const std::string before = all_keys();
    complaint({"rm", "q", "--where", "dead", "--reason", ""});
    complaint({"rm", "q", "--where", "dead", "--older", "0s"});
    CHECK(all_keys() == before);
}

TEST_CASE_FIXTURE(Fixture, "what an own command complains of shows no password") {
    cli.command("odd", "Complain", [](const Cli::Call& call) {
        throw std::invalid_argument("what is " + call.arguments[0] + "?");
    });
    const std::string told = complaint({"odd", "redis://:secret@host:1"});
    CHECK(contains(told, "what is redis://"));
    CHECK_FALSE(contains(told, "secret"));
}

} // namespace cli_test
