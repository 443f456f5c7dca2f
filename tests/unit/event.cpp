// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/event.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string_view>

namespace event_test {

TEST_CASE("each kind of event has a name of its own") {
    using orizuru::EventKind;
    std::set<std::string_view> names;
    int kinds = 0;
    for (const EventKind kind :
         {EventKind::disconnected, EventKind::reconnected, EventKind::lease_lost,
          EventKind::redelivered, EventKind::decode_failed, EventKind::late_settlement,
          EventKind::settlement_refused, EventKind::not_noeviction, EventKind::buried,
          EventKind::collect_failed, EventKind::slot_migrating, EventKind::sweep_refused}) {
        names.insert(to_string(kind));
        ++kinds;
    }
    CHECK(static_cast<int>(names.size()) == kinds);
    CHECK_FALSE(names.contains("unknown"));
    CHECK(to_string(EventKind::lease_lost) == "lease_lost");
}

} // namespace event_test
