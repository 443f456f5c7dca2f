// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Pushes whose callers are told later: who is told what, and when it is in the queue.

#include "integration/core/queue_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

#include <orizuru/async/async_producer.hpp>
#include <orizuru/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace async_producer_test {

using namespace std::chrono_literals;
using orizuru::AsyncProducer;
using orizuru::ConnectionError;
using orizuru::Raw;
using orizuru::RefusedError;
using orizuru::ReplyError;
using orizuru::test::as_expected;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::not_as_expected;
using orizuru::test::QueueFixture;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::server;
using orizuru::test::status_of_child;
using orizuru::test::Texts;

enum class End { pushed, refused, too_long, not_run, in_doubt, other };

End end_of(const std::exception_ptr& error) {
    try {
        if (error != nullptr) {
            std::rethrow_exception(error);
        }
        return End::pushed;
    } catch (const RefusedError& refused) {
        return refused.pushed() == 0 ? End::too_long : End::other;
    } catch (const ReplyError& refused) {
        return refused.pushed() == 0 ? End::refused : End::other;
    } catch (const ConnectionError& lost) {
        return lost.in_doubt() ? End::in_doubt : End::not_run;
    } catch (...) {
        return End::other;
    }
}

/// Notes in their order who was told what.
class Answers {
  public:
    struct Answer {
        std::string message;
        End end;
    };

    [[nodiscard]] auto pen(std::string message) {
        return [this, message = std::move(message)](const std::exception_ptr& error) {
            const std::lock_guard lock(m_mutex);
            m_answers.push_back({message, end_of(error)});
        };
    }
    [[nodiscard]] std::size_t size() {
        const std::lock_guard lock(m_mutex);
        return m_answers.size();
    }
    [[nodiscard]] std::size_t count(End end) {
        const std::lock_guard lock(m_mutex);
        return static_cast<std::size_t>(std::ranges::count(m_answers, end, &Answer::end));
    }
    /// Those told this.
    [[nodiscard]] Texts of(End end) {
        const std::lock_guard lock(m_mutex);
        Texts found;
        for (const Answer& answer : m_answers) {
            if (answer.end == end) {
                found.push_back(answer.message);
            }
        }
        return found;
    }

  private:
    std::mutex m_mutex;
    std::vector<Answer> m_answers;
};

/// Pushes, and notes who is told what.
struct Pushing {
    Answers answers;

    void push(AsyncProducer<Raw>& producer, const std::string& message) {
        producer.push(Raw{message}, answers.pen(message));
    }
    bool told(std::size_t count) {
        return eventually([&] { return answers.size() == count; });
    }
};

struct Fixture : QueueFixture, Pushing {
    using Pushing::push;
};

/// A server of its own, which can be paused.
struct OwnServer : Pushing {
    RedisServer own;
    RedisClient redis{own.uri()};

    Texts oldest_first() {
        Texts found = redis.lrange("q");
        std::ranges::reverse(found);
        return found;
    }
};

TEST_CASE_FIXTURE(Fixture,
                  "each push is told once, in the order of its thread, when Redis has it") {
    AsyncProducer<Raw> producer(uri, "q");
    Texts expected;
    for (int i = 0; i < 3000; ++i) {
        push(producer, expected.emplace_back(std::to_string(i)));
    }
    CHECK(told(3000));
    CHECK(answers.of(End::pushed) == expected);
    CHECK(waiting() == expected);
    CHECK(eventually([&] { return producer.unconfirmed() == 0; })); // the last call has returned
}

TEST_CASE_FIXTURE(Fixture,
                  "a push is in the queue when its caller is told, and the caller may push "
                  "again from there") {
    AsyncProducer<Raw> producer(uri, "q");
    std::atomic<std::int64_t> length = -1;
    producer.push(Raw{"a"}, [&](const std::exception_ptr& error) {
        CHECK(end_of(error) == End::pushed);
        length = RedisClient(server().uri()).llen("q");
        push(producer, "b");
    });
    CHECK(told(1));
    CHECK(length == 1);
    CHECK(waiting() == Texts{"a", "b"});
}

TEST_CASE_FIXTURE(OwnServer, "what comes while Redis works on an LPUSH goes with the next one, at "
                             "most 1000 messages") {
    AsyncProducer<Raw> producer(own.uri(), "q");
    redis.command({"CONFIG", "RESETSTAT"});
    own.pause();
    push(producer, "0");
    // The first one is on its way when nothing else waits; it is not told yet.
    CHECK(eventually([&] { return producer.unconfirmed() == 1; }));
    for (int i = 1; i <= 1500; ++i) {
        push(producer, std::to_string(i));
    }
    CHECK(producer.unconfirmed() == 1501);
    own.resume();
    CHECK(told(1501));
    CHECK(answers.count(End::pushed) == 1501);
    const std::string calls = redis.command({"INFO", "commandstats"}).text;
    CHECK((contains(calls, "cmdstat_lpush:calls=2,") || contains(calls, "cmdstat_lpush:calls=3,")));
}

