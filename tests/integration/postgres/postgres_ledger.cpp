// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs whose canonical state is in PostgreSQL, and what workers do with them.

#include "integration/postgres/ledger_fixture.hpp"
#include "support/child.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/worker/job_context.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <unistd.h>

#include <csignal>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace postgres_ledger_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

using Outcomes = std::vector<LedgerOutcome>;

/// A ledger with one job.
struct OneJob : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};
    std::string id = ledger.submit("hello");

    LedgerEntry entry() { return ledger.find(id).value(); }
};

TEST_CASE_FIXTURE(LedgerFixture, "a job that is submitted is sent, runs once, and is completed") {
    Ledger<std::string> ledger(database, "q", options());
    const std::string id = ledger.submit("hello");
    CHECK(state(id) == "pending");
    CHECK(redis.llen("q") == 0);

    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 1);
    CHECK(redis.llen("q") == 1);
    CHECK(reconciler.reconcile().sent == 0);

    CHECK(handle_all(ledger) == Outcomes{LedgerOutcome::completed});
    CHECK(effects(id) == 1);
    CHECK(changes(id) == ">pending pending>running running>completed");
    CHECK(ids().empty());
    CHECK(count(LedgerEventKind::redis_lost) == 0);
}

TEST_CASE_FIXTURE(LedgerFixture, "the function gets the payload that was submitted, whatever its "
                                 "bytes") {
    Ledger<std::string> ledger(database, "q", options());
    std::string payload = "\"{},\\";
    for (int byte = 0; byte < 256; ++byte) {
        payload += static_cast<char>(byte);
    }
    ledger.submit(payload);
    LedgerReconciler(database, uri, reconciling()).reconcile();
    Consumer<Job<std::string>> consumer(uri, "q");
    auto guard = consumer.next(0ms);
    REQUIRE(guard);
    std::string got;
    ledger.process(*guard, [&](pqxx::work&, const std::string& text) { got = text; });
    CHECK(got == payload);
    CHECK(guard->settled());
}

TEST_CASE_FIXTURE(LedgerFixture, "a job is submitted with the user's transaction, or not at all") {
    Ledger<std::string> ledger(database, "q", options());
    std::string kept;
    std::string undone;
    {
        pqxx::work transaction(postgres_connection);
        undone = ledger.submit(transaction, "undone");
    }
    {
        pqxx::work transaction(postgres_connection);
        kept = ledger.submit(transaction, "kept");
        transaction.exec("INSERT INTO effects VALUES ('submitted')");
        transaction.commit();
    }
    CHECK_FALSE(ledger.find(undone));
    CHECK(ledger.find(kept)->state == LedgerState::pending);
    CHECK(effects("submitted") == 1);
}

TEST_CASE_FIXTURE(OneJob, "a claim does not wait for the disk, and a completion does") {
    sql("CREATE TABLE commits (state text, synchronous text);"
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO commits VALUES (NEW.state, current_setting('synchronous_commit')); "
        "RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER note AFTER UPDATE ON orizuru_ledger DEFERRABLE INITIALLY "
        "DEFERRED FOR EACH ROW EXECUTE FUNCTION note()");
    CHECK(ledger.run(id, [](pqxx::work&) {}) == LedgerOutcome::completed);
    CHECK(number("SELECT count(*) FROM commits") == 2);
    CHECK(number("SELECT count(*) FROM commits WHERE state = 'running' AND synchronous = 'off'") ==
          1);
    CHECK(number("SELECT count(*) FROM commits WHERE state = 'completed' AND synchronous = 'on'") ==
          1);
}

