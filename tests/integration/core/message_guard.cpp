// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Each way of settling a message, and the states of a guard.

#include "integration/core/queue_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace message_guard_test {

using orizuru::Consumer;
using orizuru::EncodeError;
using orizuru::GarbageCollector;
using orizuru::MessageGuard;
using orizuru::Raw;
using orizuru::ReplyError;
using orizuru::Script;
using orizuru::test::is_dead_entry;
using orizuru::test::patience;
using orizuru::test::QueueFixture;
using orizuru::test::status_of_child;
using orizuru::test::Texts;
using std::chrono::milliseconds;

struct Held : QueueFixture {
    Consumer<Raw> consumer{uri, "q"};
    std::string id = consumer.name();

    MessageGuard<Raw> take() {
        auto guard = consumer.next(patience);
        REQUIRE(guard);
        return std::move(*guard);
    }
    MessageGuard<Raw> take(const std::string& payload) {
        push({payload});
        return take();
    }
    /// Makes the consumer lose its lease: a collector gives the messages to others.
    void lose_lease() {
        forget_heartbeat(id);
        GarbageCollector collector(uri, "q", {.grace = milliseconds(0)});
        REQUIRE(collector.collect().consumers == 1);
    }
};

const std::string any_bytes = std::string("\0\r\n*$1 \xff\xfe", 9) + "orz:0000000000000000:1";

/// All settlements, for tests that hold for each of them.
const std::vector<bool (*)(MessageGuard<Raw>&)> settlements{
    [](MessageGuard<Raw>& guard) { return guard.ack(); },
    [](MessageGuard<Raw>& guard) { return guard.reject(); },
    [](MessageGuard<Raw>& guard) { return guard.release(); },
    [](MessageGuard<Raw>& guard) { return guard.push("other"); },
    [](MessageGuard<Raw>& guard) { return guard.push("other", Raw{"new"}); },
    [](MessageGuard<Raw>& guard) { return guard.bury("tired"); },
    [](MessageGuard<Raw>& guard) {
        return guard.settle(Script("redis.call('SET', KEYS[1], payload)"), {"other"});
    },
};

TEST_CASE_FIXTURE(Held, "a message handed out lies in the processing list behind the header") {
    auto guard = take(any_bytes);
    CHECK(guard->bytes == any_bytes);
    CHECK(guard.payload() == any_bytes);
    CHECK_FALSE(guard.settled());
    CHECK(redis.lrange(processing(id)) == Texts{any_bytes, header(id)});
    CHECK(version(id) == 0);
    CHECK_FALSE(redis.exists("q"));
}

TEST_CASE_FIXTURE(Held, "an acked message is gone from all lists") {
    auto guard = take("a");
    CHECK(guard.ack());
    CHECK(guard.settled());
    CHECK(held().empty());
    CHECK(version(id) == 1);
    CHECK(redis.keys() == Texts{consumers, heartbeat(id), processing(id)});
    CHECK(guard->bytes == "a");
    CHECK(guard.payload() == "a");
}

TEST_CASE_FIXTURE(Held, "rejected messages wait on the unack list, the newest left") {
    auto first = take(any_bytes);
    auto second = take("b");
    CHECK(first.reject());
    CHECK(second.reject());
    CHECK(redis.lrange(unack) == Texts{"b", any_bytes});
    CHECK(held().empty());
    CHECK(version(id) == 2);
}

TEST_CASE_FIXTURE(Held, "a released message is served next, and counted nowhere") {
    push({"a", "b", "c"});
    auto guard = take();
    CHECK(guard->bytes == "a");
    CHECK(guard.release());
    CHECK(guard.settled());
    CHECK(waiting() == Texts{"a", "b", "c"});
    CHECK(held().empty());
    CHECK_FALSE(redis.exists(recoveries));
    CHECK(take()->bytes == "a");
}

TEST_CASE_FIXTURE(Held, "push moves the same bytes to the left end of another queue") {
    redis.lpush("other", "x");
    auto guard = take(any_bytes);
    CHECK(guard.push("other"));
    CHECK(guard.settled());
    CHECK(redis.lrange("other") == Texts{any_bytes, "x"});
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Held, "push to the own queue puts the message at its end") {
    push({"a", "b"});
    CHECK(take().push("q"));
    CHECK(waiting() == Texts{"b", "a"});
}

TEST_CASE_FIXTURE(Held, "push can put another message in place of the old one") {
    auto guard = take("a");
    CHECK(guard.push("other", Raw{"a, second try"}));
    CHECK(redis.lrange("other") == Texts{"a, second try"});
    CHECK(held().empty());
    CHECK(take("b").push("other", Raw{""}));
    CHECK(redis.lrange("other") == Texts{"", "a, second try"});
}