TEST_CASE_FIXTURE(Fixture, "what Redis refuses is told to each caller, and later pushes go on") {
    redis.command({"SET", "q", "no list"});
    AsyncProducer<Raw> producer(uri, "q");
    push(producer, "a");
    push(producer, "b");
    CHECK(told(2));
    CHECK(answers.count(End::refused) == 2);
    redis.del("q");
    push(producer, "c");
    CHECK(told(3));
    CHECK(waiting() == Texts{"c"});
}

TEST_CASE_FIXTURE(OwnServer,
                  "a message that is too long for the server fails alone, wherever it is "
                  "among others") {
    redis.command({"CONFIG", "SET", "proto-max-bulk-len", "1mb"});
    AsyncProducer<Raw> producer(own.uri(), "q");
    const std::string longer(std::size_t{2} << 20, 'x');
    own.pause(); // so that all are one group, or two
    Texts others;
    for (int i = 0; i < 10; ++i) {
        push(producer, others.emplace_back(std::to_string(i)));
        if (i % 3 == 0) {
            push(producer, longer);
        }
    }
    own.resume();
    CHECK(told(14));
    CHECK(answers.of(End::pushed) == others);
    CHECK(answers.count(End::too_long) == 4);
    CHECK(oldest_first() == others);
}

TEST_CASE_FIXTURE(OwnServer, "when Redis does not answer, those on their way are in doubt, those "
                             "behind them were not run, and the producer goes on") {
    AsyncProducer<Raw> producer(own.uri() + "?connect_timeout=300&command_timeout=300", "q");
    own.pause();
    for (int i = 0; i < 3000; ++i) {
        push(producer, std::to_string(i));
    }
    CHECK(told(3000));
    CHECK(answers.count(End::pushed) == 0);
    CHECK(answers.count(End::in_doubt) + answers.count(End::not_run) == 3000);
    const Texts doubtful = answers.of(End::in_doubt);
    CHECK(!doubtful.empty());
    CHECK(doubtful.size() <= 1000);
    own.resume();
    REQUIRE(eventually([&] { // a busy machine may be late for 300 ms once more
        const std::size_t before = answers.size();
        push(producer, "behind");
        return told(before + 1) && answers.count(End::pushed) > 0;
    }));
    CHECK(eventually([&] {
        const Texts all = oldest_first();
        return !all.empty() && all.back() == "behind";
    }));
    for (const std::string& message : oldest_first()) {
        CHECK((message == "behind" || std::ranges::count(doubtful, message) == 1));
    }
}

TEST_CASE_FIXTURE(OwnServer, "when a connection fails, all that wait fail with it, though Redis "
                             "answers again") {
    AsyncProducer<Raw> producer(own.uri() + "?connect_timeout=300&command_timeout=3000", "q");
    std::promise<void> entered;
    std::promise<void> accepted;
    producer.push(Raw{"before"}, [&](const std::exception_ptr&) {
        entered.set_value();
        accepted.get_future().wait(); // until then it sends nothing
    });
    entered.get_future().wait();
    own.pause();
    producer.push(Raw{"first"}, [&](const std::exception_ptr& error) {
        CHECK(end_of(error) == End::in_doubt);
        own.resume();
    });
    for (int i = 0; i < 2000; ++i) {
        push(producer, std::to_string(i));
    }
    accepted.set_value();
    for (int i = 2000; i < 3000; ++i) { // while the first ones are on their way
        push(producer, std::to_string(i));
    }
    CHECK(told(3000));
    CHECK(answers.count(End::pushed) == 0);
    CHECK(answers.count(End::not_run) >= 2001);
}

TEST_CASE_FIXTURE(OwnServer, "what is pushed by one that is told of a failure is tried anew, and "
                             "while it is told it counts as unconfirmed") {
    AsyncProducer<Raw> producer(own.uri() + "?connect_timeout=300&command_timeout=300", "q");
    std::atomic<std::size_t> unconfirmed = 0;
    own.pause();
    producer.push(Raw{"first"}, [&](const std::exception_ptr& error) {
        CHECK(end_of(error) == End::in_doubt);
        unconfirmed = producer.unconfirmed();
        own.resume();
        orizuru::test::RedisClient(own.uri()).command({"PING"}); // it answers again
        push(producer, "again");
    });
    CHECK(told(1));
    CHECK(answers.count(End::pushed) == 1);
    CHECK(unconfirmed == 1);
}

TEST_CASE_FIXTURE(OwnServer, "a producer ends though those that are told of failures push again") {
    std::optional<AsyncProducer<Raw>> producer(
        std::in_place, own.uri() + "?connect_timeout=300&command_timeout=300", "q");
    std::atomic<int> failures = 0;
    std::function<void(const std::exception_ptr&)> again = [&](const std::exception_ptr& error) {
        if (error) {
            ++failures;
            producer->push(Raw{"a"}, again);
        }
    };
    own.pause();
    producer->push(Raw{"a"}, again);
    producer.reset();
    CHECK(failures >= 1);
}