// As after a crash of the server.
TEST_CASE_FIXTURE(OneJob,
                  "of two runs with one token, as the first claim was forgotten, one commits") {
    const auto forget = [this] {
        sql("SET LOCAL session_replication_role = replica;" // without triggers
            "UPDATE orizuru_ledger SET state = 'pending', token = 0, attempt = 0, worker = NULL, "
            "due = NULL");
    };
    const auto effect = [this](pqxx::work& transaction) {
        transaction.exec("INSERT INTO effects VALUES (" + transaction.quote(id) + ")");
    };
    auto first = LedgerOutcome::unknown;
    auto second = LedgerOutcome::unknown;
    bool fails = false;
    SUBCASE("the second has ended before") {
        first = ledger.run(id, [&](pqxx::work& transaction) {
            effect(transaction);
            forget();
            second = ledger.run(id, effect);
        });
    }
    SUBCASE("the second is at work") {
        SUBCASE("when the first succeeds") {}
        SUBCASE("when the first fails") { fails = true; }
        std::promise<void> begun;
        std::promise<void> first_has_ended;
        std::future<void> other;
        first = ledger.run(id, [&](pqxx::work& transaction) {
            effect(transaction);
            forget();
            other = std::async(std::launch::async, [&] {
                second = ledger.run(id, [&](pqxx::work& its) {
                    effect(its);
                    begun.set_value();
                    first_has_ended.get_future().wait();
                });
            });
            begun.get_future().wait();
            if (fails) {
                throw std::runtime_error("too late");
            }
        });
        CHECK(entry().state == LedgerState::running);
        first_has_ended.set_value();
        other.get();
    }
    CHECK(first == LedgerOutcome::fenced);
    CHECK(second == LedgerOutcome::completed);
    CHECK(effects(id) == 1);
    CHECK(entry().state == LedgerState::completed);
}

TEST_CASE_FIXTURE(LedgerFixture, "many jobs are submitted together, and sent in their order") {
    Ledger<std::string> ledger(database, "q", options());
    LedgerReconciler reconciler(database, uri, reconciling());
    // Three statements: each byte is two digits.
    std::vector<std::string> payloads(5, std::string(300'000, '\''));
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        payloads[i] += std::to_string(i);
    }
    const auto ids = ledger.submit_all(payloads);
    REQUIRE(ids.size() == 5);
    CHECK(number("SELECT count(DISTINCT xmin::text) FROM orizuru_ledger") == 1);
    CHECK(reconciler.reconcile().sent == 5);
    std::vector<std::string> came;
    Consumer<Job<std::string>> consumer(uri, "q");
    while (auto guard = consumer.next(0ms)) {
        const std::string& payload = payloads.at(came.size());
        came.push_back((*guard)->id);
        ledger.process(*guard,
                       [&](pqxx::work&, const std::string& text) { CHECK((text == payload)); });
    }
    CHECK(came == ids);
    CHECK(number("SELECT count(*) FROM orizuru_ledger WHERE state = 'completed'") == 5);
    CHECK(ledger.submit_all(std::vector<std::string>()).empty());
}

TEST_CASE_FIXTURE(LedgerFixture, "many jobs are submitted with the user's transaction, or none") {
    Ledger<std::string> ledger(database, "q", options());
    const std::vector<std::string> payloads{"a", "b"};
    {
        pqxx::work transaction(postgres_connection);
        ledger.submit_all(transaction, payloads);
    }
    CHECK(number("SELECT count(*) FROM orizuru_ledger") == 0);
    {
        pqxx::work transaction(postgres_connection);
        ledger.submit_all(transaction, payloads);
        transaction.commit();
    }
    CHECK(number("SELECT count(*) FROM orizuru_ledger WHERE state = 'pending'") == 2);
    Ledger<std::string> small(database, "q", {.max_payload = 100});
    CHECK_THROWS_AS(small.submit_all(std::vector{std::string("c"), std::string(100, 'x')}),
                    EncodeError);
    CHECK(number("SELECT count(*) FROM orizuru_ledger") == 2);
}

TEST_CASE_FIXTURE(LedgerFixture, "a job is sent to its queue whatever the encoding of the client "
                                 "that submits it") {
    Ledger<std::string> ledger(database, "büro", options());
    LedgerReconciler reconciler(database, uri, reconciling());
    for (const std::string encoding : {"LATIN1", "SJIS", "UTF8"}) {
        CAPTURE(encoding);
        pqxx::connection connection(database.conninfo() + " client_encoding=" + encoding);
        pqxx::work transaction(connection);
        const std::string id = ledger.submit(transaction, "zur Prüfung");
        transaction.commit();
        CHECK(ledger.find(id)->queue == "büro");
        CHECK(reconciler.reconcile().sent == 1);
    }
    CHECK(redis.llen("büro") == 3);
}

