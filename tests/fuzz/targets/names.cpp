// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Any text as an address and any two as queues' names: an address says what it was made of and
// hides its password, the keys of a queue lead back to it and are in its hash slot, and two queues
// share none.
//
// input: two texts, parted by a line's end; both together are an address.

#include "input.hpp"
#include "target.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace names_target {

using orizuru::Endpoint;
using orizuru::Keys;
using orizuru::test::check;
using orizuru::test::Input;

const std::string id = "label:host:17:0123456789abcdef";

std::string percent_encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'%', "0123456789abcdef"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
    }
    return out;
}

/// An address that says the same in another way.
std::string rewritten(const Endpoint& endpoint) {
    std::string uri = endpoint.path().empty() ? "redis://" : "unix://";
    if (endpoint.password()) {
        uri += percent_encoded(endpoint.user()) + ":" + percent_encoded(*endpoint.password()) + "@";
    }
    uri += endpoint.path().empty()
               ? percent_encoded(endpoint.host()) + ":" + std::to_string(endpoint.port()) + "/" +
                     std::to_string(endpoint.db()) + "?"
               : "/" + percent_encoded(endpoint.path().substr(1)) +
                     "?db=" + std::to_string(endpoint.db()) + "&";
    return uri + "connect_timeout=" + std::to_string(endpoint.connect_timeout().count()) +
           "&client_name=" + percent_encoded(endpoint.client_name()) +
           "&command_timeout=" + std::to_string(endpoint.command_timeout().count());
}

bool equal(const Endpoint& a, const Endpoint& b) {
    return a.path() == b.path() && a.host() == b.host() && a.port() == b.port() &&
           a.db() == b.db() && a.user() == b.user() && a.password() == b.password() &&
           a.client_name() == b.client_name() && a.connect_timeout() == b.connect_timeout() &&
           a.command_timeout() == b.command_timeout() && a.address() == b.address();
}

/// What stands before the last '@', where credentials do.
void check_hidden(std::string_view uri, std::string_view message) {
    constexpr std::size_t hardly_by_chance = 6;
    constexpr std::string_view around = "Redis address '";
    check(message.starts_with(around), "an error names the address");
    const auto at = uri.rfind('@');
    const auto scheme = uri.find("://");
    const auto begin = scheme < at ? scheme + 3 : 0;
    if (at == std::string_view::npos || at - begin < hardly_by_chance) {
        return;
    }
    const std::string_view secret = uri.substr(begin, at - begin);
    std::string_view shown = message.substr(around.size());
    shown = shown.substr(0, shown.find("': "));
    shown.remove_prefix(std::min(shown.size(), shown.find("://") + 3));
    check(uri.find(secret, at) != std::string_view::npos ||
              shown.find(secret) == std::string_view::npos,
          "an error hides the password");
}

void parse_address(std::string_view uri) {
    try {
        const Endpoint endpoint(uri);
        check(endpoint.path().empty() != endpoint.host().empty(), "a path or a host");
        check(endpoint.path().size() < 108, "a path that fits a socket's address");
        check(endpoint.port() > 0 && endpoint.port() < 65536 && endpoint.db() >= 0,
              "numbers that can be");
        check(endpoint.connect_timeout().count() > 0 && endpoint.command_timeout().count() > 0,
              "times that pass");
        check(equal(Endpoint(rewritten(endpoint)), endpoint), "the same, written otherwise");
    } catch (const std::invalid_argument& error) {
        check_hidden(uri, error.what());
    }
}

std::optional<Keys> keys_of(std::string_view queue) {
    try {
        return Keys(std::string(queue));
    } catch (const std::invalid_argument&) {
        return std::nullopt;
    }
}

/// What of a key decides its slot in a Redis Cluster.
std::string_view hash_tag(std::string_view key) {
    const auto open = key.find('{');
    const auto close = open == std::string_view::npos ? open : key.find('}', open);
    return close == std::string_view::npos || close == open + 1
               ? key
               : key.substr(open + 1, close - open - 1);
}

/// The queue that a key "orizuru:..." is of.
std::string_view queue_of(std::string_view key) {
    key.remove_prefix(std::string_view("orizuru:{").size());
    key.remove_suffix(std::string_view(":unack").size());
    const std::string_view tag = key.substr(0, key.find('}'));
    return tag.size() + 1 == key.size() ? tag : key.substr(tag.size() + 2);
}

std::vector<std::string> all_keys(const Keys& keys) {
    return {keys.source(),   keys.consumers(),     keys.writes(),      keys.unack(),
            keys.dead(),     keys.recoveries(),    keys.heartbeat(id), keys.processing(id),
            keys.suspects(), keys.suspects_asked()};
}

void check_keys(const Keys& keys) {
    for (const std::string& key : all_keys(keys)) {
        check(hash_tag(key) == hash_tag(keys.source()), "one hash slot for all");
    }
    check(queue_of(keys.unack()) == keys.source(), "a key leads back to its queue");
}

void check_apart(const Keys& keys, const Keys& others) {
    for (const std::string& key : all_keys(keys)) {
        check(std::ranges::count(all_keys(others), key) == 0, "queues share no key");
    }
    // A collector looks for lists under this prefix; whose they are, their id's shape must tell.
    const std::string prefix = keys.processing("");
    for (const std::string& key : all_keys(others)) {
        check(!key.starts_with(prefix) || !orizuru::detail::is_id(key.substr(prefix.size())),
              "no queue takes another's list for that of a consumer");
    }
}

const orizuru::test::Target target("names", [](Input input) {
    const std::string_view text = input.rest();
    parse_address(text);
    const auto end = std::min(text.find('\n'), text.size());
    const auto first = keys_of(text.substr(0, end));
    const auto second = keys_of(text.substr(std::min(end + 1, text.size())));
    if (first) {
        check_keys(*first);
    }
    if (second) {
        check_keys(*second);
    }
    if (first && second && first->source() != second->source()) {
        check_apart(*first, *second);
        check_apart(*second, *first);
    }
});

} // namespace names_target