TEST_CASE_FIXTURE(Fixture, "the end of a producer pushes what was accepted, and tells of it") {
    {
        AsyncProducer<Raw> producer(uri, "q");
        for (int i = 0; i < 5000; ++i) {
            push(producer, std::to_string(i));
        }
    }
    CHECK(answers.count(End::pushed) == 5000);
    CHECK(redis.llen("q") == 5000);
}

TEST_CASE_FIXTURE(OwnServer,
                  "the end of a producer whose server does not answer tells all, and none "
                  "that was not run is in the queue") {
    std::optional<AsyncProducer<Raw>> producer(
        std::in_place, own.uri() + "?connect_timeout=300&command_timeout=300", "q");
    own.pause();
    for (int i = 0; i < 2500; ++i) {
        push(*producer, std::to_string(i));
    }
    producer.reset();
    CHECK(answers.size() == 2500);
    CHECK(answers.count(End::pushed) == 0);
    own.resume();
    const Texts doubtful = answers.of(End::in_doubt);
    for (const std::string& message : oldest_first()) {
        CHECK(std::ranges::count(doubtful, message) == 1);
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "the end of a producer pushes nothing more once command_timeout is over, "
                  "and tells the rest that it was not run") {
    constexpr auto patience = 200ms;
    const auto told_late = [&] {
        std::optional<AsyncProducer<Raw>> producer(std::in_place, uri + "?command_timeout=200",
                                                   "q");
        std::promise<void> first;
        std::promise<void> ending;
        producer->push(Raw{"first"}, [&](const std::exception_ptr&) {
            first.set_value();
            ending.get_future().wait();
            std::this_thread::sleep_for(2 * patience);
        });
        first.get_future().wait();
        push(*producer, "a");
        ending.set_value();
        producer.reset();
    };
    int rounds = 0;
    // A busy machine may begin the end so late that there is time.
    CHECK(eventually([&] {
        told_late();
        ++rounds;
        return answers.count(End::not_run) > 0;
    }));
    CHECK(answers.size() == static_cast<std::size_t>(rounds));
    CHECK(redis.llen("q") == rounds + static_cast<std::int64_t>(answers.count(End::pushed)));
}

TEST_CASE_FIXTURE(Fixture, "threads share a producer, and each one's messages keep their order") {
    AsyncProducer<Raw> producer(uri, "q");
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 4; ++thread) {
            threads.emplace_back([&, thread] {
                for (int i = 0; i < 500; ++i) {
                    push(producer, std::to_string(thread) + "/" + std::to_string(i));
                }
            });
        }
    }
    CHECK(told(2000));
    CHECK(answers.count(End::pushed) == 2000);
    std::vector<int> next(4, 0);
    for (const std::string& message : waiting()) {
        const auto thread = static_cast<std::size_t>(message[0] - '0');
        CHECK(message.substr(2) == std::to_string(next[thread]++));
    }
    CHECK(next == std::vector<int>(4, 500));
}

TEST_CASE_FIXTURE(OwnServer,
                  "in a forked child a producer is refused and can be destroyed, and its "
                  "parent's goes on") {
    std::optional<AsyncProducer<Raw>> producer(std::in_place, own.uri(), "q");
    own.pause();
    push(*producer, "a");
    const int status = status_of_child([&] {
        try {
            push(*producer, "of the child");
            return not_as_expected;
        } catch (const std::logic_error& error) {
            if (!contains(error.what(), "an AsyncProducer of 'q' is used in a forked child")) {
                return not_as_expected;
            }
        }
        producer.reset();
        return as_expected;
    });
    CHECK(status == as_expected);
    own.resume();
    push(*producer, "b");
    CHECK(told(2));
    const int of_idle = status_of_child([&] { // whose thread waits
        producer.reset();
        return as_expected;
    });
    CHECK(of_idle == as_expected);
    push(*producer, "c");
    CHECK(told(3));
    CHECK(oldest_first() == Texts{"a", "b", "c"});
}

TEST_CASE_FIXTURE(Fixture, "bad input is refused where it is given") {
    CHECK_THROWS_AS(AsyncProducer<Raw>(uri, ""), std::invalid_argument);
    CHECK_THROWS_AS(AsyncProducer<Raw>(uri, "q", {.max_payload = 0}), std::invalid_argument);
    CHECK_THROWS_AS(AsyncProducer<Raw>("unix:///nowhere", "q"), ConnectionError);
    AsyncProducer<Raw> producer(uri, "q", {.max_payload = 3});
    CHECK_THROWS_AS(push(producer, "long"), orizuru::EncodeError);
    CHECK(producer.unconfirmed() == 0);
    const AsyncProducer<Raw> moved = std::move(producer);
    CHECK(moved.keys().source() == "q");
    CHECK(contains(message_of<std::logic_error>([&] { push(producer, "a"); }),
                   "the async producer was moved from"));
    CHECK(answers.size() == 0);
}

} // namespace async_producer_test
