// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// An Inspector moves messages to other queues, and changes many of them at once.

#include "integration/core/queue_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace inspector_changes_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Consumer;
using orizuru::Inspector;
using orizuru::Job;
using orizuru::JobProducer;
using orizuru::Place;
using orizuru::PlacedMessage;
using orizuru::Raw;
using orizuru::ReplyError;

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
const std::string lock = "orizuru:{q}:unique:u";
const std::string suspects = "orizuru:{q}:suspects";
const std::vector<Place> places{Place::waiting, Place::scheduled, Place::rejected, Place::suspected,
                                Place::dead};

/// "000", "001" …
Texts numbers(int count, int digits = 3) {
    Texts all;
    for (int i = 0; i < count; ++i) {
        std::string text = std::to_string(i);
        all.push_back(std::string(static_cast<std::size_t>(digits) - text.size(), '0') + text);
    }
    return all;
}
bool odd(const PlacedMessage& message) { return (message.payload.back() - '0') % 2 == 1; }
bool any(const PlacedMessage& /*message*/) { return true; }

struct Fixture : QueueFixture {
    Inspector inspector{uri};
    JobProducer<Raw> jobs{uri, "q"};

    /// Those that are served next, or died, first.
    Texts payloads(Place place) {
        Texts found;
        for (const PlacedMessage& message : inspector.peek("q", place, 0, 1'000'000)) {
            found.push_back(message.payload);
        }
        if (place == Place::dead) {
            std::ranges::reverse(found);
        }
        return found;
    }
    PlacedMessage first(Place place) { return inspector.peek("q", place, 0, 1).at(0); }
    /// Brings all that waits to a place, in its order.
    void bring_to(Place place) {
        if (place == Place::scheduled) {
            Texts words{"ZADD", "orizuru:{q}:scheduled"};
            for (const std::string& payload : waiting()) {
                words.push_back("1000" + std::to_string(words.size()));
                words.push_back("12345678" + payload);
            }
            redis.command(words);
            redis.del("q");
        }
        if (place == Place::rejected) {
            redis.command({"RENAME", "q", unack});
        }
        if (place == Place::suspected) {
            redis.command({"RENAME", "q", suspects});
        }
        if (place == Place::dead) {
            Consumer<Raw> consumer(uri, "q");
            REQUIRE(eventually([&] {
                while (auto guard = consumer.next(0ms)) {
                    guard->bury("bad");
                }
                return redis.llen("q") == 0;
            }));
        }
    }
    /// A unique job in a place.
    PlacedMessage unique_job(Place place) {
        jobs.push({"a"}, {.attributes = {{"tenant", "7"}}, .unique = "u"});
        bring_to(place);
        REQUIRE(redis.exists(lock));
        return first(place);
    }
    std::string all_keys() {
        std::string all;
        for (const std::string& key : redis.keys()) {
            all += key + redis.command({"DUMP", key}).text;
        }
        return all;
    }
    std::int64_t calls(const std::string& command) {
        return info("commandstats", "cmdstat_" + command + ":calls");
    }
};

TEST_CASE_FIXTURE(Fixture, "a message moves behind all that wait in another queue, once") {
    redis.lpush("r", "b");
    for (const Place place : places) {
        CAPTURE(static_cast<int>(place));
        push({"a", "other"});
        bring_to(place);
        const PlacedMessage message = first(place);
        CHECK(inspector.move("q", inspector.peek("q", place, 0, 9).back(), "r"));
        CHECK(payloads(place).size() == 1);
        redis.command({"LPOP", "r"});
        const PlacedMessage left = first(place);
        CHECK(inspector.move("q", left, "r"));
        CHECK(redis.lrange("r") == Texts{left.payload, "b"});
        CHECK_FALSE(inspector.move("q", left, "r"));
        CHECK(redis.lrange("r") == Texts{left.payload, "b"});
        redis.command({"LPOP", "r"});
    }
}

