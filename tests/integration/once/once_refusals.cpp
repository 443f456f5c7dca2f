// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Claims when Redis does not answer or refuses, and calls that are refused before that.

#include "integration/once/once_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <orizuru/once.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace once_refusals_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::ConnectionError;
using orizuru::Once;
using orizuru::OnceToken;
using orizuru::ReplyError;
using orizuru::test::as_expected;
using orizuru::test::contains;
using orizuru::test::eventually;
using orizuru::test::message_of;
using orizuru::test::not_as_expected;
using orizuru::test::OnceFixture;
using orizuru::test::Proxy;
using orizuru::test::RedisClient;
using orizuru::test::RedisServer;
using orizuru::test::server;
using orizuru::test::status_of_child;
using orizuru::test::Texts;
using State = orizuru::Claim::State;

template <class Use>
bool is_logic_error(Use use) {
    try {
        use();
    } catch (const std::logic_error&) {
        return true;
    }
    return false;
}

TEST_CASE("the next renewal makes up for one that fails, and reports nothing") {
    RedisServer own;
    RedisClient redis(own.uri());
    Once once(own.uri() + "?connect_timeout=200&command_timeout=200", "q", {.lease = 60s});
    REQUIRE(once.claim("id").state == State::claimed);
    once.renew();
    redis.command({"HSET", "orizuru:{q}:once:id", "until", "1"});
    own.pause();
    once.renew();
    own.resume();
    redis.command({"HSET", "orizuru:{q}:once:id", "until", "1"});
    CHECK(eventually([&] {
        once.renew();
        return redis.command({"HGET", "orizuru:{q}:once:id", "until"}).text != "1";
    }));
    own.kill();
    once.renew();
}

TEST_CASE_FIXTURE(OnceFixture, "a call whose reply is lost is repeated, and has happened once") {
    Proxy proxy(server().socket_path());
    Once cut(proxy.uri(), "q");
    std::size_t connection = 0;
    const auto lose_reply = [&] {
        using Direction = Proxy::Direction;
        proxy.cut_after(Direction::to_client, proxy.bytes(connection, Direction::to_client),
                        Proxy::Cut::fin, connection);
        ++connection;
    };
    lose_reply();
    const OnceToken token = claimed(cut);
    CHECK(std::to_string(token.fence) == fields()["fence"]);
    CHECK(redis.command({"GET", fences}).text == fields()["fence"]);
    lose_reply();
    CHECK(cut.complete(token, "x"));
    CHECK(state() == "done");
    const OnceToken failed = claimed(cut, "failed");
    lose_reply();
    CHECK_FALSE(cut.release(failed)); // it is no longer the latest
    CHECK_FALSE(redis.exists("orizuru:{q}:once:failed"));
    CHECK(proxy.cuts() == 3);
}

TEST_CASE_FIXTURE(OnceFixture,
                  "a call of which both replies are lost is in doubt, and a claim then "
                  "ends with its lease") {
    Proxy proxy(server().socket_path());
    Once cut(proxy.uri(), "q", {.lease = 100ms});
    proxy.cut_after(Proxy::Direction::to_client, proxy.bytes(0, Proxy::Direction::to_client),
                    Proxy::Cut::fin, 0);
    proxy.then_cut_next_after(Proxy::Direction::to_client, 0, Proxy::Cut::fin);
    try {
        static_cast<void>(cut.claim("id"));
        FAIL_CHECK("no exception");
    } catch (const ConnectionError& error) {
        CHECK(error.in_doubt());
    }
    CHECK(state() == "claimed");
    cut.renew();
    CHECK(eventually([this] { return other.claim("id").state == State::claimed; }));
}

TEST_CASE_FIXTURE(OnceFixture,
                  "a forked child is refused, and renews nothing, also when the parent's "
                  "connection was lost before") {
    RedisServer own;
    Once lost(own.uri(), "q");
    own.kill();
    CHECK_THROWS_AS(static_cast<void>(lost.claim("id")), ConnectionError);
    own.restart();
    const OnceToken token = claimed(once);
    end_lease();
    CHECK(status_of_child([&] {
              once.renew();
              const bool refused =
                  is_logic_error([&] { static_cast<void>(lost.claim("id")); }) &&
                  is_logic_error([&] { lost.complete(token); }) &&
                  is_logic_error([&] { lost.release(token); }) &&
                  is_logic_error([&] { static_cast<void>(lost.run("id", [] {})); });
              return refused ? as_expected : not_as_expected;
          }) == as_expected);
    CHECK(until() == 1);
    CHECK(lost.claim("id").state == State::claimed);
    once.renew();
    CHECK(until() > server_ms());
}

