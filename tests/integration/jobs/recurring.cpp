// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages that recur: each occurrence is pushed once, however many processes run.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"

#include <orizuru/jobs/recurring.hpp>
#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace recurring_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::Cron;
using orizuru::EncodeError;
using orizuru::Raw;
using orizuru::Recurrence;
using orizuru::Recurring;
using orizuru::RecurringOptions;
using orizuru::ReplyError;
using orizuru::TimeZone;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::QueueFixture;
using orizuru::test::Texts;
using orizuru::test::time_of;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

Raw tell(sys_seconds occurrence) {
    return Raw{std::to_string(occurrence.time_since_epoch().count())};
}

std::string told(sys_seconds occurrence) { return tell(occurrence).bytes; }

// A machine that stops for some seconds must lose no occurrence.
Recurrence<Raw> every_second() {
    return {.name = "tick", .cron = Cron("* * * * * *"), .message = tell, .catch_up = 60};
}
Recurrence<Raw> every_year(std::string name = "year") {
    return {.name = std::move(name), .cron = Cron("@yearly"), .message = tell};
}

struct Fixture : QueueFixture {
    std::string recurring = "orizuru:{q}:recurring";

    Recurring<Raw> of(std::vector<Recurrence<Raw>> recurrences, RecurringOptions options = {}) {
        return Recurring<Raw>(uri, "q", std::move(recurrences), options);
    }
    /// Makes it look as if the last occurrence had been pushed then.
    void set_last(const std::string& name, sys_seconds time) {
        redis.command({"HSET", recurring, name, ms(time)});
    }
    std::string last(const std::string& name) {
        return redis.command({"HGET", recurring, name}).text;
    }
    static std::string ms(sys_seconds time) {
        return std::to_string(time.time_since_epoch().count() * 1000);
    }
    sys_seconds server_time() { return sys_seconds(std::chrono::seconds(server_ms() / 1000)); }
    /// New Year's Day, this many years ago.
    sys_seconds new_year(int ago = 0) {
        const std::chrono::year_month_day today(
            std::chrono::floor<std::chrono::days>(server_time()));
        return sys_days((today.year() - std::chrono::years(ago)) / 1 / 1);
    }
    /// True when the queue holds each second from its first to its last once, and more than
    /// `count`.
    bool seconds_are_whole(std::size_t more_than) {
        const Texts there = waiting();
        for (std::size_t i = 1; i < there.size(); ++i) {
            CHECK(std::stoll(there[i]) == std::stoll(there[i - 1]) + 1);
        }
        return there.size() > more_than;
    }
};

/// Processes that run the recurrences until the end of the scope, or until killed.
class Processes {
  public:
    explicit Processes(std::string uri) : m_uri(std::move(uri)) {}
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;
    ~Processes() {
        while (!m_children.empty()) {
            kill_one();
        }
    }

    void add() {
        const pid_t child = ::fork();
        if (child == 0) {
            try {
                Recurring<Raw>(m_uri, "q", {every_second()}).run(std::stop_token());
            } catch (...) { // NOLINT(bugprone-empty-catch)
            }
            ::_exit(1);
        }
        REQUIRE(child > 0);
        m_children.push_back(child);
    }
    void kill_one() {
        ::kill(m_children.front(), SIGKILL);
        orizuru::test::wait_for(m_children.front());
        m_children.erase(m_children.begin());
    }

  private:
    std::string m_uri;
    std::vector<pid_t> m_children;
};

TEST_CASE_FIXTURE(Fixture, "a recurrence that is new to Redis begins with its next occurrence") {
    auto recurring_messages = of({every_second(), every_year()});
    const std::int64_t before = server_ms();
    CHECK(recurring_messages.push_due() == 0);
    CHECK(waiting().empty());
    CHECK(std::stoll(last("tick")) >= before);
    CHECK(std::stoll(last("year")) <= server_ms());
    CHECK(eventually([&] { return recurring_messages.push_due() == 1; }));
    const Texts there = waiting();
    REQUIRE(there.size() == 1);
    CHECK(there[0] + "000" == last("tick"));
    CHECK(std::stoll(last("tick")) > before);
    CHECK(std::stoll(last("tick")) <= server_ms());
}

TEST_CASE_FIXTURE(Fixture,
                  "the latest of the occurrences that came due while no process ran is pushed") {
    set_last("year", new_year(5));
    auto recurring_messages = of({every_year()});
    CHECK(recurring_messages.push_due() == 1);
    CHECK(waiting() == Texts{told(new_year())});
    CHECK(last("year") == ms(new_year()));
    CHECK(recurring_messages.push_due() == 0);
}

TEST_CASE_FIXTURE(Fixture, "with catch_up more missed occurrences are pushed, the earliest first") {
    for (const std::string name : {"two", "all"}) {
        set_last(name, new_year(3));
    }
    auto two = every_year("two");
    two.catch_up = 2;
    auto all = every_year("all");
    all.catch_up = 1000;
    CHECK(of({two}).push_due() == 2);
    CHECK(waiting() == Texts{told(new_year(1)), told(new_year())});
    redis.del("q");
    CHECK(of({all}).push_due() == 3);
    CHECK(waiting() == Texts{told(new_year(2)), told(new_year(1)), told(new_year())});
}