TEST_CASE_FIXTURE(Fixture, "a message moves to its own queue, behind all that wait") {
    push({"a", "b", "c"});
    CHECK(inspector.move("q", first(Place::waiting), "q"));
    CHECK(waiting() == Texts{"b", "c", "a"});
    redis.lpush(unack, "d");
    CHECK(inspector.move("q", first(Place::rejected), "q"));
    CHECK(waiting() == Texts{"b", "c", "a", "d"});
    redis.lpush(suspects, "e");
    CHECK(inspector.move("q", first(Place::suspected), "q"));
    CHECK(waiting() == Texts{"b", "c", "a", "d", "e"});
}

TEST_CASE_FIXTURE(Fixture, "a job that moves keeps its lock until it is acked where it is then") {
    std::string to = "r";
    SUBCASE("a short name") {}
    SUBCASE("a long name") { to = std::string(100, 'r'); }
    for (const Place place : places) {
        CAPTURE(static_cast<int>(place));
        const PlacedMessage message = unique_job(place);
        Job<Raw> before = *message.job();
        CHECK(inspector.move("q", message, to));
        CHECK(redis.exists(lock));
        CHECK_FALSE(jobs.push({"b"}, {.unique = "u"}));
        // Back and forth: the lock stays the first queue's.
        CHECK(inspector.move(to, inspector.peek(to, Place::waiting, 0, 1).at(0), "s"));
        CHECK(inspector.move("s", inspector.peek("s", Place::waiting, 0, 1).at(0), to));
        Consumer<Job<Raw>> consumer(uri, to);
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        CHECK((*guard)->unique_queue == "q");
        CHECK((*guard)->id == before.id);
        CHECK((*guard)->attributes == before.attributes);
        CHECK((*guard)->payload.bytes == "a");
        CHECK(ack_unique(*guard));
        CHECK_FALSE(redis.exists(lock));
    }
}

TEST_CASE_FIXTURE(Fixture, "a job that moves within its queue stays as it is") {
    const PlacedMessage message = unique_job(Place::rejected);
    CHECK(inspector.move("q", message, "q"));
    CHECK(first(Place::waiting).payload == message.payload);
}