TEST_CASE_FIXTURE(LedgerFixture, "a job that is submitted in a subtransaction is undone with it") {
    Ledger<std::string> ledger(database, "q", options());
    pqxx::work transaction(postgres_connection);
    std::string undone;
    {
        pqxx::subtransaction part(transaction, "part");
        undone = ledger.submit(part, "undone");
        part.abort();
    }
    const std::string kept = ledger.submit(transaction, "kept");
    transaction.commit();
    CHECK_FALSE(ledger.find(undone));
    CHECK(ledger.find(kept));
}

TEST_CASE_FIXTURE(OneJob, "a message that is delivered again runs nothing and is acked") {
    LedgerReconciler(database, uri, reconciling()).reconcile();
    const Texts sent = waiting();
    REQUIRE(sent.size() == 1);
    push({sent[0], sent[0]});
    CHECK(handle_all(ledger) ==
          Outcomes{LedgerOutcome::completed, LedgerOutcome::repeated, LedgerOutcome::repeated});
    CHECK(effects(id) == 1);
    CHECK(waiting().empty());
    CHECK(rejected().empty());
}

TEST_CASE_FIXTURE(OneJob, "a job that another worker runs is not run") {
    Ledger<std::string> other(database, "q", options());
    LedgerOutcome inner{};
    CHECK(ledger.run(id, [&](pqxx::work&) { inner = other.run(id, effect(id)); }) ==
          LedgerOutcome::completed);
    CHECK(inner == LedgerOutcome::elsewhere);
    CHECK(effects(id) == 0);
}

TEST_CASE_FIXTURE(OneJob, "a job that no ledger knows goes to the dead list with the reason") {
    Producer<Job<std::string>> producer(uri, "q");
    producer.push(make_job<std::string>("made elsewhere"));
    CHECK(handle_all(ledger) == Outcomes{LedgerOutcome::unknown});
    const Texts dead_letters = redis.lrange(dead);
    REQUIRE(dead_letters.size() == 1);
    CHECK(contains(dead_letters[0], "the ledger has no such job"));
}

TEST_CASE_FIXTURE(OneJob, "a job whose function throws is rolled back, and comes again when due") {
    LedgerOptions slow = options();
    slow.retry.backoff = backoff::fixed(1h);
    Ledger<std::string> patient(database, "q", slow);
    const auto half_way = [this](pqxx::work& tx) {
        effect(id)(tx);
        throw std::runtime_error("the bank is closed \xff");
    };
    CHECK(patient.run(id, half_way) == LedgerOutcome::failed);
    CHECK(effects(id) == 0);
    CHECK(entry().state == LedgerState::failed);
    CHECK(entry().error == "the bank is closed \xef\xbf\xbd");
    CHECK(entry().attempt == 1);
    CHECK(*entry().due - entry().changed_at > 59min);
    CHECK(*entry().due - entry().changed_at < 61min);
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 0);
    CHECK(patient.run(id, effect(id)) == LedgerOutcome::not_due);
    CHECK(effects(id) == 0);
}

TEST_CASE_FIXTURE(OneJob, "a job is dead when its last try fails, and its history says all") {
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    CHECK(reconciler.reconcile().retried == 1);
    CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    CHECK(ledger.run(id, fail) == LedgerOutcome::dead);
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::repeated);
    CHECK(reconciler.reconcile().retried == 0);
    CHECK(effects(id) == 0);
    CHECK(changes(id) == ">pending pending>running running>failed failed>pending pending>running "
                         "running>failed failed>running running>dead");
    const std::vector<LedgerChange> history = ledger.history(id);
    CHECK(history[2].note == "no");
    CHECK(history[2].attempt == 1);
    CHECK(history[2].who == history[1].who);
    CHECK(history[3].who.starts_with("reconciler:"));
    CHECK(history[3].note.empty());
    CHECK(history[7].note == "no");
    CHECK(history[7].attempt == 3);
    CHECK(history[7].who != history[1].who);
    CHECK(std::ranges::is_sorted(history, {}, &LedgerChange::at));
}