TEST_CASE_FIXTURE(OnceFixture, "impossible values are refused before anything is sent") {
    const std::string large(Once::largest_result + 1, 'x');
    for (const std::string& id : {""s, std::string(513, 'x')}) {
        CHECK_THROWS_AS(static_cast<void>(once.claim(id)), std::invalid_argument);
        CHECK_THROWS_AS(once.complete({.id = id, .fence = 1}), std::invalid_argument);
        CHECK_THROWS_AS(once.release({.id = id, .fence = 1}), std::invalid_argument);
        CHECK_THROWS_AS(static_cast<void>(once.run(id, effect())), std::invalid_argument);
    }
    for (const auto lease : {0ms, 99ms, 86'400'001ms, std::chrono::milliseconds::max()}) {
        CHECK_THROWS_AS(Once(uri, "q", {.lease = lease}), std::invalid_argument);
    }
    for (const auto time : {0ms, -1ms, std::chrono::milliseconds::max()}) {
        CHECK_THROWS_AS(Once(uri, "q", {.remember = time}), std::invalid_argument);
    }
    CHECK_THROWS_AS(Once(uri, "{"), std::invalid_argument);
    CHECK(redis.keys().empty());
    CHECK(effects == 0);
    const OnceToken token = claimed(once);
    CHECK_THROWS_AS(once.complete(token, large), std::invalid_argument);
    CHECK(state() == "claimed");
    CHECK(once.complete(token, large.substr(1)));
}

TEST_CASE_FIXTURE(OnceFixture, "any bytes are an id, and none collides with another key") {
    for (const std::string& id :
         {"\0{}*\xff\r\n"s, "fences"s, ":"s, "orizuru:{q}:fences"s, std::string(512, 'x')}) {
        const OnceToken token = claimed(once, id);
        CHECK(redis.exists("orizuru:{q}:once:" + id));
        CHECK(once.complete(token));
    }
    CHECK(redis.keys().size() == 6);
}

TEST_CASE_FIXTURE(OnceFixture, "a key of the wrong type is named, and nothing is written") {
    for (const std::string& key : {record, fences}) {
        redis.flushall();
        redis.lpush(key, "x");
        const auto named = [&](auto action) {
            return contains(message_of<ReplyError>(action), key + " is a list");
        };
        CHECK(named([this] { static_cast<void>(once.claim("id")); }));
        if (key == record) {
            CHECK(named([this] { once.complete({.id = "id", .fence = 1}); }));
            CHECK(named([this] { once.release({.id = "id", .fence = 1}); }));
        }
        CHECK(redis.keys() == Texts{key});
        CHECK(redis.lrange(key) == Texts{"x"});
    }
    redis.flushall();
    redis.set(fences, "many");
    CHECK(
        contains(message_of<ReplyError>([this] { static_cast<void>(once.claim("id")); }), fences));
    CHECK(redis.keys() == Texts{fences});
}

TEST_CASE_FIXTURE(OnceFixture, "a user without the rights changes nothing") {
    const std::string clerk = "unix://clerk:open-sesame@" + server().socket_path();
    redis.command({"ACL", "SETUSER", "clerk", "reset", "on", ">open-sesame", "~*", "&*", "+@all"});
    Once own(clerk, "q");
    const auto refused_without = [&](const std::string& right, auto action) {
        CAPTURE(right);
        redis.command({"ACL", "SETUSER", "clerk", "-" + right});
        const Fields before = fields();
        const Texts keys = redis.keys();
        CHECK(contains(message_of<ReplyError>(action), "NOPERM"));
        CHECK(fields() == before);
        CHECK(redis.keys() == keys);
        redis.command({"ACL", "SETUSER", "clerk", "+" + right});
    };
    for (const std::string right : {"hset", "pexpire", "set"}) {
        refused_without(right, [&] { static_cast<void>(own.claim("id")); });
    }
    CHECK(redis.keys().empty());
    const OnceToken token = claimed(own);
    for (const std::string right : {"hset", "hdel", "pexpire"}) {
        refused_without(right, [&] { own.complete(token); });
    }
    refused_without("del", [&] { own.release(token); });
    end_lease();
    redis.command({"ACL", "SETUSER", "clerk", "-pexpire"});
    own.renew();
    CHECK(until() == 1);
    redis.command({"ACL", "DELUSER", "clerk"});
}

TEST_CASE_FIXTURE(OnceFixture, "when memory is full no claim comes, and what is claimed can be "
                               "renewed, completed and released") {
    const OnceToken token = claimed(once);
    const OnceToken failed = claimed(once, "failed");
    end_lease();
    redis.command({"CONFIG", "SET", "maxmemory", "1"});
    const std::string error =
        message_of<ReplyError>([this] { static_cast<void>(once.claim("new")); });
    once.renew();
    const bool renewed = until() > server_ms();
    const bool completed = once.complete(token, "x");
    const bool released = once.release(failed);
    redis.command({"CONFIG", "SET", "maxmemory", "0"});
    CHECK(contains(error, "OOM"));
    CHECK(renewed);
    CHECK(completed);
    CHECK(released);
    CHECK(redis.keys() == Texts{fences, record});
}

} // namespace once_refusals_test
