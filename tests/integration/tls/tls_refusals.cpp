// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A certificate, a name or a port that is wrong is refused in words, within connect_timeout.

#include "integration/core/queue_fixture.hpp"
#include "support/certificates.hpp"
#include "support/elapsed.hpp"
#include "support/posix.hpp"
#include "support/speaker.hpp"

#include <orizuru/detail/tls/tls_context.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/tls.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace tls_refusals_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Connection;
using orizuru::tls_endpoint;

const Certificates& files() { return Certificates::made(); }

RedisServer server_with(const std::string& name, const std::string& clients = "no") {
    return RedisServer(files().of_server(name, clients), RedisServer::Listen::tls);
}

template <class Server>
std::string at(const std::string& host, const Server& server) {
    return "rediss://:secret@" + host + ":" + std::to_string(server.port());
}

/// What connecting throws; checks that it is of this type, comes in time and tells no password.
template <class Error>
std::string refusal(const std::string& uri) {
    const Stopwatch watch;
    const std::string what = message_of<Error>([&] { Connection{tls_endpoint(uri)}; });
    CHECK(watch.elapsed() < 5s);
    CHECK_FALSE(contains(what, "secret"));
    CHECK(contains(what, "rediss://"));
    return what;
}

TEST_CASE("a server's certificate must be for the host of the address") {
    const RedisServer elsewhere = server_with("elsewhere");
    const std::string name =
        refusal<orizuru::ReplyError>(at("localhost", elsewhere) + files().trusting());
    CHECK(contains(name, "hostname mismatch, expected name 'localhost'"));
    const std::string address =
        refusal<orizuru::ReplyError>(at("127.0.0.1", elsewhere) + files().trusting());
    CHECK(contains(address, "IP address mismatch, expected name '127.0.0.1'"));
    SUBCASE("or for the name that the address gives in its place") {
        const RedisServer right = server_with("elsewhere");
        Connection(tls_endpoint(right.uri() + files().trusting() + "&sni=redis.example"))
            .command("", "PING");
        Connection(tls_endpoint(right.uri() + files().trusting() + "&sni=redis.example."))
            .command("", "PING"); // a name from the root
        const std::string sni = refusal<orizuru::ReplyError>(
            at("127.0.0.1", right) + files().trusting() + "&sni=other.example");
        CHECK(contains(sni, "expected name 'other.example'"));
    }
}

TEST_CASE("an address without TLS of a port that speaks it says which address is meant") {
    const RedisServer server = server_with("right");
    const std::string plain = "redis://127.0.0.1:" + std::to_string(server.port());
    CHECK(contains(message_of<orizuru::ConnectionError>([&] { Connection{plain}; }),
                   "if the port speaks TLS, the address begins with rediss://"));
}

TEST_CASE("a server's certificate must be by an authority that the address or the system trusts") {
    const RedisServer right = server_with("right");
    for (const std::string& query : {std::string(), "?cacert=" + files().path("other-ca.pem"),
                                     "?cacertdir=" + files().path("other")}) {
        const std::string what = refusal<orizuru::ReplyError>(at("localhost", right) + query);
        CHECK(contains(what, "the server's certificate is refused: self"));
    }
}

TEST_CASE("an expired certificate is refused") {
    const RedisServer expired = server_with("expired");
    CHECK(contains(refusal<orizuru::ReplyError>(at("localhost", expired) + files().trusting()),
                   "certificate has expired"));
}

TEST_CASE("a server that asks for a client's certificate gets the one of the address") {
    const RedisServer strict = server_with("right", "yes");
    const std::string uri = at("localhost", strict) + files().trusting();
    const auto with = [&](const std::string& name) {
        return "&cert=" + files().path(name + ".pem") + "&key=" + files().path(name + ".key");
    };
    CHECK(contains(refusal<orizuru::ReplyError>(uri), "certificate required"));
    CHECK(contains(refusal<orizuru::ReplyError>(uri + with("stranger")), "unknown ca"));
    Connection welcome(tls_endpoint(strict.uri() + files().trusting() + with("client")));
    CHECK(welcome.command("", "PING").text == "PONG");
}

