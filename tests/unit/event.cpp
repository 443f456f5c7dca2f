// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/stderr_pipe.hpp"

#include <orizuru/consumer_options.hpp>
#include <orizuru/event.hpp>
#include <orizuru/garbage_collector_options.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace event_test {

TEST_CASE("each kind of event has a name of its own") {
    using orizuru::EventKind;
    std::set<std::string_view> names;
    int kinds = 0;
    for (const EventKind kind :
         {EventKind::disconnected, EventKind::reconnected, EventKind::lease_lost,
          EventKind::redelivered, EventKind::decode_failed, EventKind::late_settlement,
          EventKind::settlement_refused, EventKind::not_noeviction, EventKind::buried,
          EventKind::suspected, EventKind::collect_failed, EventKind::slot_migrating,
          EventKind::sweep_refused, EventKind::not_collected}) {
        names.insert(to_string(kind));
        ++kinds;
    }
    CHECK(static_cast<int>(names.size()) == kinds);
    CHECK_FALSE(names.contains("unknown"));
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