TEST_CASE_FIXTURE(OneJob, "a job whose function throws DoNotRetry is dead at once, and not tried "
                          "again") {
    int calls = 0;
    const auto refuse = [&](pqxx::work& tx) {
        ++calls;
        effect(id)(tx);
        throw DoNotRetry("no such account");
    };
    CHECK(ledger.run(id, refuse) == LedgerOutcome::dead);
    CHECK(ledger.run(id, refuse) == LedgerOutcome::repeated);
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(reconciler.reconcile().sent == 0);
    CHECK(calls == 1);
    CHECK(effects(id) == 0);
    CHECK(entry().error == "no such account");
    CHECK(entry().attempt == 1);
    CHECK(changes(id) == ">pending pending>running running>dead");
    CHECK(ledger.history(id).back().note == "no such account");
}

TEST_CASE_FIXTURE(OneJob, "a job that has failed for longer than it may is dead") {
    LedgerOptions hasty = options();
    hasty.retry.retry_for = 1ms;
    Ledger<std::string> limited(database, "q", hasty);
    CHECK(limited.run(id, fail) == LedgerOutcome::failed);
    std::this_thread::sleep_for(5ms);
    hasty.retry.backoff = backoff::fixed(1ms);
    CHECK(Ledger<std::string>(database, "q", hasty).run(id, fail) == LedgerOutcome::dead);
}

TEST_CASE_FIXTURE(OneJob, "a job whose backoff throws is dead with both reasons") {
    LedgerOptions broken = options();
    broken.retry.backoff = [](int, std::uint64_t) -> std::chrono::milliseconds {
        throw std::runtime_error("no table");
    };
    CHECK(Ledger<std::string>(database, "q", broken).run(id, fail) == LedgerOutcome::dead);
    CHECK(entry().error == "no; its backoff: no table");
}

TEST_CASE_FIXTURE(OneJob, "effects that PostgreSQL refuses at the COMMIT are a failure") {
    sql("CREATE TABLE parents (id int PRIMARY KEY); CREATE TABLE children "
        "(id int REFERENCES parents DEFERRABLE INITIALLY DEFERRED)");
    CHECK(ledger.run(id, [](pqxx::work& tx) { tx.exec("INSERT INTO children VALUES (1)"); }) ==
          LedgerOutcome::failed);
    CHECK(contains(entry().error, "foreign key"));
}

// The transaction is over then, whatever the function does.
TEST_CASE_FIXTURE(OneJob, "a function that swallows an error of PostgreSQL has failed") {
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        effect(id)(tx);
        CHECK_THROWS_AS(tx.exec("SELECT 1 / 0"), pqxx::sql_error);
    }) == LedgerOutcome::failed);
    CHECK(effects(id) == 0);
    CHECK(contains(entry().error, "transaction"));
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
    CHECK(effects(id) == 1);
}

// At once, or as a failed job: not every libpqxx notices that the session is gone.
TEST_CASE_FIXTURE(OneJob, "a function that loses its session and hides that is called again") {
    int calls = 0;
    const auto lose = [&](pqxx::work& tx) {
        effect(id)(tx);
        if (++calls == 1) {
            CHECK_THROWS(tx.exec("SELECT pg_terminate_backend(pg_backend_pid())"));
        }
    };
    CHECK(eventually([&] { return ledger.run(id, lose) == LedgerOutcome::completed; }));
    CHECK(calls == 2);
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(OneJob, "a function that ends its transaction has failed") {
    const std::vector<std::function<void(pqxx::work&)>> ends{
        [](pqxx::work& tx) { tx.abort(); }, [](pqxx::work& tx) { tx.commit(); },
        [](pqxx::work& tx) { tx.exec("ROLLBACK"); }, [](pqxx::work& tx) { tx.exec("COMMIT"); }};
    for (const auto& end : ends) {
        const std::string job = ledger.submit("x");
        CHECK(ledger.run(job, end) == LedgerOutcome::failed);
        CHECK(ledger.run(job, effect(job)) == LedgerOutcome::completed);
        CHECK(effects(job) == 1);
    }
}

TEST_CASE_FIXTURE(OneJob, "a ghost whose job was taken changes nothing") {
    Ledger<std::string> other(database, "q", options());
    LedgerOutcome taker{};
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        effect(id)(tx);
        end_lease(id);
        taker = other.run(id, effect("taker"));
    }) == LedgerOutcome::fenced);
    CHECK(taker == LedgerOutcome::completed);
    CHECK(effects(id) == 0);
    CHECK(effects("taker") == 1);
    CHECK(entry().attempt == 2);
    CHECK(changes(id) == ">pending pending>running running>running running>completed");
}

