// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/endpoint.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace endpoint_test {

using orizuru::Endpoint;
using namespace std::chrono_literals;

static_assert(std::is_convertible_v<const char*, Endpoint>);
static_assert(std::is_convertible_v<std::string, Endpoint>);
static_assert(std::is_convertible_v<std::string_view, Endpoint>);
static_assert(std::is_copy_assignable_v<Endpoint>);
static_assert(std::is_nothrow_move_constructible_v<Endpoint>);

/// Why `uri` is refused; fails the test when it is not.
std::string refusal(std::string_view uri) {
    try {
        const Endpoint endpoint(uri);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    FAIL_CHECK("accepted: " << std::string(uri));
    return {};
}

bool holds(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

std::string replaced(std::string_view pattern, std::string_view what, std::string_view by) {
    std::string text(pattern);
    const auto place = text.find(what);
    REQUIRE(place != std::string::npos);
    return text.replace(place, what.size(), by);
}

TEST_CASE("a host alone means port 6379, database 0, no credentials and 5 s for each timeout") {
    const Endpoint endpoint("redis://localhost");
    CHECK(endpoint.host() == "localhost");
    CHECK(endpoint.port() == 6379);
    CHECK(endpoint.db() == 0);
    CHECK(endpoint.path().empty());
    CHECK(endpoint.user().empty());
    CHECK(endpoint.password() == std::nullopt);
    CHECK(endpoint.client_name().empty());
    CHECK(endpoint.connect_timeout() == 5000ms);
    CHECK(endpoint.command_timeout() == 5000ms);
    CHECK(endpoint.address() == "redis://localhost:6379");
}

TEST_CASE("all parts of a TCP address are read") {
    const Endpoint endpoint("redis://ann:hush@redis.example:7000/3"
                            "?connect_timeout=250&command_timeout=750&client_name=worker-1");
    CHECK(endpoint.host() == "redis.example");
    CHECK(endpoint.port() == 7000);
    CHECK(endpoint.db() == 3);
    CHECK(endpoint.user() == "ann");
    CHECK(endpoint.password() == "hush");
    CHECK(endpoint.connect_timeout() == 250ms);
    CHECK(endpoint.command_timeout() == 750ms);
    CHECK(endpoint.client_name() == "worker-1");
    CHECK(endpoint.address() == "redis://redis.example:7000/3");
}

TEST_CASE("all parts of a Unix socket's address are read") {
    const Endpoint endpoint("unix://ann:hush@/run/redis.sock?db=2&connect_timeout=1&client_name=w");
    CHECK(endpoint.path() == "/run/redis.sock");
    CHECK(endpoint.host().empty());
    CHECK(endpoint.db() == 2);
    CHECK(endpoint.user() == "ann");
    CHECK(endpoint.password() == "hush");
    CHECK(endpoint.connect_timeout() == 1ms);
    CHECK(endpoint.client_name() == "w");
    CHECK(endpoint.address() == "unix:///run/redis.sock?db=2");
    CHECK(Endpoint("unix:///run/redis.sock").address() == "unix:///run/redis.sock");
}

TEST_CASE("an address is taken as a literal, a string and a view of a part of one") {
    const std::string text = "redis://h:1 and more";
    CHECK(Endpoint("redis://h:1").port() == 1);
    CHECK(Endpoint(text.substr(0, 11)).port() == 1);
    CHECK(Endpoint(std::string_view(text).substr(0, 11)).port() == 1);
}

TEST_CASE("a password may stand without a user, and may be empty") {
    CHECK(Endpoint("redis://:hush@h").password() == "hush");
    CHECK(Endpoint("redis://:hush@h").user().empty());
    CHECK(Endpoint("redis://ann:@h").password() == "");
    CHECK(Endpoint("redis://ann:@h").user() == "ann");
}

TEST_CASE("the last '@' before the path ends the credentials") {
    const Endpoint endpoint("redis://ann:a@b:c@h:1");
    CHECK(endpoint.password() == "a@b:c");
    CHECK(endpoint.host() == "h");
}

TEST_CASE("user, password, host, path and client name are percent-decoded") {
    const Endpoint tcp("redis://a%3Ab:%2f%3F%23%40%25%ff@h%2Dost?client_name=a%2Bb");
    CHECK(tcp.user() == "a:b");
    CHECK(tcp.password() == "/?#@%\xff");
    CHECK(tcp.host() == "h-ost");
    CHECK(tcp.client_name() == "a+b");
    CHECK(Endpoint("unix:///run/a%20b%3F.sock").path() == "/run/a b?.sock");
}

TEST_CASE("an IPv6 address stands in brackets, with and without a port") {
    const Endpoint bare("redis://[::1]");
    CHECK(bare.host() == "::1");
    CHECK(bare.port() == 6379);
    CHECK(bare.address() == "redis://[::1]:6379");
    const Endpoint full("redis://:hush@[2001:db8::7]:6380/2");
    CHECK(full.host() == "2001:db8::7");
    CHECK(full.port() == 6380);
    CHECK(full.address() == "redis://[2001:db8::7]:6380/2");
    CHECK(Endpoint("redis://[fe80::1%25eth0]").host() == "fe80::1%eth0");
}

TEST_CASE("the bounds of port, database and timeouts are taken, what lies beyond is refused") {
    CHECK(Endpoint("redis://h:1").port() == 1);
    CHECK(Endpoint("redis://h:65535").port() == 65535);
    CHECK(Endpoint("redis://h/2147483647").db() == 2147483647);
    CHECK(Endpoint("redis://h?connect_timeout=86400000").connect_timeout() == 24h);
    CHECK(Endpoint("redis://h?command_timeout=1").command_timeout() == 1ms);
    for (const std::string_view port :
         {"0", "65536", "-1", "+1", "", "x", "1x", " 1", "0x10", "99999999999999999999"}) {
        CHECK(holds(refusal("redis://h:" + std::string(port)), "the port must be a number from 1"));
        CHECK(holds(refusal("redis://[::1]:" + std::string(port)), "the port must be a number"));
    }
    for (const std::string_view db : {"2147483648", "-1", "x", "1/", "1/2", "0x1"}) {
        CHECK(holds(refusal("redis://h/" + std::string(db)), "the database must be a number"));
        CHECK(holds(refusal("unix:///s?db=" + std::string(db)), "db must be a number from 0"));
    }
    for (const std::string key : {"connect_timeout", "command_timeout"}) {
        for (const std::string value : {"", "=", "=0", "=-1", "=86400001", "=5s", "=1.5"}) {
            CHECK(holds(refusal("redis://h?" + key + value), key + " (milliseconds) must be"));
        }
    }
}

TEST_CASE("a socket's path holds at most 107 bytes, counted after decoding") {
    const std::string longest = "/" + std::string(106, 'x');
    CHECK(Endpoint("unix://" + longest).path() == longest);
    CHECK(Endpoint("unix://" + longest.substr(0, 106) + "%78").path() == longest);
    CHECK(holds(refusal("unix://" + longest + "x"), "longer than the 107 bytes"));
}

TEST_CASE("a query key that is not known is refused, and the known ones are told") {
    for (const std::string_view query : {"conect_timeout=1", "db=1", "connect_timeout=1&nope=2",
                                         "Connect_timeout=1", "nope", "connect_timeout=1&&", "="}) {
        CHECK(holds(refusal("redis://h?" + std::string(query)), "; known: connect_timeout, "));
    }
    CHECK(holds(refusal("unix:///s?nope=1"), "; known: db, connect_timeout, "));
    CHECK(Endpoint("redis://h?").host() == "h");
}

TEST_CASE("a query key that is not known is named, unless it could be a password") {
    CHECK(holds(refusal("redis://h?connect_timeout=1&conect-time_out=1"),
                "unknown query key 'conect-time_out'; known"));
    CHECK(holds(refusal("unix:///s?password=hush"), "unknown query key 'password'; known"));
    const std::string longest(32, 'x');
    CHECK(holds(refusal("redis://h?" + longest + "=1"), "'" + longest + "'"));
    for (const std::string& key :
         {std::string("hush"), longest + "x=1", std::string("Hush=1"), std::string("hush1=1"),
          std::string("hu%20sh=1"), std::string("=hush"), std::string("hu sh=1")}) {
        CHECK(holds(refusal("redis://h?" + key), "unknown query key; known"));
    }
}

TEST_CASE("an address with sentinels has hosts, a service, a database and their credentials") {
    const Endpoint all("redis+sentinel://ann:hush@a,b:1234,[::1]:99/the%20main/3"
                       "?sentinel_user=bob&sentinel_password=too&connect_timeout=7");
    CHECK(all.address() == "redis+sentinel://a:26379,b:1234,[::1]:99/the main/3");
    CHECK(all.user() == "ann");
    CHECK(all.password() == "hush");
    CHECK(all.db() == 3);
    CHECK(all.host().empty());
    CHECK(all.path().empty());
    CHECK(all.connect_timeout() == std::chrono::milliseconds(7));
    CHECK(Endpoint("valkey+sentinel://a/main").address() == "redis+sentinel://a:26379/main");
}

TEST_CASE("valkey is another word for redis") {
    CHECK(Endpoint("valkey://h/1").address() == "redis://h:6379/1");
}

TEST_CASE("rediss is refused with the header that takes it") {
    CHECK(holds(refusal("rediss://redis.example:6380"), "<orizuru/tls.hpp>"));
    CHECK(holds(refusal("rediss://redis.example:6380"), "rediss://redis.example:6380"));
}

TEST_CASE("wrong forms are refused, each with its reason") {
    struct Case {
        std::string_view uri;
        std::string_view reason;
    };
    for (const Case& wrong : {
             Case{"", "no scheme"},
             Case{"localhost", "no scheme"},
             Case{"localhost:6379", "no scheme"},
             Case{"/run/redis.sock", "no scheme"},
             Case{"redis:/h", "no scheme"},
             Case{"://h", "none of redis://"},
             Case{"http://h", "none of redis://"},
             Case{"REDIS://h", "none of redis://"},
             Case{"redis+unix:///s", "none of redis://"},
             Case{"redis://", "the host is missing"},
             Case{"redis:///1", "the host is missing"},
             Case{"redis://:6379", "the host is missing"},
             Case{"redis://[]", "the host is missing"},
             Case{"redis://:hush@", "the host is missing"},
             Case{"redis://[::1", "'[' without ']'"},
             Case{"redis://[::1]6379", "only a port may follow ']'"},
             Case{"redis://::1", "in brackets"},
             Case{"redis://a,b", "several hosts are the sentinels of redis+sentinel://"},
             Case{"redis://a:1,b:2/3", "or nodes of redis+cluster://"},
             Case{"redis://2001:db8::7", "in brackets"},
             Case{"redis://ann@h", "a user without a password"},
             Case{"redis://@h", "a user without a password"},
             Case{"redis://h#1", "'#' must be percent-encoded"},
             Case{"unix://", "a socket's path is needed"},
             Case{"unix:///", "a socket's path is needed"},
             Case{"unix://redis.sock", "a socket's path is needed"},
             Case{"unix://run/redis.sock", "a socket's path is needed"},
             Case{"unix://:hush@run/redis.sock", "a socket's path is needed"},
             Case{"redis://h%", "two hexadecimal digits"},
             Case{"redis://h%4", "two hexadecimal digits"},
             Case{"redis://h%4g", "two hexadecimal digits"},
             Case{"redis://h%-1", "two hexadecimal digits"},
             Case{"redis://h%0x", "two hexadecimal digits"},
             Case{"redis://:%zz@h", "two hexadecimal digits"},
             Case{"unix:///s%", "two hexadecimal digits"},
             Case{"redis://h%00x", "%00 is not allowed"},
             Case{"unix:///s%00x", "%00 is not allowed"},
             Case{"redis://:pa/ss@h", "percent-encoded"},
             Case{"redis://:pa?ss@h", "percent-encoded"},
             Case{"redis://ann:1?pass=word@h", "percent-encoded"},
             Case{"unix:///s?client_name=a@b", "percent-encoded"},
             Case{"redis+sentinel://h", "the name of the service is missing"},
             Case{"redis+sentinel://h/", "the name of the service is missing"},
             Case{"redis+sentinel://h//1", "the name of the service is missing"},
             Case{"redis+sentinel:///main", "the host is missing"},
             Case{"redis+sentinel://a,,b/main", "the host is missing"},
             Case{"redis+sentinel://a,b,/main", "the host is missing"},
             Case{"redis+sentinel://a:0/main", "the port must be a number"},
             Case{"redis+sentinel://a/main/x", "the database must be a number"},
             Case{"redis+sentinel://a/main?nope=1", "; known: connect_timeout, command_timeout, "
                                                    "client_name, sentinel_user, sentinel_pass"},
             Case{"redis://h?sentinel_password=hush", "unknown query key 'sentinel_password'"},
             Case{"unix+sentinel://h/main", "none of redis://"},
             Case{"rediss+sentinel://h/main", "<orizuru/tls.hpp>"},
             Case{"redis://h?client_name=a%20b", "printable ASCII"},
             Case{"redis://h?client_name=a%0Ab", "printable ASCII"},
             Case{"redis://h?client_name=%C3%A9", "printable ASCII"},
         }) {
        CAPTURE(wrong.uri);
        const std::string text = refusal(wrong.uri);
        CAPTURE(text);
        CHECK(text.starts_with("Redis address '"));
        CHECK(holds(text, wrong.reason));
    }
}

TEST_CASE("a NUL byte cannot cut an address short") {
    using namespace std::string_view_literals;
    CHECK(holds(refusal("redis://h\0.example"sv), "NUL"));
    CHECK(holds(refusal("unix:///run/a\0b"sv), "NUL"));
    CHECK(holds(refusal("redis://:hush\0@h"sv), "NUL"));
}

TEST_CASE("a refusal names the address as far as it can be told from a password") {
    CHECK(holds(refusal("redis://:hush@redis.example:0"), "'redis://redis.example:0'"));
    CHECK(holds(refusal("redis://:hush@[::1]:0"), "'redis://[::1]:0'"));
    CHECK(holds(refusal("redis://redis.example:6379?nope=1"), "'redis://redis.example:6379'"));
    CHECK(holds(refusal("unix://:hush@/run/redis.sock?nope=1"), "'unix:///run/redis.sock'"));
    CHECK(holds(refusal("localhost:6379"), "'localhost:6379'"));
    CHECK(holds(refusal("/run/redis.sock"), "'/run/redis.sock'"));
}

TEST_CASE("no refusal contains a password, wherever it was put and whatever it contains") {
    // PASS stands where a password is meant or where one ends up when something was forgotten.
    const std::string_view before_at[] = {
        "redis://:PASS@h:0",
        "redis://ann:PASS@h:65536",
        "redis://ann:PASS@h:port",
        "redis://ann:PASS@",
        "redis://ann:PASS@h/db",
        "redis://ann:PASS@h/0?nope=1",
        "redis://ann:PASS@h?connect_timeout=x",
        "redis://ann:PASS@h?client_name=a%20b",
        "redis://ann:PASS@h?client_name=a@b",
        "redis://ann:PASS@h#",
        "redis://ann:PASS@[::1",
        "redis://ann:PASS@::1",
        "redis://ann:PASS%zz@h",
        "redis://ann:PASS%00@h",
        "redis://PASS:@h:0",
        "redis://PASS@h:0",
        "rediss://ann:PASS@h",
        "redis+sentinel://ann:PASS@h",
        "redis+sentinel://ann:PASS@a,b/main/x",
        "redis+sentinel://a,b/main?sentinel_password=PASS&nope=1",
        "redis+sentinel://a,b/main?sentinel_pasword=PASS",
        "http://ann:PASS@h",
        "ann:PASS@h",
        "redis:ann:PASS@h",
        "redis:/ann:PASS@h",
        "redis//ann:PASS@h",
        "unix://:PASS@",
        "unix://:PASS@/",
        "unix://ann:PASS@relative.sock",
        "unix://ann:PASS@/run/redis.sock?nope=1",
    };
    const std::string_view elsewhere[] = {
        "redis://ann:PASS",
        "redis://:PASS",
        "redis://ann:PASS:6379",
        "redis://:PASS:6379/0",
        "redis://ann:PASS:h:6379",
        "redis://ann:PASS/0?nope=1",
        "redis://h:PASS",
        "redis://h/PASS",
        "redis://h/0/PASS",
        "redis:///PASS",
        "redis://h#PASS",
        "redis://h/0#PASS",
        "redis://[::1]PASS",
        "redis://[::1]:PASS",
        "redis://[ann:PASS",
        "redis://h?PASS",
        "redis://h?password=PASS",
        "redis://h?client_name=%20PASS",
        "redis://h?connect_timeout=PASS",
        "redis://h?connect_timeout=1&password=PASS",
        "redis:ann:PASS",
        "redis:/ann:PASS/h",
        "redis//ann:PASS",
        "ann:PASS",
        "ann:PASS:h:6379",
        "PASS://h",
        "ann:PASS://h",
        "unix://:PASS/run/redis.sock",
        "unix://ann:PASS",
        "unix:///run/redis.sock?password=PASS",
        "unix:///run/redis.sock?db=PASS",
    };
    const auto check = [](std::string_view pattern, const std::string& password) {
        const std::string uri = replaced(pattern, "PASS", password);
        CAPTURE(uri);
        const std::string text = refusal(uri);
        CAPTURE(text);
        CHECK_FALSE(holds(text, "hush"));
        CHECK_FALSE(holds(text, "1234567"));
    };
    for (const std::string_view special :
         {"", ":", "/", "?", "#", "[", "]", "%", "%3A", "&", "=", "://", " ", "\\", "\n"}) {
        const std::string password = "hush" + std::string(special) + "hush";
        for (const std::string_view pattern : before_at) {
            check(pattern, password);
            check(pattern, password + "@hush");
        }
        for (const std::string_view pattern : elsewhere) {
            if (special != "=" || pattern != "redis://h?PASS") { // that is a key and its value
                check(pattern, password);
            }
        }
    }
    for (const std::string_view pattern : before_at) {
        check(pattern, "1234567");
    }
    for (const std::string_view pattern :
         {"redis://:PASS", "redis://ann:PASS", "redis://ann:PASS:6379", "unix://:PASS/run/s"}) {
        check(pattern, "1234567");
    }
}

} // namespace endpoint_test
