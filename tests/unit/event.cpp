// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/stderr_pipe.hpp"

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector_options.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace event_test {

#ifdef SOURCE_ROOT
const std::string source_root = SOURCE_ROOT;
#else
const std::string source_root = ".";
#endif

TEST_CASE("each kind of event has a name of its own, which the page of the core lists") {
    using orizuru::EventKind;
    std::ifstream file(source_root + "/examples/core.md");
    const std::string page{std::istreambuf_iterator<char>(file), {}};
    std::set<std::string_view> names;
    int kinds = 0;
    while (to_string(static_cast<EventKind>(kinds)) != "unknown") {
        const std::string_view name = to_string(static_cast<EventKind>(kinds++));
        CAPTURE(name);
        names.insert(name);
        CHECK(page.find(orizuru::detail::joined({"`", name, "`"})) != std::string::npos);
    }
    CHECK(kinds > static_cast<int>(EventKind::not_collected));
    CHECK(static_cast<int>(names.size()) == kinds);
    CHECK(to_string(EventKind::lease_lost) == "lease_lost");
}

TEST_CASE("a consumer and a collector write a line for an event by default, but none for what "
          "concerns nobody") {
    using orizuru::Event;
    using orizuru::EventKind;
    const auto written = [](const Event& event) {
        const orizuru::test::ShortPipe pipe;
        const orizuru::test::StderrInto here(pipe);
        orizuru::ConsumerOptions().on_event(event);
        const std::string first = pipe.drain();
        orizuru::GarbageCollectorOptions().on_event(event);
        return std::pair(first, pipe.drain());
    };
    const auto [one, other] =
        written({EventKind::decode_failed, "q", "id", "no msgpack", "its bytes"});
    CHECK(one.ends_with("orizuru: decode_failed queue=q no msgpack\n"));
    CHECK(other.ends_with("orizuru: decode_failed queue=q no msgpack\n"));
    CHECK(written({EventKind::redelivered, "q", "id", "its reply was lost", "its bytes"}) ==
          std::pair<std::string, std::string>());
}

} // namespace event_test
