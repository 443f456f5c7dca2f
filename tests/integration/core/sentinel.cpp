// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// With sentinels, all parts of the library find the master, and find the next one.

#include "integration/core/queue_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/sentinels.hpp"
#include "support/speaker.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace sentinel_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Connection;
using orizuru::ConnectionError;
using orizuru::Consumer;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::ReplyError;

/// Nobody fails over in these cases, so that they share them.
Sentinels& at_rest() {
    static Sentinels sentinels;
    return sentinels;
}

/// Which connections there are at the server, by port: of connections that carry this name.
std::size_t named(RedisServer& server, const std::string& name) {
    const std::string list = RedisClient(server.plain_uri()).command({"CLIENT", "LIST"}).text;
    std::size_t count = 0;
    for (auto at = list.find(" name=" + name + ' '); at != std::string::npos;
         at = list.find(" name=" + name + ' ', at + 1)) {
        ++count;
    }
    return count;
}

TEST_CASE("the greeting of the master has the database, the name and no error") {
    Connection connection(at_rest().uri() + "/3?client_name=it");
    RedisServer& master = at_rest().await_master();
    CHECK(named(master, "it") == 1);
    connection.command("", "SET", "key", "value");
    RedisClient redis(master.plain_uri());
    redis.command({"SELECT", "3"});
    CHECK(redis.command({"GET", "key"}).text == "value");
    CHECK(connection.endpoint().db() == 3);
}

TEST_CASE("a service that no sentinel knows is named, and so are the sentinels") {
    std::string uri = at_rest().uri();
    uri.replace(uri.rfind('/') + 1, std::string::npos, "other");
    const Stopwatch watch;
    const std::string what = message_of<ConnectionError>([&] { Connection{uri}; });
    CHECK(watch.elapsed() < 5s);
    CHECK(contains(what, "no sentinel knows a master"));
    CHECK(contains(what, "the sentinel does not know 'other'"));
    CHECK(contains(what, std::to_string(at_rest().sentinel(2).port())));
}

TEST_CASE("sentinels that are all dead are named within connect_timeout") {
    const std::string ports = std::to_string(port_of(listen_tcp()));
    const std::string what = message_of<ConnectionError>(
        [&] { Connection{"redis+sentinel://:secret@127.0.0.1:" + ports + "/main"}; });
    CHECK(contains(what, "no sentinel knows a master; redis://127.0.0.1:" + ports));
    CHECK(contains(what, "Connection refused"));
    CHECK_FALSE(contains(what, "secret"));
}

TEST_CASE("sentinels that are all silent are given up within connect_timeout") {
    const Fd silent = listen_tcp();
    const std::string node = "127.0.0.1:" + std::to_string(port_of(silent));
    const Stopwatch watch;
    const std::string what = message_of<ConnectionError>(
        [&] { Connection{"redis+sentinel://" + node + ',' + node + "/main?connect_timeout=600"}; });
    CHECK(watch.elapsed() < 1200ms);
    CHECK(contains(what, "no reply in time"));
}

TEST_CASE("a sentinel that is dead or silent comes last, from the second connection on") {
    const Fd silent = listen_tcp();
    std::string uri = at_rest().uri();
    uri.insert(uri.find("//") + 2, "127.0.0.1:" + std::to_string(port_of(silent)) + ',');
    const orizuru::Endpoint endpoint(uri + "?connect_timeout=2500");
    const Stopwatch first;
    Connection{endpoint};
    CHECK(first.elapsed() >= 500ms); // a fifth of the time is the silent one's
    CHECK(first.elapsed() < 2500ms);
    const Stopwatch second;
    Connection{endpoint};
    CHECK(second.elapsed() < 250ms);
}

TEST_CASE("a sentinel that takes a replica for the master is passed over") {
    RedisServer& master = at_rest().await_master();
    const std::string replicas = RedisClient(at_rest().sentinel(0).uri())
                                     .command({"SENTINEL", "REPLICAS", "main"})
                                     .elements.at(0)
                                     .elements.at(5)
                                     .text;
    Sentinel stale;
    stale.start(at_rest().lines(static_cast<std::uint16_t>(std::stoi(replicas)), 1));
    const auto names_it = [&] {
        try {
            return RedisClient(stale.uri())
                       .command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"})
                       .elements.at(1)
                       .text == replicas;
        } catch (const std::runtime_error&) {
            return false;
        }
    };
    REQUIRE(eventually(names_it));
    std::string uri = at_rest().uri();
    uri.insert(uri.find("//") + 2, "127.0.0.1:" + std::to_string(stale.port()) + ',');
    const Connection connection(uri + "?client_name=passed");
    CHECK(named(master, "passed") == 1);
    REQUIRE(names_it()); // so it was asked as it should be
    const std::string alone =
        "redis+sentinel://127.0.0.1:" + std::to_string(stale.port()) + "/main";
    CHECK(contains(message_of<ConnectionError>([&] { Connection{alone}; }),
                   "a sentinel took it for the master, which it is not"));
}

