// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The connections that the objects of one Database share.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/ledger.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <deque>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace shared_connections_test {

using namespace orizuru;
using namespace orizuru::test;

struct Shared : LedgerFixture {
    Database own{database.conninfo() + " application_name=shared"};

    int sessions() {
        return number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shared'");
    }
    std::string all_sessions() {
        return text("SELECT string_agg(pid::text, ',' ORDER BY pid) FROM pg_stat_activity "
                    "WHERE application_name = 'shared'");
    }
};

TEST_CASE_FIXTURE(Shared, "the ledgers of a Database have one connection for one thread, its "
                          "inboxes another, and none is left when they are gone") {
    {
        std::deque<Ledger<int>> ledgers;
        std::deque<Inbox> inboxes;
        for (int i = 0; i < 5; ++i) {
            ledgers.emplace_back(own, "q" + std::to_string(i));
            inboxes.emplace_back(own, "scope" + std::to_string(i));
        }
        for (auto& ledger : ledgers) {
            ledger.submit(1);
        }
        for (Inbox& inbox : inboxes) {
            CHECK(inbox.run("a", nothing) == InboxOutcome::ran);
        }
        CHECK(sessions() == 2);
        const Database copy = own;
        Ledger<int> another(copy, "q");
        another.submit(1);
        CHECK(sessions() == 2);
        Ledger<int> foreign(Database(own.conninfo()), "q");
        CHECK(sessions() == 3);
    }
    CHECK(eventually([this] { return sessions() == 0; }));
}

TEST_CASE_FIXTURE(Shared, "as many connections are there as threads are at work at once") {
    constexpr int threads = 4;
    std::deque<Ledger<int>> ledgers;
    std::vector<std::string> ids;
    for (int i = 0; i < threads; ++i) {
        ids.push_back(ledgers.emplace_back(own, "q" + std::to_string(i)).submit(i));
    }
    std::latch all(threads);
    {
        std::vector<std::jthread> running;
        for (int i = 0; i < threads; ++i) {
            running.emplace_back([&, i] {
                ledgers[static_cast<std::size_t>(i)].run(
                    ids[static_cast<std::size_t>(i)], [&](pqxx::work& tx) {
                        effect(ids[static_cast<std::size_t>(i)])(tx);
                        all.arrive_and_wait();
                    });
            });
        }
    }
    CHECK(sessions() <= 2 * threads); // a ledger with a run renews its lease on another one
    CHECK(number("SELECT count(*) FROM effects") == threads);
}

TEST_CASE_FIXTURE(Shared, "a session that was ended while it was idle is replaced for all") {
    Ledger<int> one(own, "q1");
    Ledger<int> other(own, "q2");
    one.submit(1);
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'shared'");
    CHECK(eventually([this] { return sessions() == 0; }));
    other.submit(1);
    one.submit(1);
    CHECK(sessions() == 1);
    CHECK(number("SELECT count(*) FROM orizuru_ledger") == 3);
}

TEST_CASE_FIXTURE(Shared, "a forked child has connections of its own, and leaves its parent's") {
    Ledger<int> ledger(own, "q");
    ledger.submit(1);
    const std::string before = all_sessions();
    CHECK(status_of_child([this] {
              Ledger<int> first(own, "q"); // of the Database that the parent has made
              Ledger<int> second(own, "q2");
              first.submit(2);
              second.submit(2);
              return as_expected;
          }) == as_expected);
    CHECK(eventually([&] { return all_sessions() == before; }));
    ledger.submit(3);
    CHECK(number("SELECT count(*) FROM orizuru_ledger") == 4);
}

} // namespace shared_connections_test