TEST_CASE_FIXTURE(Fixture, "an occurrence comes by the clocks of its zone") {
    set_last("year", new_year(1));
    auto eastern = every_year();
    eastern.zone = TimeZone("+02:00");
    CHECK(of({eastern}).push_due() == 1);
    CHECK(waiting() == Texts{told(new_year() - 2h)});
}

TEST_CASE_FIXTURE(Fixture, "a clock that is set back by less than a day repeats nothing") {
    set_last("tick", server_time() + 23h);
    CHECK(of({every_second()}).push_due() == 0);
    CHECK(waiting().empty());
}

TEST_CASE_FIXTURE(Fixture, "a clock that was ahead by more than a day silences nothing") {
    set_last("tick", server_time() + 25h);
    set_last("year", new_year(-12));
    const std::int64_t before = server_ms();
    auto recurring_messages = of({every_second(), every_year()});
    CHECK(recurring_messages.push_due() == 0);
    CHECK(std::stoll(last("tick")) >= before);
    CHECK(std::stoll(last("year")) >= before);
    CHECK(std::stoll(last("year")) <= server_ms());
    CHECK(eventually([&] { return recurring_messages.push_due() >= 1; }));
    CHECK(std::stoll(waiting().front()) > before / 1000);
}

TEST_CASE_FIXTURE(Fixture, "a clock that is set back over one occurrence does not repeat it") {
    set_last("year", new_year(-1));
    CHECK(of({every_year()}).push_due() == 0);
    CHECK(last("year") == ms(new_year(-1)));
}

TEST_CASE_FIXTURE(Fixture, "when many push at once, one of them pushes each occurrence") {
    constexpr int threads = 4;
    constexpr int rounds = 30;
    auto recurrence = every_year();
    recurrence.catch_up = 1000;
    for (int round = 0; round < rounds; ++round) {
        redis.flushall();
        set_last("year", new_year(40));
        std::barrier together(threads);
        std::vector<std::uint64_t> pushed(threads);
        {
            std::vector<std::jthread> running;
            for (int i = 0; i < threads; ++i) {
                running.emplace_back([&, i] {
                    auto own = of({recurrence});
                    together.arrive_and_wait();
                    pushed[static_cast<std::size_t>(i)] = own.push_due();
                });
            }
        }
        CHECK(std::ranges::count(pushed, 40U) == 1);
        CHECK(std::ranges::count(pushed, 0U) == threads - 1);
        Texts expected;
        for (int ago = 39; ago >= 0; --ago) {
            expected.push_back(told(new_year(ago)));
        }
        CHECK(waiting() == expected);
    }
}

TEST_CASE_FIXTURE(Fixture, "several processes push each second once, as it comes") {
    std::vector<std::jthread> running;
    for (int i = 0; i < 3; ++i) {
        running.emplace_back(
            [this](const std::stop_token& token) { of({every_second()}).run(token); });
    }
    CHECK(eventually([this] { return seconds_are_whole(4); }));
    CHECK(std::stoll(waiting().back()) <= server_ms() / 1000);
}

TEST_CASE_FIXTURE(Fixture, "processes that are killed and started push each second once") {
    Processes processes(uri);
    for (int i = 0; i < 3; ++i) {
        processes.add();
    }
    for (std::size_t seconds = 1; seconds < 6; ++seconds) {
        CHECK(eventually([&] { return seconds_are_whole(seconds); }));
        processes.kill_one();
        processes.add();
    }
}

TEST_CASE_FIXTURE(Fixture, "an outage is waited out, and no second is lost") {
    const std::jthread running(
        [this](const std::stop_token& token) { of({every_second()}).run(token); });
    CHECK(eventually([this] { return seconds_are_whole(0); }));
    // Only after it has sent its command: otherwise it would connect anew without an error.
    redis.command({"CLIENT", "PAUSE", "10000", "WRITE"});
    CHECK(somebody_waits());
    redis.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    redis.command({"CLIENT", "UNPAUSE"});
    CHECK(eventually([this] { return seconds_are_whole(2); }));
}

TEST_CASE_FIXTURE(Fixture, "a stop ends a run at once") {
    std::stop_source stop;
    std::jthread thread([&] { of({every_year()}, {.poll = 24h}).run(stop.get_token()); });
    CHECK(eventually([this] { return redis.exists(recurring); }));
    CHECK(time_of([&] {
              stop.request_stop();
              thread.join();
          }) < 1s);
}

TEST_CASE_FIXTURE(Fixture, "a poll sees the clock that has been set, here the last occurrence") {
    const std::jthread running(
        [this](const std::stop_token& token) { of({every_year()}, {.poll = 100ms}).run(token); });
    CHECK(eventually([this] { return redis.exists(recurring); }));
    set_last("year", new_year(1));
    CHECK(eventually([this] { return waiting() == Texts{told(new_year())}; }));
}