TEST_CASE("a worker that asks sentinels for a queue of large messages hears a stop at once") {
    RedisServer master({}, RedisServer::Listen::tcp);
    Sentinel hangs; // the only one that the master knows
    hangs.start(at_rest().lines(master.port(), 1));
    const std::string uri = "redis+sentinel://127.0.0.1:" + std::to_string(hangs.port()) + "/main";
    REQUIRE(eventually([&] { // it knows the master
        try {
            Connection{uri};
            return true;
        } catch (const ConnectionError&) {
            return false;
        }
    }));
    orizuru::Worker worker(uri, {.concurrency = 1});
    worker.handle<Raw>("large", [&](const Raw&) {
        RedisClient redis(master.plain_uri());
        // All but the queue's own connection are there then.
        CHECK(eventually([&] {
            return contains(redis.command({"CLIENT", "LIST"}).text, "cmd=blpop");
        }));
        hangs.pause();
    });
    orizuru::JobProducer<Raw> jobs(master.plain_uri(), "large");
    for (int i = 0; i < 3; ++i) {
        jobs.push(Raw{std::string(100'000, 'x')});
    }
    std::stop_source stop;
    std::optional<Stopwatch> watch;
    std::jthread stopping([&] {
        std::this_thread::sleep_for(500ms); // it waits for the sentinel by then
        watch.emplace();
        stop.request_stop();
    });
    worker.run(stop.get_token());
    stopping.join();
    CHECK(watch->elapsed() < 1s); // what is left of connect_timeout is more
}

TEST_CASE("a master that hangs leaves time to ask another sentinel") {
    RedisServer hangs({}, RedisServer::Listen::tcp);
    Sentinel stale;
    stale.start(at_rest().lines(hangs.port(), 1));
    REQUIRE(eventually([&] {
        try {
            return RedisClient(stale.uri()).command({"PING"}).text == "PONG";
        } catch (const std::runtime_error&) {
            return false;
        }
    }));
    hangs.pause();
    std::string uri = at_rest().uri();
    uri.insert(uri.find("//") + 2, "127.0.0.1:" + std::to_string(stale.port()) + ',');
    const Stopwatch watch;
    const Connection connection(uri + "?client_name=later&connect_timeout=2500");
    CHECK(watch.elapsed() < 2500ms);
    CHECK(named(at_rest().await_master(), "later") == 1);
    hangs.resume();
}

TEST_CASE("other sentinels are learnt, and serve when those of the address are dead") {
    Sentinels sentinels;
    const orizuru::Endpoint endpoint(sentinels.uri({1}));
    Connection{endpoint};
    sentinels.sentinel(1).kill();
    Connection{endpoint};
    CHECK_THROWS_AS(Connection{sentinels.uri({1})}, ConnectionError); // a new one knows nobody
}

TEST_CASE("a sentinel that tells nonsense of others is believed about the master") {
    const RedisServer master({}, RedisServer::Listen::tcp);
    const std::string port = std::to_string(master.port());
    const Speaker speaker("+PONG\r\n*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(port.size()) +
                          "\r\n" + port +
                          "\r\n*2\r\n*4\r\n$2\r\nip\r\n$0\r\n\r\n$4\r\nport\r\n$1\r\n0\r\n"
                          "*1\r\n$2\r\nip\r\n");
    Connection connection("redis+sentinel://127.0.0.1:" + std::to_string(speaker.port()) + "/main");
    CHECK(connection.command("", "PING").text == "PONG");
}

std::string with_sentinels_first(std::initializer_list<std::uint16_t> ports) {
    std::string uri = at_rest().uri();
    std::string more;
    for (const std::uint16_t port : ports) {
        more += "127.0.0.1:" + std::to_string(port) + ',';
    }
    return uri.insert(uri.find("//") + 2, more);
}

TEST_CASE(
    "sentinels that hang come last in the next attempt, also when none has answered in this") {
    const Fd silent[] = {listen_tcp(), listen_tcp(), listen_tcp(), listen_tcp(), listen_tcp()};
    const orizuru::Endpoint endpoint(
        with_sentinels_first({port_of(silent[0]), port_of(silent[1]), port_of(silent[2]),
                              port_of(silent[3]), port_of(silent[4])}) +
        "?connect_timeout=1000"); // a quarter is one's
    CHECK(contains(message_of<ConnectionError>([&] { Connection{endpoint}; }),
                   "no sentinel knows a master"));
    CHECK(Connection(endpoint).command("", "PING").text == "PONG");
}

/// Answers the first that is said, and never ends.
class Flood {
  public:
    explicit Flood(std::string begin) : m_begin(std::move(begin) + "$400000000\r\n") {}

    [[nodiscard]] std::uint16_t port() const { return port_of(m_listener); }

  private:
    std::string m_begin;
    Fd m_listener = listen_tcp();
    std::jthread m_thread{[this] {
        pollfd next{m_listener.get(), POLLIN, 0};
        ::poll(&next, 1, -1);
        const Fd peer{::accept(m_listener.get(), nullptr, nullptr)};
        const std::string more(1 << 16, 'x');
        ssize_t sent = ::send(peer.get(), m_begin.data(), m_begin.size(), MSG_NOSIGNAL);
        while (sent > 0) {
            sent = ::send(peer.get(), more.data(), more.size(), MSG_NOSIGNAL);
        }
    }};
};

TEST_CASE("a sentinel that floods is passed over") {
    std::string begin;
    SUBCASE("from the greeting on") {}
    SUBCASE("behind its greeting") { begin = "+PONG\r\n"; }
    const Flood flood(begin);
    const std::string uri = with_sentinels_first({flood.port()});
    CHECK(Connection(uri + "?connect_timeout=60000").command("", "PING").text == "PONG");
    const Flood alone(begin);
    CHECK(contains(message_of<ConnectionError>([&] {
                       Connection{"redis+sentinel://127.0.0.1:" + std::to_string(alone.port()) +
                                  "/main"};
                   }),
                   "the answer is too large"));
}

/// What is thrown where the only sentinel answers that.
std::string error_behind(const std::string& answer) {
    const Speaker speaker("+PONG\r\n" + answer);
    return message_of<orizuru::Error>([&] {
        Connection{"redis+sentinel://127.0.0.1:" + std::to_string(speaker.port()) + "/main"};
    });
}

TEST_CASE("a sentinel's host with control characters is none, and its errors are printable") {
    const RedisServer master({}, RedisServer::Listen::tcp);
    const std::string port = std::to_string(master.port());
    const auto answer = [&](const std::string& host) {
        return "*2\r\n$" + std::to_string(host.size()) + "\r\n" + host + "\r\n$" +
               std::to_string(port.size()) + "\r\n" + port + "\r\n*0\r\n";
    };
    CHECK(contains(error_behind(answer(std::string("127.0.0.1\0evil", 14))),
                   "SENTINEL did not name an address"));
    CHECK(contains(error_behind(answer("127.0.0.1\x1b[2J")), "SENTINEL did not name an address"));
    CHECK(contains(error_behind("-ERR \x1b[2Jcleared\r\n*0\r\n"), "ERR ?[2Jcleared"));
}

TEST_CASE("a server that answers ROLE by no role is not taken for the master") {
    Fd listener = listen_tcp();
    const std::string port = std::to_string(port_of(listener));
    const FakeServer master([](const auto&) { return "+OK\r\n"; }, {}, std::move(listener));
    CHECK(contains(error_behind("*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(port.size()) +
                                "\r\n" + port + "\r\n*0\r\n"),
                   "ROLE was not answered by a role"));
}

TEST_CASE("sentinels have credentials of their own") {
    Sentinels sentinels({"--requirepass", "theirs", "--masterauth", "theirs"},
                        "sentinel auth-pass main theirs\nrequirepass ours\n"
                        "sentinel sentinel-pass ours\n",
                        "theirs", "ours");
    std::string uri = sentinels.uri();
    CHECK(contains(message_of<ReplyError>([&] { Connection{uri}; }), "NOAUTH"));
    uri.insert(uri.find("//") + 2, ":theirs@");
    CHECK(contains(message_of<ReplyError>([&] { Connection{uri}; }), "NOAUTH"));
    const std::string wrong =
        message_of<ReplyError>([&] { Connection{uri + "?sentinel_password=theirs"}; });
    CHECK(contains(wrong, "WRONGPASS"));
    CHECK_FALSE(contains(wrong, "theirs"));
    Connection right(uri + "?sentinel_password=ours");
    CHECK(right.command("", "PING").text == "PONG");
}

TEST_CASE("a user without the right to ROLE is served") {
    RedisServer& master = at_rest().await_master();
    RedisClient(master.plain_uri())
        .command({"ACL", "SETUSER", "plain", "on", ">pw", "~*", "+@all", "-@dangerous"});
    std::string uri = at_rest().uri();
    uri.insert(uri.find("//") + 2, "plain:pw@");
    Connection connection(uri);
    CHECK_THROWS_AS(connection.command("", "ROLE"), ReplyError);
    CHECK(connection.command("", "ECHO", "served").text == "served");
}

/// Pushes the numbers from `first` up to `end`, again and again what has not certainly been pushed.
/// Returns the longest time without a push.
std::chrono::milliseconds push_numbers(Producer<Raw>& producer, int first, int end) {
    auto last = std::chrono::steady_clock::now();
    std::chrono::milliseconds gap{0};
    for (int i = first; i < end; ++i) {
        const auto deadline = last + 30s;
        while (true) {
            try {
                producer.push(Raw{std::to_string(i)});
                break;
            } catch (const orizuru::Error&) {
                REQUIRE(std::chrono::steady_clock::now() < deadline);
                std::this_thread::sleep_for(20ms);
            }
        }
        const auto now = std::chrono::steady_clock::now();
        gap = std::max(gap, std::chrono::duration_cast<std::chrono::milliseconds>(now - last));
        last = now;
        std::this_thread::sleep_for(10ms);
    }
    return gap;
}

TEST_CASE("producers, consumers and workers go over to the next master") {
    Sentinels sentinels;
    RedisServer* const old = &sentinels.await_master();
    std::function<void()> break_it;
    SUBCASE("that a planned failover makes") {
        break_it = [&] { sentinels.fail_over(); };
    }
    SUBCASE("when the old one dies") {
        break_it = [&] { old->kill(); };
    }
    SUBCASE("when the old one hangs") {
        break_it = [&] { old->pause(); };
    }
    const orizuru::Endpoint endpoint(sentinels.uri() + "?command_timeout=1000");
    Producer<Raw> producer(endpoint, "q");
    Consumer<Raw> consumer(endpoint, "q");
    std::atomic<int> jobs = 0;
    orizuru::Worker worker(endpoint, {.concurrency = 2, .on_event = [](const auto&) {}});
    worker.handle<int>("jobs", [&](int) { ++jobs; });
    std::jthread working([&](const std::stop_token& stop) { worker.run(stop); });

    std::set<std::string> seen;
    std::jthread consuming([&](const std::stop_token& stop) {
        while (auto guard = consumer.next(stop)) {
            seen.insert((*guard)->bytes);
            static_cast<void>(guard->ack());
        }
    });
    push_numbers(producer, 0, 50);
    {
        RedisClient redis(old->plain_uri());
        redis.command({"SET", "behind them", ""});
        REQUIRE(redis.command({"WAIT", "2", "60000"}).integer == 2);
    }
    std::jthread breaking(break_it);
    const auto gap = push_numbers(producer, 50, 200);
    CHECK(gap < 15s);
    MESSAGE("the longest gap: " << gap.count() << " ms");
    RedisServer& master = sentinels.await_master(old);
    const std::uint64_t switches = sentinels.switches();
    // A machine that stalls makes them replace the master once more. What a master confirms last
    // may be lost: replication is asynchronous.
    const auto replaced_again = [&] { return sentinels.switches() > switches; };
    push_numbers(producer, 200, 220);
    RedisClient redis(master.plain_uri());
    CHECK(eventually([&] { return redis.llen("q") == 0; }));
    const auto is_handled = [&] {
        orizuru::JobProducer<int>(endpoint, "jobs").push(1);
        return eventually([&] { return jobs > 0; });
    };
    CHECK((is_handled() || (replaced_again() && is_handled())));
    consuming.request_stop();
    consuming.join();
    const auto have_come = [&](int first, int end) {
        while (first < end && seen.contains(std::to_string(first))) {
            ++first;
        }
        return first == end;
    };
    CHECK(have_come(0, 50));
    CHECK((have_come(200, 220) || replaced_again()));
}

} // namespace sentinel_test