TEST_CASE_FIXTURE(Fixture, "a move that cannot be is refused, and changes nothing") {
    redis.lpush(dead, "no entry");
    redis.set("text", "x");
    push({"a"});
    const PlacedMessage waits = first(Place::waiting);
    PlacedMessage held = waits;
    held.place = Place::held;
    const std::string before = all_keys();
    CHECK_THROWS_AS(inspector.move("q", first(Place::dead), "r"), std::invalid_argument);
    CHECK_THROWS_AS(inspector.move("q", held, "r"), std::invalid_argument);
    CHECK_THROWS_AS(inspector.move("q", waits, "{"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(inspector.move("q", waits, "text"), doctest::Contains("text"), ReplyError);
    CHECK(all_keys() == before);
}

TEST_CASE_FIXTURE(Fixture,
                  "those that are chosen go, up to a limit, and the rest keep their order") {
    for (const Place place : places) {
        CAPTURE(static_cast<int>(place));
        redis.flushall();
        push(numbers(250));
        bring_to(place);
        CHECK(inspector.remove_if("q", place, odd, 0) == 0);
        CHECK(inspector.remove_if("q", place, odd, 5) == 5);
        CHECK(payloads(place).size() == 245);
        CHECK(payloads(place).back() == "248"); // those that are served last are looked at first
        CHECK(payloads(place)[239] == "239");
        CHECK(inspector.remove_if("q", place, odd, no_limit) == 120);
        CHECK(inspector.remove_if("q", place, odd, no_limit) == 0);
        const Texts left = payloads(place);
        CHECK(left.size() == 125);
        CHECK(std::ranges::is_sorted(left));
        CHECK(std::ranges::none_of(left, [](const auto& text) { return text.back() == '7'; }));
    }
}

TEST_CASE_FIXTURE(Fixture, "a search goes on where it was when consumers take the messages there") {
    constexpr int count = 2500;
    push(numbers(count, 5));
    int left = count;
    int looks = 0;
    CHECK(inspector.remove_if(
              "q", Place::waiting,
              [&](const PlacedMessage& message) {
                  ++looks;
                  const int served_before = std::stoi(message.payload) - (count - left);
                  if (left > 1500 && served_before >= 0 && served_before < 120) {
                      redis.command({"RPOP", "q", "200"});
                      left -= 200;
                  }
                  return false;
              },
              no_limit) == 0); // and not FAR
    CHECK(left < count);
    CHECK(looks < 2 * count);
}

TEST_CASE_FIXTURE(Fixture, "those that wait and are chosen run before all others, each once") {
    push(numbers(250));
    CHECK(inspector.run_if("q", Place::waiting, odd, no_limit) == 125);
    const Texts all = payloads(Place::waiting);
    REQUIRE(all.size() == 250);
    CHECK(all[0] == "001");
    CHECK(all[124] == "249");
    CHECK(all[125] == "000");
    CHECK(std::is_sorted(all.begin(), all.begin() + 125));
    CHECK(std::is_sorted(all.begin() + 125, all.end()));
}

TEST_CASE_FIXTURE(Fixture,
                  "suspected ones that are chosen run before all that wait, in their order") {
    push(numbers(250));
    bring_to(Place::suspected);
    push({"b"});
    CHECK(inspector.run_if("q", Place::suspected, odd, 3) == 3);
    CHECK(payloads(Place::waiting) == Texts{"245", "247", "249", "b"});
    CHECK(inspector.run_if("q", Place::suspected, odd, no_limit) == 122);
    CHECK(payloads(Place::suspected).size() == 125);
    const Texts all = payloads(Place::waiting);
    REQUIRE(all.size() == 126);
    CHECK(std::is_sorted(all.begin(), all.begin() + 125));
    CHECK(all[125] == "b");
}

TEST_CASE_FIXTURE(Fixture, "suspected ones run while others come in and are taken") {
    push(numbers(1000, 4));
    bring_to(Place::suspected);
    int asked = 0;
    int taken = 0;
    const auto chosen = [&](const PlacedMessage& message) {
        if (++asked % 10 == 0) {
            redis.lpush(suspects, "new0"); // even
            redis.lpush("q", "new");
            taken += redis.command({"RPOP", "q"}).text == "new" ? 0 : 1;
        }
        return odd(message);
    };
    CHECK(inspector.run_if("q", Place::suspected, chosen, no_limit) == 500);
    const Texts left = payloads(Place::suspected);
    CHECK(std::ranges::none_of(
        left, [](const std::string& text) { return (text.back() - '0') % 2 == 1; }));
    CHECK(left.size() >= 500);
    CHECK(taken > 0);
    CHECK(std::ranges::count_if(waiting(), [](const std::string& text) { return text != "new"; }) ==
          500 - taken);
}

TEST_CASE_FIXTURE(Fixture, "those that are chosen elsewhere run behind all that wait, in order") {
    for (const Place place : {Place::scheduled, Place::rejected, Place::dead}) {
        CAPTURE(static_cast<int>(place));
        redis.flushall();
        push(numbers(250));
        bring_to(place);
        push({"b"});
        CHECK(inspector.run_if("q", place, odd, 3) == 3);
        CHECK(payloads(Place::waiting) == Texts{"b", "245", "247", "249"});
        CHECK(inspector.run_if("q", place, odd, no_limit) == 122);
        CHECK(payloads(place).size() == 125);
        CHECK(payloads(Place::waiting).size() == 126);
    }
}

TEST_CASE_FIXTURE(Fixture, "dead elements that are no entries do not run, and can be removed") {
    push({"a"});
    bring_to(Place::dead);
    redis.lpush(dead, "no entry");
    redis.command({"RPUSH", dead, "no entry"});
    int asked = 0;
    const auto chosen = [&](const PlacedMessage& message) {
        ++asked;
        return message.reason == "bad";
    };
    CHECK(inspector.run_if("q", Place::dead, chosen, no_limit) == 1);
    CHECK(asked == 1);
    CHECK(waiting() == Texts{"a"});
    CHECK(redis.llen(dead) == 2);
    CHECK(inspector.remove_if(
              "q", Place::dead, [](const auto& message) { return !message.time; }, no_limit) == 2);
}

TEST_CASE_FIXTURE(Fixture, "jobs that are chosen or cleared release their own locks") {
    bool clears = false;
    SUBCASE("chosen") {}
    SUBCASE("cleared") { clears = true; }
    for (const Place place : places) {
        CAPTURE(static_cast<int>(place));
        redis.flushall();
        for (const std::string id : {"u", "v", "w"}) {
            jobs.push({id}, {.unique = id});
        }
        push({"no job"});
        bring_to(place);
        redis.set("orizuru:{q}:unique:v", "ack another job");
        redis.del("orizuru:{q}:unique:w");
        redis.lpush("orizuru:{q}:unique:w", "a list of somebody's");
        CHECK((clears ? inspector.clear("q", place)
                      : inspector.remove_if("q", place, any, no_limit)) == 4);
        CHECK(payloads(place).empty());
        CHECK_FALSE(redis.exists(lock));
        CHECK(redis.exists("orizuru:{q}:unique:v"));
        CHECK(redis.exists("orizuru:{q}:unique:w"));
    }
}

TEST_CASE_FIXTURE(Fixture, "a job that has moved is removed with its lock, too") {
    CHECK(inspector.move("q", unique_job(Place::waiting), "r"));
    CHECK(inspector.remove_if("r", Place::waiting, any, 1) == 1);
    CHECK_FALSE(redis.exists(lock));
}

TEST_CASE_FIXTURE(Fixture, "no message that stays is missed while others push and take") {
    push(numbers(900));
    int asked = 0;
    const auto chosen = [&](const PlacedMessage& message) {
        if (++asked % 4 == 0) {
            redis.lpush("q", "new");
            redis.command({"RPUSH", "q", "back"});
            redis.command({"RPOP", "q"});
            redis.command({"RPOP", "q"});
        }
        return odd(message);
    };
    const std::uint64_t removed = inspector.remove_if("q", Place::waiting, chosen, no_limit);
    const Texts left = waiting();
    CHECK(std::ranges::count_if(left, [](const std::string& text) {
              return text.size() == 3 && text != "new" && (text.back() - '0') % 2 == 1;
          }) == 0);
    CHECK(removed > 300);
}

TEST_CASE_FIXTURE(Fixture,
                  "all chosen ones run first, although consumers take what was put there") {
    push(numbers(1000));
    int asked = 0;
    std::uint64_t taken = 0;
    const auto chosen = [&](const PlacedMessage& message) {
        ++asked;
        // Whatever was put in front, and nothing else.
        while (!redis.lrange("q", -1, -1).empty() && redis.lrange("q", -1, -1)[0] != "000") {
            const std::string text = redis.command({"RPOP", "q"}).text;
            CHECK(odd({Place::waiting, text, text}));
            ++taken;
        }
        return odd(message);
    };
    CHECK(inspector.run_if("q", Place::waiting, chosen, no_limit) == 500);
    CHECK(asked == 1000);
    CHECK(taken > 300);
    const Texts left = waiting();
    REQUIRE(left.size() == 1000 - taken);
    CHECK(
        std::ranges::none_of(left.begin() + static_cast<std::ptrdiff_t>(500 - taken), left.end(),
                             [](const std::string& text) { return (text.back() - '0') % 2 == 1; }));
}

TEST_CASE_FIXTURE(Fixture, "all old ones are changed, however many come in meanwhile") {
    for (const Place place :
         {Place::waiting, Place::rejected, Place::suspected, Place::scheduled}) {
        for (const int pushes : {1, 2, 30}) {
            CAPTURE(static_cast<int>(place));
            CAPTURE(pushes);
            redis.flushall();
            push(numbers(1000));
            bring_to(place);
            int pushed = 0;
            const auto come_in = [&] {
                const std::string text = "12345678new" + std::to_string(++pushed);
                if (place == Place::scheduled) {
                    redis.command({"ZADD", "orizuru:{q}:scheduled", "90000000", text});
                } else {
                    redis.lpush(place == Place::waiting     ? "q"
                                : place == Place::suspected ? suspects
                                                            : unack,
                                text);
                }
            };
            int asked = 0;
            const auto old = [&](const PlacedMessage& message) {
                ++asked;
                for (int i = 0; i < pushes; ++i) {
                    come_in();
                }
                return !contains(message.payload, "new");
            };
            CHECK(inspector.remove_if("q", place, old, no_limit) == 1000);
            CHECK(asked <= 1100);
            CHECK(payloads(place).size() == static_cast<std::size_t>(pushed));
        }
    }
}

TEST_CASE_FIXTURE(Fixture, "no message is missed while others remove from the back") {
    for (const Place place : {Place::waiting, Place::scheduled}) {
        CAPTURE(static_cast<int>(place));
        redis.flushall();
        push(numbers(1000));
        bring_to(place);
        std::uint64_t gone = 0;
        int asked = 0;
        const auto chosen = [&](const PlacedMessage& message) {
            if (++asked % 10 == 0) {
                const Answer answer = place == Place::waiting
                                          ? redis.command({"LPOP", "q"})
                                          : redis.command({"ZPOPMAX", "orizuru:{q}:scheduled"});
                const std::string text =
                    place == Place::waiting ? answer.text : answer.elements.at(0).text;
                gone += (text.back() - '0') % 2 == 1 ? 1U : 0U;
            }
            return odd(message);
        };
        CHECK(inspector.remove_if("q", place, chosen, no_limit) + gone == 500);
        const Texts left = payloads(place);
        CHECK(std::ranges::none_of(
            left, [](const std::string& text) { return (text.back() - '0') % 2 == 1; }));
        CHECK(left.size() > 300);
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "when the message behind those looked at goes, none is looked at again") {
    push(numbers(1000));
    const Texts before = redis.lrange("q");
    std::map<std::string, int> asked;
    const auto chosen = [&](const PlacedMessage& message) {
        ++asked[message.bytes];
        if (asked.size() == 10) { // of the first step
            redis.command({"LREM", "q", "1", before[10]});
            push(Texts(7, "new"));
        }
        return false;
    };
    CHECK(inspector.remove_if("q", Place::waiting, chosen, no_limit) == 0);
    CHECK(asked.size() == 999);
    CHECK(std::ranges::all_of(asked, [](const auto& times) { return times.second == 1; }));
}

TEST_CASE_FIXTURE(Fixture, "when others change a place too often, it says that some may be left") {
    push(numbers(1000));
    int asked = 0;
    const auto chosen = [&](const PlacedMessage& /*message*/) {
        // Nothing of what it knows is there any more.
        ++asked;
        Texts others = numbers(1000);
        for (std::string& text : others) {
            text += " " + std::to_string(asked / 10);
        }
        if (asked % 10 == 0) {
            redis.del("q");
            push(others);
        }
        return false;
    };
    CHECK(contains(
        message_of<ReplyError>([&] { inspector.remove_if("q", Place::waiting, chosen, no_limit); }),
        "some may be left"));
    CHECK(asked <= 3000);
}

TEST_CASE_FIXTURE(Fixture, "equal messages are looked at once, and changed once") {
    push(Texts(500, "x"));
    int asked = 0;
    const auto chosen = [&](const PlacedMessage& /*message*/) { return ++asked % 2 == 0; };
    CHECK(inspector.run_if("q", Place::waiting, chosen, no_limit) == 250);
    CHECK(asked == 500);
    CHECK(inspector.remove_if("q", Place::waiting, chosen, no_limit) == 250);
    CHECK(asked == 1000);
}

TEST_CASE_FIXTURE(Fixture, "it ends, however fast others push") {
    push(numbers(100));
    std::int64_t asked = 0;
    const auto chosen = [&](const PlacedMessage& /*message*/) {
        ++asked;
        redis.lpush("q", Texts(30, "new"));
        return false;
    };
    CHECK(inspector.remove_if("q", Place::waiting, chosen, no_limit) == 0);
    CHECK(asked <= 200);
}

TEST_CASE_FIXTURE(Fixture, "in a long list both ends are changed, and the middle is told of") {
    for (const std::string first : {"0", "1", "2"}) {
        Texts all = numbers(10'000, 4);
        for (std::string& text : all) {
            text.insert(0, first);
        }
        push(all);
    }
    const auto chosen = [](const PlacedMessage& message) {
        return message.payload.ends_with("500");
    };
    const std::string text =
        message_of<ReplyError>([&] { inspector.remove_if("q", Place::waiting, chosen, no_limit); });
    CHECK(contains(text, " 20 changed"));
    CHECK(redis.llen("q") == 29'980);
    CHECK(std::ranges::all_of(payloads(Place::waiting), [](const std::string& payload) {
        return !payload.ends_with("500") || payload.front() == '1';
    }));
    CHECK(message_of<ReplyError>(
              [&] { inspector.run_if("q", Place::waiting, chosen, no_limit); }) != "");
    const auto most = [](const PlacedMessage& message) { return message.payload.back() != '0'; };
    CHECK(inspector.remove_if("q", Place::waiting, most, no_limit) == 27'000);
    CHECK(inspector.remove_if("q", Place::waiting, any, no_limit) == 2'980);
}

TEST_CASE_FIXTURE(Fixture, "large messages are read a few at a time") {
    push(Texts(40, std::string(400'000, 'x')));
    const std::int64_t before = calls("lrange");
    CHECK(inspector.remove_if("q", Place::waiting, any, 20) == 20);
    CHECK(inspector.clear("q", Place::waiting) == 20);
    CHECK(calls("lrange") - before >= 20); // two each
    redis.command({"CONFIG", "RESETSTAT"});
}

TEST_CASE_FIXTURE(Fixture, "a place is cleared of what it has at the start") {
    for (const Place place : places) {
        CAPTURE(static_cast<int>(place));
        push(numbers(250));
        bring_to(place);
        CHECK(inspector.clear("q", place) == 250);
        CHECK(inspector.clear("q", place) == 0);
        CHECK(payloads(place).empty());
    }
    push(numbers(1000));
    std::atomic<std::int64_t> pushed = 0;
    {
        const std::jthread pushing([&](const std::stop_token& stop) {
            RedisClient own(uri);
            while (!stop.stop_requested()) {
                own.lpush("q", "new");
                ++pushed;
            }
        });
        CHECK(eventually([&] { return pushed > 0; }));
        const std::uint64_t removed = inspector.clear("q", Place::waiting);
        CHECK(removed >= 1000);
        CHECK(removed < 1000 + static_cast<std::uint64_t>(pushed));
    }
    const Texts left = waiting();
    CHECK(std::ranges::count(left, "new") == static_cast<std::ptrdiff_t>(left.size()));
}

TEST_CASE_FIXTURE(Fixture, "what consumers hold is never changed") {
    push({"a"});
    Consumer<Raw> consumer(uri, "q");
    const auto guard = consumer.next();
    CHECK_THROWS_AS(inspector.clear("q", Place::held), std::invalid_argument);
    CHECK_THROWS_AS(inspector.remove_if("q", Place::held, any, 1), std::invalid_argument);
    CHECK_THROWS_AS(inspector.run_if("q", Place::held, any, 1), std::invalid_argument);
    CHECK(inspector.state("q").held == 1);
}

TEST_CASE_FIXTURE(Fixture, "what a choice throws goes on, and completed steps stay done") {
    push(numbers(250));
    const auto chosen = [](const PlacedMessage& message) {
        if (message.payload == "100") {
            throw std::runtime_error("enough");
        }
        return true;
    };
    CHECK_THROWS_WITH_AS(inspector.remove_if("q", Place::waiting, chosen, no_limit), "enough",
                         std::runtime_error);
    CHECK(redis.llen("q") > 100);
    CHECK(redis.llen("q") < 250);
}

TEST_CASE_FIXTURE(Fixture, "a user who may only read can change nothing") {
    push({"a"});
    redis.command({"ACL", "SETUSER", "guest", "reset", "on", ">x", "~*", "+@read", "+eval_ro"});
    Inspector guest("unix://guest:x@" + server().socket_path());
    const std::string before = all_keys();
    const PlacedMessage message = guest.peek("q", Place::waiting, 0, 1).at(0);
    CHECK_THROWS_AS(guest.move("q", message, "r"), ReplyError);
    CHECK_THROWS_AS(guest.remove_if("q", Place::waiting, any, 1), ReplyError);
    CHECK_THROWS_AS(guest.run_if("q", Place::waiting, any, 1), ReplyError);
    CHECK_THROWS_AS(guest.clear("q", Place::waiting), ReplyError);
    CHECK(all_keys() == before);
    redis.command({"ACL", "DELUSER", "guest"});
}

TEST_CASE_FIXTURE(Fixture, "a job that names another queue's lock is removed without that right") {
    redis.command({"ACL", "SETUSER", "guest", "reset", "on", ">x", "~q", "~orizuru:{q}*", "+@all"});
    Inspector guest("unix://guest:x@" + server().socket_path());
    const std::string foreign = "orizuru:{r}:unique:u";
    for (const Place place : places) {
        CAPTURE(static_cast<int>(place));
        redis.flushall();
        for (const std::string queue : {"r", "r", "r", "q"}) {
            Job<Raw> job = orizuru::make_job(Raw{"a"});
            job.unique_id = "u";
            job.unique_queue = queue;
            orizuru::Producer<Job<Raw>>(uri, "q").push(job);
            redis.set(queue == "q" ? lock : foreign, "ack " + job.id);
        }
        bring_to(place);
        const auto others = [](const PlacedMessage& message) {
            return message.job()->unique_queue == "r";
        };
        CHECK(guest.remove("q", guest.peek("q", place, 0, 4).at(place == Place::dead ? 3 : 0)));
        CHECK(guest.remove_if("q", place, others, 1) == 1);
        CHECK(guest.clear("q", place) == 2);
        CHECK(payloads(place).empty());
        CHECK_FALSE(redis.exists(lock));
        CHECK(redis.exists(foreign));
    }
    redis.command({"ACL", "DELUSER", "guest"});
}

/// What has become of all messages.
struct Race : Fixture {
    static constexpr int count = 5'000;
    Texts all = numbers(count, 5);
    std::atomic<std::uint64_t> removed = 0;
    std::multiset<std::string> seen;
    std::mutex mutex;

    void see(const std::string& message) {
        const std::lock_guard guard(mutex);
        seen.insert(message);
    }
    /// Adds those that are still somewhere; each is there once, and none is lost.
    void check() {
        for (const Place place : places) {
            for (const std::string& payload : payloads(place)) {
                seen.insert(payload);
            }
        }
        for (const std::string& payload : redis.lrange("r")) {
            seen.insert(payload);
        }
        CHECK(std::set<std::string>(seen.begin(), seen.end()).size() == seen.size());
        CHECK(seen.size() + removed == all.size());
        CHECK(std::ranges::includes(all, seen));
        CHECK(inspector.state("q").held == 0);
    }
};

TEST_CASE_FIXTURE(Race, "beside consumers, each message is in one place after each change") {
    push(all);
    std::stop_source done;
    std::atomic<std::uint64_t> moved = 0;
    std::atomic<std::uint64_t> run = 0;
    {
        std::vector<std::jthread> consumers;
        for (int own = 0; own < 2; ++own) {
            consumers.emplace_back([&, own] {
                Consumer<Raw> consumer(uri, "q", {.prefetch = 10 + own * 40});
                while (auto guard = consumer.next(done.get_token())) {
                    const std::string message((*guard)->bytes);
                    if (message.ends_with('7')) {
                        guard->bury("seven");
                    } else if (message.ends_with('3')) {
                        guard->reject();
                    } else {
                        CHECK(guard->ack());
                        see(message);
                    }
                }
            });
        }
        const std::jthread inspecting([&] {
            Inspector own(uri);
            const auto every = [](int part) {
                return [part](const PlacedMessage& message) {
                    return std::stoi(message.payload) / 10 % 10 == part;
                };
            };
            const auto goes_on = [&] {
                const auto state = own.state("q");
                return state.waiting + state.held > 0;
            };
            for (int turn = 0; turn < 200 || goes_on(); ++turn) {
                const Place place = places[static_cast<std::size_t>(turn) % places.size()];
                for (const PlacedMessage& message : own.peek("q", place, 0, 5)) {
                    moved += own.move("q", message, "r") ? 1 : 0;
                }
                removed += own.remove_if("q", place, every(1), 50);
                // Those that have run before come back, at most a few hundred times in all.
                run += turn < 200 ? own.run_if("q", place, every(2), 20) : 0;
                if (turn % 20 == 12 && place != Place::waiting) {
                    removed += own.clear("q", place);
                }
            }
            done.request_stop();
        });
    }
    CHECK(moved > 0);
    CHECK(run > 0);
    CHECK(removed > 0);
    MESSAGE(moved.load() << " moved, " << run.load() << " run, " << removed.load() << " removed");
    check();
}

TEST_CASE_FIXTURE(Race, "beside a scheduler, each message is in one place after each change") {
    Texts words{"ZADD", "orizuru:{q}:scheduled"};
    const std::int64_t now = server_ms();
    for (const std::string& payload : all) {
        words.push_back(std::to_string(now + std::stoi(payload) / 20));
        words.push_back("12345678" + payload);
    }
    redis.command(words);
    std::uint64_t moved = 0;
    std::uint64_t run = 0;
    {
        const std::jthread scheduling([&](const std::stop_token& stop) {
            orizuru::Scheduler(uri, "q", {.poll = 100ms}).run(stop);
        });
        const auto ends_in = [](char last) {
            return [last](const PlacedMessage& message) { return message.payload.back() == last; };
        };
        while (redis.command({"ZCARD", "orizuru:{q}:scheduled"}).integer > 2000) {
            // Of those that the scheduler takes later.
            for (const PlacedMessage& message : inspector.peek("q", Place::scheduled, 1000, 5)) {
                moved += inspector.move("q", message, "r") ? 1 : 0;
            }
            removed += inspector.remove_if("q", Place::scheduled, ends_in('1'), 50);
            run += inspector.run_if("q", Place::scheduled, ends_in('2'), 50);
        }
        removed += inspector.clear("q", Place::scheduled);
    }
    CHECK(moved > 0);
    CHECK(run > 0);
    CHECK(removed > 0);
    MESSAGE(moved << " moved, " << run << " run, " << removed.load() << " removed");
    check();
}

} // namespace inspector_changes_test
