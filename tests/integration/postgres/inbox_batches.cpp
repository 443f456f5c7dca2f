// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Effects of many messages in one transaction of PostgreSQL, once for each id.

#include "integration/postgres/postgres_fixture.hpp"
#include "integration/postgres/postgres_proxy.hpp"

#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/inbox.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace inbox_batches_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

using Ids = std::vector<std::string>;
using Outcomes = std::vector<InboxOutcome>;
using Fresh = std::span<const std::size_t>;

constexpr auto ran = InboxOutcome::ran;
constexpr auto repeated = InboxOutcome::repeated;
constexpr auto busy = InboxOutcome::busy;
constexpr auto failed = InboxOutcome::failed;

struct BatchFixture : PostgresFixture {
    BatchFixture() { sql("CREATE TABLE effects (id text)"); }

    /// One row for each id, in one statement.
    void insert(pqxx::work& tx, const Ids& ids, Fresh fresh) {
        ++calls;
        std::string rows;
        for (const std::size_t position : fresh) {
            rows += (rows.empty() ? "(" : ", (") + tx.quote(ids[position]) + ")";
        }
        tx.exec("INSERT INTO effects VALUES " + rows);
    }
    std::vector<InboxResult> run(const Ids& ids) {
        return inbox.run_batch(ids, [&](pqxx::work& tx, Fresh fresh) { insert(tx, ids, fresh); });
    }
    static Outcomes outcomes(const std::vector<InboxResult>& results) {
        Outcomes all;
        for (const InboxResult& result : results) {
            all.push_back(result.outcome);
            CHECK((result.failure != nullptr) == (result.outcome == failed));
        }
        return all;
    }
    static std::string text_of(const std::exception_ptr& failure) {
        try {
            std::rethrow_exception(failure);
        } catch (const std::exception& error) {
            return error.what();
        }
    }
    Ids effects() {
        Ids all;
        for (const auto& row : sql("SELECT id FROM effects ORDER BY id")) {
            all.push_back(row[0].as<std::string>());
        }
        return all;
    }
    Ids marks() {
        Ids all;
        for (const auto& row : sql("SELECT id FROM orizuru_inbox ORDER BY id")) {
            all.push_back(row[0].as<std::string>());
        }
        return all;
    }

    Inbox inbox{database, "payments"};
    std::atomic<int> calls{0};
};

TEST_CASE_FIXTURE(BatchFixture, "a batch has its effects and its marks in one transaction") {
    const Ids ids{"b", "a", "quote'\"\\,{}", "\xc3\xbc"};
    std::string transaction;
    const auto results = inbox.run_batch(ids, [&](pqxx::work& tx, Fresh fresh) {
        CHECK(std::vector(fresh.begin(), fresh.end()) == std::vector<std::size_t>{0, 1, 2, 3});
        transaction = tx.exec("SELECT txid_current()")[0][0].as<std::string>();
        insert(tx, ids, fresh);
    });
    CHECK(outcomes(results) == Outcomes{ran, ran, ran, ran});
    CHECK(effects().size() == 4);
    CHECK(marks() == effects());
    CHECK(number("SELECT count(DISTINCT xmin) FROM (SELECT xmin::text FROM effects UNION ALL "
                 "SELECT xmin::text FROM orizuru_inbox) AS rows") == 1);
    CHECK(number("SELECT count(*) FROM effects WHERE xmin::text = '" + transaction + "'") == 4);
}

TEST_CASE_FIXTURE(BatchFixture,
                  "what was processed before, and the second of equal ids, is repeated") {
    CHECK(outcomes(run({"a", "c"})) == Outcomes{ran, ran});
    CHECK(outcomes(run({"b", "a", "b", "d"})) == Outcomes{ran, repeated, repeated, ran});
    CHECK(effects() == Ids{"a", "b", "c", "d"});
    CHECK(outcomes(run({"a", "b"})) == Outcomes{repeated, repeated});
    CHECK(calls == 2); // not for the last
    CHECK(inbox.run_batch({}, [](pqxx::work&, Fresh) {}).empty());
}

TEST_CASE_FIXTURE(BatchFixture,
                  "an id whose effects fail is rolled back, and the others are committed") {
    const Ids ids{"a", "bad", "c"};
    const auto results = inbox.run_batch(ids, [&](pqxx::work& tx, Fresh fresh) {
        insert(tx, ids, fresh);
        if (std::ranges::find(fresh, 1U) != fresh.end()) {
            throw std::runtime_error("no such account");
        }
    });
    CHECK(outcomes(results) == Outcomes{ran, failed, ran});
    CHECK(text_of(results[1].failure) == "no such account");
    CHECK(effects() == Ids{"a", "c"});
    CHECK(marks() == Ids{"a", "c"});
    CHECK(calls == 4);
    CHECK(outcomes(run({"bad"})) == Outcomes{ran}); // it was not marked
}