TEST_CASE_FIXTURE(OneJob, "a ghost does not complete the job that another worker runs now") {
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        effect(id)(tx);
        end_lease(id);
        sql("SELECT orizuru_ledger_claim('" + id + "', 'taker', 60000)");
    }) == LedgerOutcome::fenced);
    CHECK(effects(id) == 0);
    CHECK(entry().state == LedgerState::running);
    CHECK(entry().worker == "taker");
}

TEST_CASE_FIXTURE(OneJob,
                  "a ghost that fails does not fail the job that another worker has taken") {
    CHECK(ledger.run(id, [&](pqxx::work&) {
        end_lease(id);
        sql("SELECT orizuru_ledger_claim('" + id + "', 'taker', 60000)");
        throw std::runtime_error("a ghost");
    }) == LedgerOutcome::fenced);
    CHECK(entry().state == LedgerState::running);
    CHECK(entry().worker == "taker");
    CHECK(entry().error.empty());
}

TEST_CASE_FIXTURE(OneJob, "a lease that ended before another worker took the job does no harm") {
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        effect(id)(tx);
        end_lease(id);
    }) == LedgerOutcome::completed);
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(OneJob, "a ghost whose job waits for another worker is fenced") {
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        effect(id)(tx);
        end_lease(id);
        CHECK(reconciler.reconcile().lease_ended == 1);
    }) == LedgerOutcome::fenced);
    CHECK(effects(id) == 0);
    CHECK(handle_all(ledger) == Outcomes{LedgerOutcome::completed});
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(OneJob, "a ledger keeps a job however long it runs") {
    Ledger<std::string> brief(database, "q", with_lease(1200ms));
    LedgerReconciler reconciler(database, uri, reconciling());
    CHECK(brief.run(id, [&](pqxx::work& tx) {
        for (int i = 0; i < 10; ++i) {
            std::this_thread::sleep_for(250ms);
            CHECK(reconciler.reconcile().lease_ended == 0);
        }
        effect(id)(tx);
    }) == LedgerOutcome::completed);
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(OneJob, "a job that was taken is not renewed by its former holder") {
    Ledger<std::string> brief(database, "q", with_lease(150ms));
    CHECK(brief.run(id, [&](pqxx::work&) {
        const auto take = [&] {
            end_lease(id);
            return ledger.run(id, [&](pqxx::work&) {
                const auto due = entry().due;
                std::this_thread::sleep_for(400ms);
                CHECK(entry().due == due);
            });
        };
        LedgerOutcome outcome{};
        do { // until no renewal comes in between
            outcome = take();
        } while (outcome == LedgerOutcome::elsewhere);
        CHECK(outcome == LedgerOutcome::completed);
    }) == LedgerOutcome::fenced);
}

TEST_CASE_FIXTURE(OneJob, "a locked job is renewed when it is free") {
    Ledger<std::string> brief(database, "q", with_lease(150ms));
    CHECK(brief.run(id, [&](pqxx::work&) {
        const auto due = entry().due;
        {
            pqxx::work holder(postgres_connection);
            holder.exec("SELECT FROM orizuru_ledger WHERE id = '" + id + "' FOR UPDATE");
            std::this_thread::sleep_for(200ms);
        }
        CHECK(eventually([&] { return entry().due > due; }));
    }) == LedgerOutcome::completed);
}

TEST_CASE_FIXTURE(OneJob, "a ledger ends though PostgreSQL does not answer its renewal") {
    pid_t renewing = 0;
    std::optional<Ledger<std::string>> brief(std::in_place, database, "q", with_lease(600ms));
    CHECK(brief->run(id, [&](pqxx::work&) {
        // Not in the middle of a renewal, which would keep the job locked.
        const std::string query = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%unnest%' "
                                  "AND state = 'idle' "
                                  "AND pid <> pg_backend_pid() AND datname = current_database()";
        REQUIRE(eventually([&] {
            const pqxx::result idle = sql(query);
            if (idle.empty()) {
                return false;
            }
            renewing = idle[0][0].as<pid_t>();
            ::kill(renewing, SIGSTOP);
            if (!sql(query).empty()) {
                return true;
            }
            ::kill(renewing, SIGCONT);
            return false;
        }));
        std::this_thread::sleep_for(400ms);
    }) == LedgerOutcome::completed);
    CHECK(time_of([&] { brief.reset(); }) < 2s);
    ::kill(renewing, SIGCONT);
}

TEST_CASE_FIXTURE(OneJob, "transactions with conflicts are repeated") {
    int calls = 0;
    CHECK(ledger.run(id, [&](pqxx::work& tx) {
        effect(id)(tx);
        if (++calls < 3) {
            tx.exec("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$");
        }
    }) == LedgerOutcome::completed);
    CHECK(calls == 3);
    CHECK(effects(id) == 1);
    CHECK(entry().attempt == 1);
}

TEST_CASE_FIXTURE(OneJob, "another worker follows one that is killed in the middle") {
    const int status = status_of_child([&] {
        Ledger<std::string> own(database, "q", with_lease(200ms));
        own.run(id, [&](pqxx::work& tx) {
            effect(id)(tx);
            ::kill(::getpid(), SIGKILL);
        });
        return not_as_expected;
    });
    CHECK(status == -1);
    CHECK(state(id) == "running");
    LedgerReconciler reconciler(database, uri, reconciling());
    REQUIRE(eventually([&] { return reconciler.reconcile().lease_ended == 1; }));
    CHECK(handle_all(ledger) == Outcomes{LedgerOutcome::completed});
    CHECK(effects(id) == 1);
    CHECK(contains(ledger.history(id)[2].note, "the lease of worker:"));
}

TEST_CASE_FIXTURE(OneJob, "a job whose workers die in all its tries is dead") {
    LedgerReconciler reconciler(database, uri, reconciling());
    for (int attempt = 1; attempt <= 3; ++attempt) {
        sql("SELECT orizuru_ledger_claim('" + id + "', 'who dies', 0)");
        const Reconciled pass = reconciler.reconcile();
        CHECK(pass.lease_ended == (attempt < 3 ? 1 : 0));
        CHECK(pass.died == (attempt < 3 ? 0 : 1));
    }
    CHECK(entry().state == LedgerState::dead);
    CHECK(entry().error == "the lease of who dies ended");
    CHECK(count(LedgerEventKind::died) == 1);
    CHECK(handle_all(ledger) == Outcomes(2, LedgerOutcome::repeated));
}

TEST_CASE_FIXTURE(OneJob, "a message that comes behind the last lease leaves the job to the "
                          "reconciler") {
    for (int attempt = 1; attempt <= 3; ++attempt) {
        sql("SELECT orizuru_ledger_claim('" + id + "', 'dies/" + std::to_string(attempt) + "', 0)");
    }
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::elsewhere);
    CHECK(effects(id) == 0);
}