TEST_CASE_FIXTURE(Held, "push refuses an impossible queue name, and the guard lives on") {
    auto guard = take("a");
    for (const std::string name :
         {"", "{", "}", "a{b", "a}b{", "{}", "orizuru:x", "orizuru:{q}:dead"}) {
        CAPTURE(name);
        CHECK_THROWS_AS(guard.push(name), std::invalid_argument);
        CHECK_THROWS_AS(guard.push(name, Raw{"b"}), std::invalid_argument);
    }
    CHECK_FALSE(guard.settled());
    CHECK(held() == Texts{"a"});
    CHECK(guard.push("a{tag}b"));
    CHECK(redis.lrange("a{tag}b") == Texts{"a"});
}

TEST_CASE_FIXTURE(Held, "a buried message is on the dead list with reason and time, newest left") {
    for (const std::string& payload : {std::string("a"), any_bytes, std::string(70'000, 'x')}) {
        for (const std::string& reason : {std::string("no such file"), std::string(300, 'r')}) {
            const auto since = server_ms();
            CHECK(take(payload).bury(reason));
            const auto until = server_ms();
            const Texts entries = redis.lrange(dead);
            CHECK(is_dead_entry(entries.front(), payload, reason, since, until));
        }
    }
    CHECK(redis.llen(dead) == 6);
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Held, "a message can be buried without a reason") {
    const auto since = server_ms();
    CHECK(take("a").bury());
    CHECK(is_dead_entry(redis.lrange(dead).at(0), "a", "", since, server_ms()));
}

TEST_CASE_FIXTURE(Held, "a script settles a message") {
    auto guard = take(any_bytes);
    CHECK(guard.settle(Script("redis.call('HSET', KEYS[1], ARGV[1], payload)"), {"done"}, {"f"}));
    CHECK(guard.settled());
    CHECK(redis.command({"HGET", "done", "f"}).text == any_bytes);
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Held, "a guard destroyed unsettled rejects its message") {
    { const auto guard = take("a"); }
    CHECK(rejected() == Texts{"a"});
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Held, "a guard destroyed by an exception rejects its message") {
    try {
        const auto guard = take("a");
        throw std::runtime_error("the handler failed");
    } catch (const std::runtime_error&) {
        CHECK(rejected() == Texts{"a"});
    }
}

TEST_CASE_FIXTURE(Held, "a guard destroyed after each settlement does nothing more") {
    for (const auto settle : settlements) {
        redis.del("other");
        push({"a"});
        {
            auto guard = take();
            CHECK(settle(guard));
        }
        redis.del("q"); // released
        CHECK(held().empty());
    }
    CHECK(rejected() == Texts{"a"}); // by reject
}

TEST_CASE_FIXTURE(Held, "settling twice is a logic_error and changes nothing") {
    for (const auto first : settlements) {
        redis.flushall();
        Consumer<Raw> fresh(uri, "q");
        push({"a"});
        auto guard = *fresh.next();
        CHECK(first(guard));
        const Texts before = redis.keys();
        const int version_before = version(fresh.name());
        for (const auto second : settlements) {
            CHECK_THROWS_AS(second(guard), std::logic_error);
        }
        CHECK(guard.settled());
        CHECK(redis.keys() == before);
        CHECK(version(fresh.name()) == version_before);
    }
}

TEST_CASE_FIXTURE(Held, "a moved guard settles the message, and the one moved from nothing") {
    auto first = take("a");
    MessageGuard<Raw> second(std::move(first));
    // NOLINTBEGIN(bugprone-use-after-move)
    CHECK(first.settled());
    CHECK_THROWS_AS(static_cast<void>(first.payload()), std::logic_error);
    for (const auto settle : settlements) {
        CHECK_THROWS_AS(settle(first), std::logic_error);
    }
    // NOLINTEND(bugprone-use-after-move)
    CHECK_FALSE(second.settled());
    CHECK(second->bytes == "a");
    CHECK(held() == Texts{"a"});
    CHECK(second.ack());
    CHECK(held().empty());
    CHECK_FALSE(redis.exists(unack));
}

#ifndef NDEBUG
TEST_CASE_FIXTURE(Held, "a debug build stops at the message of a guard that was moved from") {
    auto first = take("a");
    const MessageGuard<Raw> second(std::move(first));
    const auto aborts = [](const std::function<void()>& use) {
        return status_of_child([&] {
                   ::signal(SIGABRT, SIG_DFL); // the test's own would report a crash
                   ::close(STDERR_FILENO);     // where it is told
                   use();
                   return orizuru::test::as_expected;
               }) == -1;
    };
    // NOLINTBEGIN(bugprone-use-after-move)
    CHECK(aborts([&] { static_cast<void>(*first); }));
    CHECK(aborts([&] { static_cast<void>(first->bytes); }));
    CHECK(aborts([&] { static_cast<void>(first.take()); }));
    // NOLINTEND(bugprone-use-after-move)
    CHECK_FALSE(aborts([&] { static_cast<void>(*second); }));
}
#endif

TEST_CASE_FIXTURE(Held, "a guard that gets another one's message rejects its own first") {
    auto first = take("a");
    auto second = take("b");
    first = std::move(second);
    CHECK(rejected() == Texts{"a"});
    CHECK(held() == Texts{"b"});
    CHECK(first->bytes == "b");
    CHECK(first.payload() == "b");
    CHECK(second.settled()); // NOLINT(bugprone-use-after-move)
    CHECK(first.ack());
    CHECK(held().empty());
    first = take("c");
    CHECK_FALSE(first.settled());
    CHECK(first.ack());
    CHECK(rejected() == Texts{"a"});
}

TEST_CASE_FIXTURE(Held, "a guard moved onto itself keeps its message") {
    auto guard = take("a");
    auto& same = guard;
    guard = std::move(same);
    CHECK_FALSE(guard.settled());
    CHECK(guard->bytes == "a");
    CHECK(held() == Texts{"a"});
    CHECK(guard.ack());
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(Held, "guards are settled in any order, each its own message") {
    push({"a", "b", "c", "d", "e", "f"});
    std::vector<MessageGuard<Raw>> guards;
    for (int i = 0; i < 6; ++i) {
        guards.push_back(take());
    }
    CHECK(guards[2].ack());
    CHECK(held() == Texts{"a", "b", "d", "e", "f"});
    CHECK(guards[4].push("other"));
    CHECK(held() == Texts{"a", "b", "d", "f"});
    CHECK(guards[5].reject());
    CHECK(held() == Texts{"a", "b", "d"});
    CHECK(guards[0].ack());
    CHECK(held() == Texts{"b", "d"});
    CHECK(guards[3].release());
    CHECK(held() == Texts{"b"});
    CHECK(waiting() == Texts{"d"});
    CHECK(guards[1].ack());
    CHECK(held().empty());
    CHECK(redis.lrange("other") == Texts{"e"});
    CHECK(rejected() == Texts{"f"});
}

TEST_CASE_FIXTURE(Held, "every settlement after a lost lease says false and changes nothing") {
    for (const auto settle : settlements) {
        redis.flushall();
        Consumer<Raw> fresh(uri, "q");
        push({"a"});
        auto guard = *fresh.next();
        id = fresh.name();
        lose_lease();
        CHECK_FALSE(settle(guard));
        CHECK(guard.settled());
        CHECK_THROWS_AS(guard.ack(), std::logic_error);
        CHECK(waiting() == Texts{"a"});
        CHECK_FALSE(redis.exists("other"));
        CHECK_FALSE(redis.exists(unack));
        CHECK_FALSE(redis.exists(dead));
        auto again = *fresh.next();
        CHECK(again->bytes == "a");
        CHECK(again.ack());
    }
}

TEST_CASE_FIXTURE(Held, "a guard destroyed after its lease was lost rejects nothing") {
    {
        auto guard = take("a");
        lose_lease();
    }
    CHECK(waiting() == Texts{"a"});
    CHECK_FALSE(redis.exists(unack));
}

TEST_CASE_FIXTURE(QueueFixture, "a guard outlives its consumer and then leaves the registry") {
    push({"a", "b"});
    std::optional<MessageGuard<Raw>> guard;
    std::string id;
    std::string nonce;
    {
        Consumer<Raw> consumer(uri, "q");
        guard = consumer.next();
        id = consumer.name();
        nonce = header(id).substr(4, header(id).rfind(':') - 4);
    }
    REQUIRE(guard);
    CHECK((*guard)->bytes == "a");
    CHECK(ids() == Texts{id});
    CHECK(redis.exists(heartbeat(id)));
    CHECK(held() == Texts{"a"});
    CHECK(waiting() == Texts{"b"});
    SUBCASE("after an ack") {
        CHECK(guard->ack());
        CHECK(nobody_left());
        CHECK(waiting() == Texts{"b"});
    }
    SUBCASE("after a rejection by its destructor") {
        guard.reset();
        CHECK(nobody_left());
        CHECK(rejected() == Texts{"a"});
    }
    SUBCASE("after a release") {
        CHECK(guard->release());
        CHECK(nobody_left());
        CHECK(waiting() == Texts{"a", "b"});
    }
    CHECK(fence(id).starts_with("released orz:" + nonce + ":"));
}

TEST_CASE_FIXTURE(QueueFixture,
                  "when several guards outlive their consumer, the last one leaves the registry") {
    push({"a", "b", "c"});
    std::vector<MessageGuard<Raw>> guards;
    {
        Consumer<Raw> consumer(uri, "q");
        for (int i = 0; i < 3; ++i) {
            guards.push_back(*consumer.next());
        }
    }
    CHECK(guards[1].ack());
    CHECK(held() == Texts{"a", "c"});
    CHECK(guards[2].ack());
    CHECK(held() == Texts{"a"});
    CHECK(guards[0].ack());
    CHECK(nobody_left());
}

TEST_CASE_FIXTURE(QueueFixture, "a guard that outlives its consumer keeps the lease") {
    push({"a"});
    std::optional<MessageGuard<Raw>> guard;
    std::string id;
    {
        Consumer<Raw> consumer(uri, "q", {.lease = milliseconds(300)});
        guard = consumer.next();
        id = consumer.name();
    }
    redis.command({"PEXPIRE", heartbeat(id), "100000"});
    // The next beat sets the lease's own time again.
    CHECK(orizuru::test::eventually([&] {
        const std::int64_t left = redis.command({"PTTL", heartbeat(id)}).integer;
        return left > 0 && left <= 300;
    }));
    CHECK(guard->ack());
}

/// A message whose move throws when told to.
struct Jumpy {
    explicit Jumpy(std::string content) : text(std::move(content)) {}
    Jumpy(Jumpy&& other) noexcept(false) : text(other.text), fuse(other.fuse) {
        if (fuse-- == 0) {
            throw std::runtime_error("moved once too often");
        }
    }
    std::string text;
    int fuse = 100;
};

} // namespace message_guard_test

template <>
struct orizuru::Codec<message_guard_test::Jumpy> {
    static message_guard_test::Jumpy decode(std::string_view bytes) {
        message_guard_test::Jumpy jumpy{std::string(bytes)};
        jumpy.fuse = bytes == "at once" ? 0 : 100;
        if (bytes == "while decoded") {
            jumpy.fuse = 0;
            const message_guard_test::Jumpy moved(std::move(jumpy));
        }
        return jumpy;
    }
};

namespace message_guard_test {

TEST_CASE_FIXTURE(QueueFixture, "a guard moves without throwing, whatever its message does") {
    static_assert(!std::is_nothrow_move_constructible_v<Jumpy>);
    static_assert(std::is_nothrow_move_constructible_v<MessageGuard<Jumpy>>);
    Consumer<Jumpy> consumer(uri, "q");
    push({"calm"});
    auto guard = consumer.next();
    REQUIRE(guard);
    for (int i = 0; i < 200; ++i) {
        MessageGuard<Jumpy> other(std::move(*guard));
        *guard = std::move(other);
    }
    CHECK((*guard)->text == "calm");
    CHECK(held() == Texts{"calm"});
    CHECK(guard->ack());
}

TEST_CASE_FIXTURE(QueueFixture, "a guard takes a message that cannot be moved") {
    Consumer<Jumpy> consumer(uri, "q");
    push({"at once"});
    const auto guard = consumer.next();
    REQUIRE(guard);
    CHECK((*guard)->text == "at once");
}

template <class T>
T read(std::string_view payload) {
    orizuru::Scratch scratch;
    return orizuru::Codec<T>::decode(payload, scratch);
}

TEST_CASE_FIXTURE(QueueFixture, "a message can be moved out of its guard, which still settles it") {
    using Large = std::unique_ptr<std::vector<int>>;
    orizuru::Producer<Large>(uri, "q").push(std::make_unique<std::vector<int>>(1000, 7));
    Consumer<Large> consumer(uri, "q");
    auto guard = consumer.next();
    REQUIRE(guard);
    const std::vector<int>* const inside = guard->operator*().get();
    const Large taken = guard->take();
    CHECK(taken.get() == inside);
    CHECK(taken->size() == 1000);
    CHECK(guard->push("other"));
    CHECK(*read<Large>(redis.lrange("other").at(0)) == *taken);
    CHECK(held().empty());

    push({"calm"});
    Consumer<Jumpy> jumpy(uri, "q");
    auto other = jumpy.next();
    REQUIRE(other);
    CHECK(other->take().text == "calm");
    CHECK(other->ack());
}

struct Amount {
    int cents = 0;

    Amount() = default;
    Amount(int count) : cents(count) {} // NOLINT: what else becomes one
    MSGPACK_DEFINE(cents)
};

/// Has no Codec.
struct Coins {
    int count;

    operator Amount() const { return count; } // NOLINT
};

struct Failure {
    std::string what;
    int times = 0;

    MSGPACK_DEFINE(what, times)
};

struct DetailedFailure : Failure {
    std::string detail;

    MSGPACK_DEFINE(what, times, detail)
};

TEST_CASE_FIXTURE(QueueFixture, "a message of another type can be pushed in place of this one") {
    Consumer<std::string> consumer(uri, "q");
    orizuru::Producer<std::string>(uri, "q").push_all({"a", "b", "c", "d"});
    auto guard = *consumer.next();
    CHECK(guard.push("other", Failure{"too late", 3}));
    guard = *consumer.next();
    CHECK(guard.push("other", {"as before"}));
    guard = *consumer.next();
    CHECK(guard.push("other", "as before"));
    guard = *consumer.next();
    const char* const text = "as before";
    CHECK(guard.push("other", text));
    const Texts pushed = redis.lrange("other");
    REQUIRE(pushed.size() == 4);
    CHECK(read<Failure>(pushed.at(3)).times == 3);
    CHECK(read<std::string>(pushed.at(2)) == "as before");
    CHECK(read<std::string>(pushed.at(1)) == "as before");
    CHECK(read<std::string>(pushed.at(0)) == "as before");
    CHECK(held().empty());
}

TEST_CASE_FIXTURE(QueueFixture, "what converts to the guard's type is pushed as that, and whole as "
                                "what it is where that would cut it") {
    const auto pushed_by = [this]<class T>(const T& own, const auto& push) {
        orizuru::Producer<T>(uri, "q").push(own);
        Consumer<T> consumer(uri, "q");
        CHECK(push(*consumer.next()));
        return redis.lrange("other").at(0);
    };
    const auto in_place_of = [&](const auto& own, const auto& other) {
        return pushed_by(own, [&](auto guard) { return guard.push("other", other); });
    };
    CHECK(read<DetailedFailure>(in_place_of(Failure{"late", 3}, DetailedFailure{{"late", 3}, "x"}))
              .detail == "x");
    CHECK(read<double>(in_place_of(7, 2.5)) == 2.5);
    // Not as an int, though an int has a Codec: no consumer of amounts would read that.
    CHECK(read<Amount>(in_place_of(Amount(7), 8)).cents == 8);
    CHECK(read<Amount>(in_place_of(Amount(7), Amount(8))).cents == 8);
    CHECK(read<Amount>(in_place_of(Amount(7), Coins{9})).cents == 9);
    CHECK(read<Amount>(pushed_by(Amount(7), [](auto guard) {
              return guard.push("other", {8});
          })).cents == 8);
}

TEST_CASE_FIXTURE(QueueFixture, "a message that throws while it is decoded goes to the dead list") {
    Consumer<Jumpy> consumer(uri, "q");
    push({"while decoded", "calm"});
    CHECK_THROWS_AS(static_cast<void>(consumer.next()), orizuru::DecodeError);
    CHECK(redis.llen(dead) == 1);
    CHECK((*consumer.next())->text == "calm");
}

struct Prickly {
    std::string text;
};

} // namespace message_guard_test

template <>
struct orizuru::Codec<message_guard_test::Prickly> {
    static void encode(const message_guard_test::Prickly& prickly, std::string& out) {
        out += "half of it";
        if (prickly.text == "runtime_error") {
            throw std::runtime_error("cannot be written");
        }
        if (prickly.text == "int") {
            throw 7;
        }
        out = prickly.text;
    }
    static message_guard_test::Prickly decode(std::string_view bytes) {
        return {std::string(bytes)};
    }
};

namespace message_guard_test {

TEST_CASE_FIXTURE(QueueFixture, "a replacement that cannot be encoded leaves the guard unsettled") {
    Consumer<Prickly> consumer(uri, "q", {.max_payload = 100});
    push({"a"});
    auto guard = *consumer.next();
    CHECK_THROWS_AS(guard.push("other", {"runtime_error"}), EncodeError);
    CHECK_THROWS_AS(guard.push("other", {"int"}), EncodeError);
    CHECK_THROWS_AS(guard.push("other", {std::string(101, 'x')}), EncodeError);
    CHECK_FALSE(guard.settled());
    CHECK_FALSE(redis.exists("other"));
    CHECK(held() == Texts{"a"});
    CHECK(guard.push("other", {std::string(100, 'x')}));
    CHECK(redis.lrange("other") == Texts{std::string(100, 'x')});
}

} // namespace message_guard_test