TEST_CASE_FIXTURE(BatchFixture, "an error of PostgreSQL's at COMMIT fails its id alone") {
    sql("CREATE TABLE accounts (id text PRIMARY KEY); INSERT INTO accounts VALUES ('a'), ('c');"
        "ALTER TABLE effects ADD FOREIGN KEY (id) REFERENCES accounts "
        "DEFERRABLE INITIALLY DEFERRED");
    const auto results = run({"a", "b", "c"});
    CHECK(outcomes(results) == Outcomes{ran, failed, ran});
    CHECK(text_of(results[1].failure).find("foreign key") != std::string::npos);
    CHECK(effects() == Ids{"a", "c"});
    CHECK(marks() == effects());
}

TEST_CASE_FIXTURE(BatchFixture,
                  "a swallowed failure of a statement fails the ids, and commits nothing") {
    const Ids ids{"a", "b"};
    const auto results = inbox.run_batch(ids, [&](pqxx::work& tx, Fresh fresh) {
        insert(tx, ids, fresh);
        try {
            tx.exec("SELECT 1 / 0");
        } catch (const pqxx::sql_error&) { // NOLINT(bugprone-empty-catch)
        }
    });
    CHECK(outcomes(results) == Outcomes{failed, failed});
    CHECK(text_of(results[0].failure).find("swallowed the failure") != std::string::npos);
    CHECK(effects().empty());
    CHECK(marks().empty());
}

TEST_CASE_FIXTURE(BatchFixture,
                  "an id that another transaction has is busy, and holds up no other") {
    pqxx::connection other(database.conninfo());
    pqxx::work holding(other);
    holding.exec("INSERT INTO orizuru_inbox (scope, id) VALUES ('payments', 'b')");
    Inbox impatient(database, "payments", {.wait = 50ms});
    const Ids ids{"a", "b", "c"};
    const auto results =
        impatient.run_batch(ids, [&](pqxx::work& tx, Fresh fresh) { insert(tx, ids, fresh); });
    CHECK(outcomes(results) == Outcomes{ran, busy, ran});
    CHECK(effects() == Ids{"a", "c"});
    holding.abort();
    CHECK(outcomes(run(ids)) == Outcomes{repeated, ran, repeated});
}

TEST_CASE_FIXTURE(BatchFixture, "the function's own lock_timeout is that of its session") {
    Inbox inbox_of_session({database.conninfo() + " options='-c lock_timeout=1234'"}, "payments");
    const Ids ids{"a", "b"};
    std::string seen;
    const auto results = inbox_of_session.run_batch(ids, [&](pqxx::work& tx, Fresh) {
        seen = tx.exec("SHOW lock_timeout")[0][0].as<std::string>();
    });
    CHECK(outcomes(results) == Outcomes{ran, ran});
    CHECK(seen == "1234ms");
}

TEST_CASE_FIXTURE(BatchFixture, "a batch has its effects once, wherever the connection ends") {
    PostgresProxy way;
    int run = 0;
    const int rounds = cut_everywhere(
        way, [&] { return std::make_unique<Inbox>(way.to(database), "payments"); },
        [&](Inbox& cut) {
            const std::string id = std::to_string(1000 + ++run);
            const Ids ids{id + "a", id + "b"};
            REQUIRE(outcomes(cut.run_batch(ids, [&](pqxx::work& tx, Fresh fresh) {
                        insert(tx, ids, fresh);
                    })) == Outcomes{ran, ran});
        });
    CHECK(rounds > 10);
    CHECK(effects().size() == static_cast<std::size_t>(rounds) * 2);
    CHECK(marks() == effects());
}

TEST_CASE_FIXTURE(BatchFixture, "batches of the same ids at once have each effect once") {
    constexpr int most = 200;
    Ids rising;
    for (int i = 0; i < most; ++i) {
        rising.push_back(std::to_string(1000 + i));
    }
    const Ids up = rising;
    const Ids down(up.rbegin(), up.rend());
    std::vector<std::future<int>> all;
    for (const Ids* const ids : {&up, &down, &up, &down}) {
        all.push_back(std::async(std::launch::async, [this, ids] {
            int count = 0;
            for (std::size_t at = 0; at < ids->size(); at += 20) {
                const Ids batch(ids->begin() + static_cast<std::ptrdiff_t>(at),
                                ids->begin() + static_cast<std::ptrdiff_t>(at) + 20);
                for (const InboxResult& result : run(batch)) {
                    count += result.outcome == ran ? 1 : 0;
                }
            }
            return count;
        }));
    }
    int sum = 0;
    for (auto& one : all) {
        sum += one.get();
    }
    CHECK(sum == most);
    CHECK(effects() == up);
    CHECK(marks() == up);
}

TEST_CASE_FIXTURE(BatchFixture, "an id that cannot be is refused before anything is done") {
    CHECK_THROWS_AS(run({"a", ""}), std::invalid_argument);
    CHECK_THROWS_AS(run({"a", std::string("b\0c", 3)}), std::invalid_argument);
    CHECK(marks().empty());
    CHECK(calls == 0);
}

} // namespace inbox_batches_test
