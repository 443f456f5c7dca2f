// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A proxy in front of the tests' PostgreSQL server, and sessions that it ends at each point.

#pragma once

#include "integration/postgres/postgres_fixture.hpp"
#include "support/proxy.hpp"

#include <orizuru/postgres/database.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace orizuru::test {

struct PostgresProxy {
    PostgresProxy() { REQUIRE(::symlink(proxy.socket_path().c_str(), link.c_str()) == 0); }

    /// The same database by way of the proxy; `more` is added to the connection string.
    [[nodiscard]] Database to(const Database& database, const std::string& more = {}) const {
        return {database.conninfo() + ' ' + more + " host=" + folder.path()};
    }
    [[nodiscard]] std::size_t last_session() const { return proxy.accepted() - 1; }
    /// Ends the session opened last when this many more bytes have passed.
    void cut_last(Relay::Direction direction, std::uint64_t bytes) {
        proxy.cut_after(direction, proxy.bytes(last_session(), direction) + bytes, Relay::Cut::fin,
                        last_session());
    }

    TempDir folder;
    std::string link = folder.path() + "/.s.PGSQL.5432";
    Proxy proxy{postgres().socket_path()};
};

/// Calls `act(open())` again and again. What `open()` returns has opened one session, which ends
/// in `act`: each time some bytes later, `step` on the way to the server, until it does not end any
/// more. Returns how often.
template <class Open, class Act>
int cut_everywhere(PostgresProxy& way, Open open, Act act, std::uint64_t step = 97) {
    constexpr std::uint64_t answer_to_commit = 17;
    int rounds = 0;
    for (const auto direction : {Relay::Direction::to_server, Relay::Direction::to_client}) {
        const bool coming = direction == Relay::Direction::to_client;
        const std::uint64_t further = coming ? std::min(step, answer_to_commit - 1) : step;
        std::uint64_t bytes = 0;
        for (bool cut = true; cut; bytes += further) {
            CAPTURE(bytes);
            auto user = open();
            const std::size_t cuts = way.proxy.cuts();
            way.cut_last(direction, bytes);
            act(*user);
            cut = way.proxy.cuts() != cuts;
            way.proxy.cancel_cuts();
            ++rounds;
        }
    }
    return rounds;
}

} // namespace orizuru::test
