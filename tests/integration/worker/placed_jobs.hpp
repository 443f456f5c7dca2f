// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests of what takes jobs out of the places of `q` in which people see them.

#pragma once

#include "integration/worker/worker_fixture.hpp"

#include <orizuru/ops/inspector.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace orizuru::test {

constexpr std::array places = {Place::waiting, Place::scheduled, Place::rejected, Place::suspected,
                               Place::dead};

struct PlacedJobs : WorkerFixture {
    Inspector inspector{uri};

    /// An entry of a dead list, as a collector writes it, which knows of neither keys nor groups.
    static std::string dead_entry(const std::string& payload) {
        return "\x94\x02" + msgpack_bin32(payload) +
               msgpack_bin32("held by 4 consumers that died") + msgpack_u64(1'764'000'000'000);
    }
    /// Moves the one job of the queue, which is this one, to another place.
    void place(const std::string& job, Place where) {
        if (where == Place::waiting) {
            return;
        }
        redis.del("q");
        switch (where) {
        case Place::scheduled:
            redis.command(
                {"ZADD", "orizuru:{q}:scheduled", "99999999999999", std::string(8, '\0') + job});
            break;
        case Place::rejected:
            redis.lpush(unack, job);
            break;
        case Place::suspected:
            redis.lpush("orizuru:{q}:suspects", job);
            break;
        case Place::dead:
            redis.lpush(dead, dead_entry(job));
            break;
        case Place::waiting:
        case Place::held:
            break;
        }
    }
    PlacedMessage only(Place where) {
        const auto found = inspector.peek("q", where, 0, 10);
        REQUIRE(found.size() == 1);
        return found[0];
    }
    /// Has a person remove the one message there, in each way that there is.
    void remove_only(Place where) {
        SUBCASE("alone") {
            const PlacedMessage message = only(where);
            CHECK(inspector.remove("q", message));
            CHECK_FALSE(inspector.remove("q", message));
        }
        SUBCASE("as one of those chosen") {
            const std::string id = only(where).job()->id;
            CHECK(inspector.remove_if(
                      "q", where,
                      [&](const PlacedMessage& message) { return message.job()->id == id; },
                      10) == 1);
        }
        SUBCASE("as one of all") { CHECK(inspector.clear("q", where) == 1); }
    }
};

} // namespace orizuru::test