TEST_CASE_FIXTURE(Fixture, "an occurrence that cannot be pushed stays due") {
    set_last("year", new_year(1));
    auto recurring_messages = of({every_year()});
    redis.command({"SET", "q", "x"});
    CHECK(
        contains(message_of<ReplyError>([&] { recurring_messages.push_due(); }), "q is a string"));
    CHECK(last("year") == ms(new_year(1)));
    redis.del("q");

    auto broken = every_year();
    broken.message = [](sys_seconds) -> Raw { throw std::domain_error("no message"); };
    auto broken_messages = of({broken});
    CHECK_THROWS_AS(broken_messages.push_due(), std::domain_error);
    auto large = every_year();
    large.message = [](sys_seconds) { return Raw{"12345"}; };
    auto large_messages = of({large}, {.max_payload = 4});
    CHECK_THROWS_AS(large_messages.push_due(), EncodeError);
    CHECK(last("year") == ms(new_year(1)));
    CHECK(waiting().empty());
    CHECK(recurring_messages.push_due() == 1);
}

TEST_CASE_FIXTURE(Fixture, "an occurrence that cannot be pushed does not delay those after it") {
    for (const std::string name : {"broken", "large", "year"}) {
        set_last(name, new_year(1));
    }
    auto broken = every_year("broken");
    broken.message = [](sys_seconds) -> Raw { throw std::domain_error("no message"); };
    auto large = every_year("large");
    large.message = [](sys_seconds) { return Raw{std::string(100, 'x')}; };
    auto recurring_messages = of({broken, large, every_year()}, {.max_payload = 50});
    CHECK(message_of<std::domain_error>([&] { recurring_messages.push_due(); }) == "no message");
    CHECK(waiting() == Texts{told(new_year())});
    CHECK(last("broken") == ms(new_year(1)));
    CHECK(last("large") == ms(new_year(1)));
    CHECK_THROWS_AS(recurring_messages.push_due(), std::domain_error);
    CHECK(redis.llen("q") == 1);
}

TEST_CASE_FIXTURE(Fixture, "missed occurrences go in steps of a mebibyte, or of one message") {
    set_last("year", new_year(5));
    auto large = every_year();
    large.catch_up = 5;
    int count = 0;
    large.message = [&](sys_seconds) {
        return Raw{std::string(++count < 4 ? 300'000 : 2'000'000, 'x')};
    };
    redis.command({"CONFIG", "RESETSTAT"});
    CHECK(of({large}).push_due() == 5);
    CHECK(info("commandstats", "cmdstat_eval:calls") == 1 + 3);
    CHECK(redis.llen("q") == 5);
    CHECK(waiting().front().size() == 300'000);
    CHECK(waiting().back().size() == 2'000'000);
    CHECK(last("year") == ms(new_year()));
}

TEST_CASE_FIXTURE(Fixture, "a value of the hash that is no time is named, and nothing is pushed") {
    set_last("tick", new_year());
    redis.command({"HSET", recurring, "year", "soon"});
    auto recurring_messages = of({every_second(), every_year()});
    const auto error = [&] {
        return message_of<ReplyError>([&] { recurring_messages.push_due(); });
    };
    CHECK(contains(error(), "year of " + recurring + " is no time"));
    redis.command({"SET", recurring, "x"});
    CHECK(contains(error(), recurring));
    CHECK(waiting().empty());
}

TEST_CASE_FIXTURE(Fixture, "an impossible recurrence is refused by its name") {
    const auto error = [this](std::vector<Recurrence<Raw>> recurrences) {
        return message_of<std::invalid_argument>([&] { of(std::move(recurrences)); });
    };
    CHECK(contains(error({every_year("")}), "no name"));
    CHECK(contains(error({every_year(), every_second(), every_year()}), "'year': another"));
    auto without = every_year();
    without.message = nullptr;
    CHECK(contains(error({without}), "'year': it has no message"));
    for (const int number : {0, 1001, std::numeric_limits<int>::min()}) {
        auto none = every_year();
        none.catch_up = number;
        CHECK(contains(error({none}), "catch_up must be 1 to 1000"));
    }
    CHECK_THROWS_AS(of({}, {.poll = 99ms}), std::invalid_argument);
    CHECK_THROWS_AS(of({}, {.max_payload = 0}), std::invalid_argument);
    CHECK(of({}).push_due() == 0);

    std::vector<Recurrence<Raw>> many;
    for (int i = 0; i < 1000; ++i) {
        many.push_back(every_year(std::to_string(i)));
    }
    CHECK(of(many).push_due() == 0);
    CHECK(redis.command({"HLEN", recurring}).integer == 1000);
    many.push_back(every_year());
    CHECK(contains(error(many), "1000"));
}

} // namespace recurring_test
