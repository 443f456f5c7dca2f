// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/keys.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace keys_test {

using orizuru::Keys;

/// The hash slot of a key, after the specification of Redis Cluster: CRC16/XMODEM of what lies
/// between the first '{' and the first '}' behind it, or of the whole key when that is nothing.
unsigned slot(std::string_view key) {
    if (const auto open = key.find('{'); open != std::string_view::npos) {
        const auto close = key.find('}', open);
        if (close != std::string_view::npos && close > open + 1) {
            key = key.substr(open + 1, close - open - 1);
        }
    }
    unsigned crc = 0;
    for (const char c : key) {
        crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc & 0x8000) != 0 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1 & 0xffff;
        }
    }
    return crc % 16384;
}

std::vector<std::string> derived(const Keys& keys) {
    return {keys.consumers(),
            keys.heartbeat("w:h:1:f"),
            keys.processing("w:h:1:f"),
            keys.unack(),
            keys.dead(),
            keys.recoveries(),
            keys.recurring(),
            keys.worker("w:h:1:f"),
            keys.counts(),
            keys.counts("2026-11-25"),
            keys.unique("id"),
            keys.progress("id"),
            keys.result("id"),
            keys.ledger(),
            keys.once("id"),
            keys.fences(),
            keys.order("id"),
            keys.burst("id"),
            keys.keyed(),
            keys.keyed_upkeep(),
            keys.group("g"),
            keys.groups(),
            keys.queue_rate(),
            keys.slots_taken(),
            keys.slots_freed(),
            keys.rate("id")};
}

std::string refusal(std::string_view queue) {
    try {
        const Keys keys{std::string(queue)};
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    FAIL_CHECK("accepted: " << std::string(queue));
    return {};
}

TEST_CASE("the slot of this test is the one of Redis Cluster") {
    CHECK(slot("123456789") == 0x31c3); // the specification's own example
    CHECK(slot("foo{bar}x") == slot("bar"));
    CHECK(slot("foo{}{bar}") != slot("bar"));
    CHECK(slot("foo{{bar}}zap") == slot("{bar"));
}

TEST_CASE("the keys of a queue without a hash tag carry its name as their tag") {
    const Keys keys("mail");
    CHECK(keys.source() == "mail");
    CHECK(keys.consumers() == "orizuru:{mail}:consumers");
    CHECK(keys.heartbeat("w:h:1:f") == "orizuru:{mail}:heartbeat:w:h:1:f");
    CHECK(keys.processing("w:h:1:f") == "orizuru:{mail}:processing:w:h:1:f");
    CHECK(keys.unack() == "orizuru:{mail}:unack");
    CHECK(keys.dead() == "orizuru:{mail}:dead");
    CHECK(keys.recoveries() == "orizuru:{mail}:recoveries");
    CHECK(keys.recurring() == "orizuru:{mail}:recurring");
    CHECK(keys.paused() == "orizuru:{mail}:paused");
    CHECK(keys.unique("a{b}") == "orizuru:{mail}:unique:a{b}");
    CHECK(keys.progress("a") == "orizuru:{mail}:progress:a");
    CHECK(keys.result("a") == "orizuru:{mail}:result:a");
    CHECK(keys.ledger() == "orizuru:{mail}:ledger");
    CHECK(keys.once("a") == "orizuru:{mail}:once:a");
    CHECK(keys.fences() == "orizuru:{mail}:fences");
    CHECK(keys.order("a") == "orizuru:{mail}:key:a");
    CHECK(keys.burst("a") == "orizuru:{mail}:burst:a");
    CHECK(keys.keyed() == "orizuru:{mail}:keyed");
    CHECK(keys.keyed_upkeep() == "orizuru:{mail}:keyed:upkeep");
    CHECK(keys.group("g") == "orizuru:{mail}:group:g");
    CHECK(keys.groups() == "orizuru:{mail}:groups");
    CHECK(keys.queue_rate() == "orizuru:{mail}:rate");
    CHECK(keys.slots_taken() == "orizuru:{mail}:slots");
    CHECK(keys.slots_freed() == "orizuru:{mail}:slots:freed");
    CHECK(keys.rate("a") == "orizuru:{mail}:rate:a");
}

TEST_CASE("the keys of a queue with a hash tag keep its tag, and its whole name") {
    CHECK(Keys("{shop}mail").source() == "{shop}mail");
    CHECK(Keys("{shop}mail").unack() == "orizuru:{shop}:{shop}mail:unack");
    CHECK(Keys("mail:{shop}:eu").dead() == "orizuru:{shop}:mail:{shop}:eu:dead");
    CHECK(Keys("{shop}").consumers() == "orizuru:{shop}:{shop}:consumers");
}

TEST_CASE("all keys of a queue lie in the hash slot of its source") {
    using namespace std::string_view_literals;
    for (const std::string_view queue :
         {"mail"sv, "a b"sv, "files:retry"sv, "{shop}mail"sv, "mail{shop}"sv, "a{b}c{d}e"sv,
          "{{a}}"sv, "{a}}"sv, "a}b{c}"sv, "{a}{"sv, "{a}{}"sv, "}{a}"sv, "caf\xc3\xa9"sv,
          "nul\0byte"sv, "\r\n"sv, "orizuru"sv, "orizuru{a:b}"sv, "{orizuru:}x"sv}) {
        CAPTURE(queue);
        const Keys keys{std::string(queue)};
        CHECK(keys.source() == queue);
        for (const std::string& key : derived(keys)) {
            CAPTURE(key);
            CHECK(slot(key) == slot(queue));
        }
    }
}

TEST_CASE("no two queues share a key") {
    std::set<std::string> seen;
    std::size_t count = 0;
    for (const std::string_view queue :
         {"a", "b", "{a}", "{a}b", "b{a}", "a{a}", "a:unack", "{a}:unack", "a:dead"}) {
        const Keys keys{std::string(queue)};
        seen.insert(keys.source());
        ++count;
        for (const std::string& key : derived(keys)) {
            seen.insert(key);
            ++count;
        }
    }
    CHECK(seen.size() == count);
}

TEST_CASE("an empty name, a name under orizuru: and a brace without a hash tag are refused") {
    CHECK(refusal("").find("empty") != std::string::npos);
    for (const std::string_view queue : {"orizuru:", "orizuru:{mail}:dead", "orizuru:x{a}"}) {
        CHECK(refusal(queue).find("reserved") != std::string::npos);
    }
    for (const std::string_view queue :
         {"{", "}", "{}", "}{", "a{", "a}", "{a", "a}b", "mail{}", "{}{a}", "a{}b{c}"}) {
        const std::string text = refusal(queue);
        CHECK(text.find("hash tag {tag}") != std::string::npos);
        CHECK(text.find("'" + std::string(queue) + "'") != std::string::npos);
    }
}

} // namespace keys_test