TEST_CASE("the code of a refused certificate is TLS") {
    const RedisServer right = server_with("right");
    try {
        Connection{tls_endpoint(right.uri())};
        FAIL("no exception");
    } catch (const orizuru::ReplyError& error) {
        CHECK(error.code() == "TLS");
    }
}

TEST_CASE("a port without TLS is named") {
    const RedisServer plain({}, RedisServer::Listen::tcp);
    const std::string silent = refusal<orizuru::ConnectionError>(
        at("localhost", plain) + files().trusting() + "&connect_timeout=300");
    CHECK(contains(silent, "no TLS handshake within connect_timeout; does the port speak TLS?"));
}

TEST_CASE("a peer that answers the handshake by other words is no server of TLS") {
    const Speaker speaker("-ERR unknown command\r\n");
    CHECK(contains(refusal<orizuru::ProtocolError>(at("127.0.0.1", speaker)),
                   "does the port speak TLS?"));
}

TEST_CASE("a peer that ends the handshake has closed the connection") {
    const Speaker speaker("");
    CHECK(contains(refusal<orizuru::ConnectionError>(at("127.0.0.1", speaker)),
                   "the server closed the connection in the TLS handshake"));
}

TEST_CASE("a peer that is gone when we send ends the connection, and not the process by SIGPIPE") {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const Fd ours{ends[0]};
    Fd{ends[1]}.reset();
    const orizuru::detail::TlsContext context({}, "rediss://localhost");
    const auto channel = context.open(ours.get(), "localhost", "rediss://localhost");
    CHECK(contains(message_of<orizuru::ConnectionError>([&] { channel->shake_hands(); }),
                   "the TLS handshake: Broken pipe"));
}

TEST_CASE("a file that cannot be used is named before any connection is made") {
    const auto reason = [](const std::string& query) {
        const std::string what = message_of<std::invalid_argument>(
            [&] { static_cast<void>(tls_endpoint("rediss://u:secret@localhost" + query)); });
        CHECK_FALSE(contains(what, "secret"));
        CHECK(contains(what, "rediss://localhost:6379"));
        return what;
    };
    CHECK(contains(reason("?cacert=/none.pem"), "cacert '/none.pem': No such file"));
    CHECK(contains(reason("?cacertdir=/none"), "cacertdir '/none': No such file"));
    CHECK(contains(reason("?cert=/none.pem&key=/none.key"), "cert '/none.pem': No such file"));
    const std::string cert = "?cert=" + files().path("client.pem");
    CHECK(contains(reason(cert), "cert and key belong together"));
    CHECK(contains(reason(cert + "&key=" + files().path("stranger.key")), "mismatch"));
    CHECK(contains(reason(cert + "&key=" + files().path("client-encrypted.key")), "key '"));
    CHECK(contains(reason(cert + "&key=" + files().path("client.pem")), "key '"));
    CHECK(contains(message_of<std::invalid_argument>(
                       [] { static_cast<void>(tls_endpoint("rediss://localhost?cacert=")); }),
                   "cacert is empty"));
}

TEST_CASE("an address without TLS takes no files") {
    CHECK(contains(message_of<std::invalid_argument>(
                       [] { static_cast<void>(tls_endpoint("redis://localhost?cacert=x")); }),
                   "unknown query key 'cacert'"));
    CHECK(tls_endpoint("redis://localhost").address() == "redis://localhost:6379");
    CHECK(tls_endpoint("unix:///run/redis.sock").path() == "/run/redis.sock");
    CHECK(tls_endpoint("valkeys://localhost/3").address() == "rediss://localhost:6379/3");
}

} // namespace tls_refusals_test