TEST_CASE_FIXTURE(OneJob, "a claim whose answer was lost is recognised as one's own") {
    const std::string claim = "SELECT * FROM orizuru_ledger_claim('" + id + "', 'w/1', 60000)";
    const auto first = sql(claim)[0];
    CHECK(first[0].as<std::string>() == "claimed");
    const auto again = sql(claim)[0];
    CHECK(again[0].as<std::string>() == "claimed");
    CHECK(again[1].as<int>() == first[1].as<int>());
    CHECK(entry().attempt == 1);
}

TEST_CASE_FIXTURE(OneJob, "a claim that waited for another worker's claim leaves the job to it") {
    const auto claim = [this](const char* worker) {
        return "SELECT verdict FROM orizuru_ledger_claim('" + id + "', '" + worker + "', 60000)";
    };
    pqxx::connection connection(database.conninfo());
    pqxx::work first(connection);
    CHECK(first.exec(claim("w/1"))[0][0].as<std::string>() == "claimed");
    auto second = std::async(std::launch::async, [&] {
        pqxx::connection other(database.conninfo());
        return pqxx::nontransaction(other).exec(claim("w/2"))[0][0].as<std::string>();
    });
    CHECK(eventually([&] {
        return number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == 1;
    }));
    first.commit();
    CHECK(second.get() == "elsewhere");
    CHECK(entry().attempt == 1);
}

TEST_CASE_FIXTURE(QueueFixture, "a message is not acked when the ledger cannot be asked") {
    PostgresServer postgres_server;
    const Database database(postgres_server.conninfo(), {.patience = 0ms});
    Schema(database).apply();
    Ledger<std::string> ledger(database, "q");
    ledger.submit("x");
    LedgerReconciler(database, uri).reconcile();
    Consumer<Job<std::string>> consumer(uri, "q");
    {
        auto guard = consumer.next(0ms);
        REQUIRE(guard);
        postgres_server.kill();
        CHECK_THROWS_AS(ledger.process(*guard, [](pqxx::work&, const std::string&) {}),
                        DatabaseError);
        CHECK_FALSE(guard->settled());
    }
    CHECK(rejected().size() == 1);
}

// The thread that renews the leases exists only in the parent.
TEST_CASE_FIXTURE(OneJob, "a ledger runs nothing in a forked child, however often it is asked to") {
    CHECK(status_of_child([this] {
              for (int i = 0; i < 3; ++i) {
                  if (!is_logic_error([&] { ledger.run(id, effect(id)); }) ||
                      !is_logic_error([&] { ledger.submit("x"); }) ||
                      !is_logic_error([&] { static_cast<void>(ledger.find(id)); })) {
                      return not_as_expected;
                  }
              }
              return as_expected;
          }) == as_expected);
    CHECK(state(id) == "pending");
    CHECK(ledger.run(id, effect(id)) == LedgerOutcome::completed);
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(OneJob, "a job that is given up is dead, but not one that runs") {
    CHECK(ledger.give_up(id, "nobody needs it"));
    CHECK(entry().state == LedgerState::dead);
    CHECK(entry().error == "nobody needs it");
    CHECK_FALSE(ledger.give_up(id, "twice"));
    const std::string running = ledger.submit("x");
    CHECK(ledger.run(running, [&](pqxx::work&) { CHECK_FALSE(ledger.give_up(running, "")); }) ==
          LedgerOutcome::completed);
    CHECK_FALSE(ledger.give_up("nobody", ""));
}

TEST_CASE_FIXTURE(OneJob, "an impossible id is refused, and an id without a job is unknown") {
    for (const std::string& bad : {std::string(), std::string(513, 'x')}) {
        CHECK_THROWS_AS(ledger.run(bad, nothing), std::invalid_argument);
        CHECK_THROWS_AS(static_cast<void>(ledger.find(bad)), std::invalid_argument);
        CHECK_THROWS_AS(static_cast<void>(ledger.history(bad)), std::invalid_argument);
        CHECK_THROWS_AS(ledger.give_up(bad, ""), std::invalid_argument);
    }
    for (const std::string& nobodys : {std::string("nobody"), std::string(512, 'x'),
                                       id + std::string(1, '\0'), std::string("\xff")}) {
        CHECK(ledger.run(nobodys, effect(id)) == LedgerOutcome::unknown);
        CHECK_FALSE(ledger.find(nobodys));
        CHECK(ledger.history(nobodys).empty());
        CHECK_FALSE(ledger.give_up(nobodys, ""));
    }
    CHECK(effects(id) == 0);
}

TEST_CASE_FIXTURE(LedgerFixture, "impossible options are refused before anything is done") {
    const auto refused = [this](const std::string& queue, LedgerOptions chosen) {
        CHECK_THROWS_AS(Ledger<std::string>(database, queue, std::move(chosen)),
                        std::invalid_argument);
    };
    refused("", options());
    refused("orizuru:x", options());
    refused("\xff", options());
    refused("q", with_lease(99ms));
    refused("q", with_lease(25h));
    refused("q", {.name = "a b"});
    refused("q", {.retry = {.max_attempts = 0}});
    refused("q", {.retry = {.retry_queue = "other"}});
    refused("q", {.retry = {.exhausted = Exhausted::discard}});
    refused("q", {.max_payload = 0});
    CHECK(number("SELECT count(*) FROM orizuru_ledger_queue") == 0);

    Ledger<std::string> small(database, "q", {.max_payload = 100});
    CHECK_THROWS_AS(small.submit(std::string(100, 'x')), EncodeError);
    using Options = std::vector<std::optional<int>>;
    Ledger<Options> many(database, "q"); // more values than a consumer reads
    CHECK_THROWS_AS(many.submit(Options(std::size_t{4} << 20)), EncodeError);
    CHECK(number("SELECT count(*) FROM orizuru_ledger") == 0);
}

TEST_CASE_FIXTURE(LedgerFixture, "without tables, rights or a server no ledger begins") {
    const Database empty(new_database());
    CHECK(contains(message_of<SchemaError>([&] { Ledger<std::string>(empty, "q"); }),
                   "do not exist"));
    CHECK(contains(message_of<SchemaError>([&] { LedgerReconciler(empty, uri); }), "do not exist"));
    const Database nowhere("host=/nonexistent");
    CHECK_THROWS_AS(Ledger<std::string>(nowhere, "q"), DatabaseError);
    CHECK_THROWS_AS(LedgerReconciler(nowhere, uri), DatabaseError);
}

TEST_CASE_FIXTURE(LedgerFixture,
                  "a run takes longer than its lease, whatever the database's default "
                  "isolation is") {
    for (const std::string level : {"repeatable\\\\ read", "serializable"}) {
        CAPTURE(level);
        Ledger<std::string> brief(Database(database.conninfo() +
                                           " options='-c default_transaction_isolation=" + level +
                                           "'"),
                                  "q", with_lease(1500ms));
        const std::string id = brief.submit("x");
        int calls = 0;
        CHECK(brief.run(id, [&](pqxx::work& tx) {
            ++calls;
            effect(id)(tx);
            std::this_thread::sleep_for(2s);
        }) == LedgerOutcome::completed);
        CHECK(calls == 1);
        CHECK(effects(id) == 1);
    }
}

TEST_CASE_FIXTURE(OneJob, "a table that refers to the job keeps neither others waiting nor the "
                          "lease from being renewed") {
    sql("CREATE TABLE receipts (job text REFERENCES orizuru_ledger (id))");
    Ledger<std::string> brief(database, "q", with_lease(1500ms));
    Ledger<std::string> hasty(Database(database.conninfo() + " options='-c lock_timeout=100'"), "q",
                              options());
    CHECK(brief.run(id, [&](pqxx::work& tx) {
        const auto due = entry().due;
        tx.exec("INSERT INTO receipts VALUES ('" + id + "')");
        CHECK(hasty.run(id, nothing) == LedgerOutcome::elsewhere);
        CHECK(eventually([&] { return entry().due > due; }));
    }) == LedgerOutcome::completed);
}

TEST_CASE_FIXTURE(OneJob, "PostgreSQL ends the session of a run that hangs with the job locked") {
    sql("CREATE TABLE timeouts (value text);"
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO timeouts "
        "VALUES (current_setting('idle_in_transaction_session_timeout')); RETURN NULL; END $$;"
        "CREATE TRIGGER note AFTER UPDATE ON orizuru_ledger FOR EACH ROW "
        "WHEN (NEW.state IN ('failed', 'completed')) EXECUTE FUNCTION note()");
    CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    CHECK(LedgerReconciler(database, uri, reconciling()).reconcile().retried == 1);
    Ledger<std::string> brief(database, "q", with_lease(100ms));
    CHECK(brief.run(id, nothing) == LedgerOutcome::completed);
    CHECK(text("SELECT string_agg(value, ' ') FROM timeouts") == "1min 5s");
}

TEST_CASE("PostgreSQL watches a worker's host as the worker watches PostgreSQL") {
    // Not the address of a server of the machine.
    const std::string host = "127.0.0.77";
    PostgresServer server({"listen_addresses=" + host});
    const Database database("host=" + host + " dbname=postgres user=orizuru");
    detail::Client client(database);
    pqxx::nontransaction look(*client);
    CHECK(look.exec("SHOW tcp_keepalives_idle")[0][0].as<int>() == 15);
    CHECK(look.exec("SHOW tcp_keepalives_interval")[0][0].as<int>() == 5);
    CHECK(look.exec("SHOW tcp_keepalives_count")[0][0].as<int>() == 3);
    CHECK(look.exec("SHOW tcp_user_timeout")[0][0].as<int>() == 30'000);
}

} // namespace postgres_ledger_test
