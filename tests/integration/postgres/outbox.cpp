// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages in the user's own transactions: which are sent, and in which order.

#include "integration/postgres/outbox_fixture.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/error.hpp>
#include <orizuru/postgres/inbox.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <future>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace outbox_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(OutboxFixture, "a transaction's messages are sent when it is committed, once") {
    pqxx::work tx(postgres_connection);
    const std::string id = outbox.push(tx, "a");
    outbox.push(tx, "b");
    CHECK(relay() == 0);
    tx.commit();
    CHECK(relay() == 2);
    CHECK(sent() == Texts{"a", "b"});
    CHECK(job_of(waiting().front()).id == id);
    CHECK(is_hex(id, 32));
    CHECK(relay() == 0);
    CHECK(sent().size() == 2);
    CHECK(is_empty());
}

TEST_CASE_FIXTURE(OutboxFixture, "a transaction's messages are gone when it is rolled back") {
    {
        pqxx::work tx(postgres_connection);
        outbox.push(tx, "a");
    }
    CHECK(is_empty());
    {
        pqxx::work tx(postgres_connection);
        outbox.push(tx, "b");
        {
            pqxx::subtransaction part(tx);
            outbox.push(part, "c");
        }
        outbox.push(tx, "d");
        tx.commit();
    }
    CHECK(relay() == 2);
    CHECK(sent() == Texts{"b", "d"});
}

TEST_CASE_FIXTURE(OutboxFixture, "a job keeps the id and the time that were chosen for it") {
    Job<std::string> job = make_job<std::string>("a", 5min);
    job.id = "payment 7";
    {
        pqxx::work tx(postgres_connection);
        outbox.push(tx, job);
        outbox.push(tx, "b", 1h);
        tx.commit();
    }
    CHECK(text("SELECT id FROM orizuru_outbox ORDER BY message LIMIT 1") == "payment 7");
    relay();
    const Job<std::string> first = job_of(waiting().at(0));
    CHECK(first.id == "payment 7");
    CHECK(first.expires_at == job.expires_at);
    const Job<std::string> second = job_of(waiting().at(1));
    REQUIRE(second.expires_at);
    CHECK(*second.expires_at == second.enqueued_at + 1h);
}

TEST_CASE_FIXTURE(OutboxFixture, "a job's attributes and kind travel with it, as headers") {
    Job<std::string> job = make_job<std::string>("a");
    job.attributes = {{"tenant", "t17"}, {"traceparent", "00-1-2-01"}};
    job.kind = "charge";
    pqxx::work tx(postgres_connection);
    outbox.push(tx, job);
    tx.commit();
    CHECK(relay() == 1);
    const Job<std::string> received = job_of(waiting().at(0));
    CHECK(received.attributes == job.attributes);
    CHECK(received.kind == "charge");
}

TEST_CASE_FIXTURE(OutboxFixture, "bytes come unchanged, in a queue of any name") {
    std::string all;
    for (int byte = 0; byte < 256; ++byte) {
        all += static_cast<char>(byte);
    }
    commit(all, "q'\\ü");
    CHECK(relay() == 1);
    CHECK(sent("q'\\ü") == Texts{all});
}

TEST_CASE_FIXTURE(OutboxFixture, "a queue and an id are the same in every encoding of the client") {
    for (const std::string encoding : {"LATIN1", "SJIS", "UTF8"}) {
        CAPTURE(encoding);
        pqxx::connection connection(database.conninfo() + " client_encoding=" + encoding);
        pqxx::work tx(connection);
        Job<std::string> job = make_job<std::string>("zur Prüfung");
        job.id = "prüfen '\\";
        Outbox<std::string>("büro").push(tx, job);
        tx.commit();
        CHECK(text("SELECT id FROM orizuru_outbox") == job.id);
        CHECK(relay() == 1);
        CHECK(oldest_first("büro").size() == 1);
        redis.flushall();
    }
}

TEST_CASE_FIXTURE(OutboxFixture, "the transaction that pushed first and commits last comes last") {
    pqxx::connection other(impatient());
    pqxx::work first(postgres_connection);
    outbox.push(first, "began first");
    {
        pqxx::work second(other);
        outbox.push(second, "committed first");
        second.commit();
    }
    CHECK(relay() == 1); // it waits for no open transaction
    first.commit();
    CHECK(relay() == 1);
    CHECK(sent() == Texts{"committed first", "began first"});
}

TEST_CASE_FIXTURE(OutboxFixture,
                  "a transaction that has read the effects of another comes after it") {
    sql("CREATE TABLE effects (id text)");
    pqxx::connection other(impatient());
    pqxx::work early(postgres_connection);
    early.exec("INSERT INTO effects VALUES ('early')"); // has the lower transaction id
    outbox.push(early, "x");
    {
        pqxx::work late(other);
        late.exec("INSERT INTO effects VALUES ('late')");
        outbox.push(late, "cause");
        late.commit();
    }
    REQUIRE(early.exec("SELECT FROM effects WHERE id = 'late'").size() == 1);
    outbox.push(early, "effect");
    early.commit();
    CHECK(relay() == 3);
    CHECK(sent() == Texts{"cause", "x", "effect"});
}

TEST_CASE_FIXTURE(OutboxFixture, "with immediate constraints others wait, and the order holds") {
    commit("0");
    pqxx::work first(postgres_connection);
    first.exec("SET CONSTRAINTS ALL IMMEDIATE");
    outbox.push(first, "a");
    std::future<void> second = std::async(std::launch::async, [&] {
        pqxx::connection other(impatient());
        pqxx::work tx(other);
        outbox.push(tx, "b");
        tx.commit();
    });
    pqxx::connection watching(database.conninfo());
    CHECK(eventually([&] {
        return !pqxx::nontransaction(watching)
                    .exec("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
                    .empty();
    }));
    outbox.push(first, "c");
    first.commit();
    second.get();
    CHECK(relay() == 4);
    CHECK(sent() == Texts{"0", "a", "c", "b"});
}

TEST_CASE_FIXTURE(OutboxFixture, "serializable transactions can push") {
    commit("first of its queue");
    pqxx::connection other(impatient());
    pqxx::transaction<pqxx::serializable> one(postgres_connection);
    pqxx::transaction<pqxx::serializable> two(other);
    outbox.push(one, "one");
    outbox.push(two, "two");
    two.commit();
    one.commit();
    CHECK(relay() == 3);
    CHECK(sent() == Texts{"first of its queue", "two", "one"});
}

TEST_CASE_FIXTURE(OutboxFixture, "many messages are pushed together, and sent in their order") {
    Texts payloads;
    for (int i = 0; i < 300; ++i) {
        payloads.push_back(std::string(4000, '\\') + std::to_string(i)); // three statements
    }
    pqxx::work tx(postgres_connection);
    const auto ids = outbox.push_all(tx, payloads);
    CHECK(outbox.push_all(tx, Texts()).empty());
    CHECK(relay() == 0);
    tx.commit();
    CHECK(relay() == 300);
    CHECK((sent() == payloads));
    REQUIRE(ids.size() == 300);
    std::size_t same = 0;
    for (const std::string& bytes : waiting()) {
        same += job_of(bytes).id == ids[same] ? 1 : 0;
    }
    CHECK(same == 300);
    CHECK(is_empty());
}

struct Tree {
    std::vector<Tree> children;
    MSGPACK_DEFINE(children)
};

TEST_CASE_FIXTURE(OutboxFixture, "an unencodable message does no harm to the transaction") {
    const Outbox<std::string> small("q", {.max_payload = 200});
    pqxx::work tx(postgres_connection);
    CHECK_THROWS_AS(small.push(tx, std::string(200, 'x')), EncodeError);
    CHECK_THROWS_AS(small.push_all(tx, Texts{"a", std::string(200, 'x')}), EncodeError);
    Job<std::string> job = make_job<std::string>("a");
    for (const std::string& id : {std::string(), std::string(513, 'x'), std::string("\xff")}) {
        job.id = id;
        CHECK_THROWS_AS(outbox.push(tx, job), std::invalid_argument);
    }
    Tree deep;
    for (int i = 0; i < 33; ++i) {
        Tree parent;
        parent.children.push_back(std::move(deep));
        deep = std::move(parent);
    }
    CHECK_THROWS_AS(Outbox<Tree>("q").push(tx, deep), EncodeError); // no consumer could read it
    small.push(tx, "b");
    tx.commit();
    CHECK(relay() == 1);
    CHECK(sent() == Texts{"b"});
}

TEST_CASE("an outbox refuses what cannot be") {
    using Strings = Outbox<std::string>;
    CHECK_THROWS_AS(Strings(""), std::invalid_argument);
    CHECK_THROWS_AS(Strings("orizuru:x"), std::invalid_argument);
    CHECK_THROWS_AS(Strings(std::string("a\0b", 3)), std::invalid_argument);
    CHECK_THROWS_AS(Strings("\xff"), std::invalid_argument);
    CHECK_THROWS_AS(Strings(std::string(513, 'q')), std::invalid_argument);
    CHECK_THROWS_AS(Strings("q", {.prefix = "x; DROP"}), std::invalid_argument);
    CHECK_THROWS_AS(Strings("q", {.max_payload = 0}), std::invalid_argument);
    CHECK_THROWS_AS(Strings("q", {.max_payload = (256 << 20) + 1}), std::invalid_argument);
}

TEST_CASE("without tables, push says so") {
    pqxx::connection connection(new_database());
    pqxx::work tx(connection);
    CHECK(
        contains(message_of<pqxx::undefined_table>([&] { Outbox<std::string>("q").push(tx, "a"); }),
                 "orizuru_outbox"));
}

TEST_CASE_FIXTURE(OutboxFixture, "outboxes with other prefixes are apart") {
    const Database other(database.conninfo(), {.prefix = "other_"});
    Schema(other).apply();
    {
        pqxx::work tx(postgres_connection);
        Outbox<std::string>("q", {.prefix = "other_"}).push(tx, "a");
        tx.commit();
    }
    CHECK(relay() == 0);
    CHECK(OutboxRelay(other, uri, quiet()).relay() == 1);
    CHECK(sent() == Texts{"a"});
}

TEST_CASE_FIXTURE(OutboxFixture, "an inbox processes a message that is sent twice once") {
    sql("CREATE TABLE effects (id text)");
    commit("a");
    relay();
    push(waiting()); // as by a relay that died before its COMMIT
    Inbox inbox(database, "payments");
    Consumer<Job<std::string>> consumer(uri, "q");
    std::vector<InboxOutcome> outcomes;
    while (auto guard = consumer.next(0ms)) {
        const std::string id = (*guard)->id;
        outcomes.push_back(
            inbox.process(*guard, id, [](pqxx::work& tx, const Job<std::string>& job) {
                tx.exec("INSERT INTO effects VALUES (" + tx.quote(job.payload) + ")");
            }));
    }
    CHECK(outcomes == std::vector{InboxOutcome::ran, InboxOutcome::repeated});
    CHECK(number("SELECT count(*) FROM effects") == 1);
}

TEST_CASE_FIXTURE(OutboxFixture, "a push in order and one in none need each of the rights of "
                                 "TableUse::outbox") {
    sql("DROP ROLE IF EXISTS writer; CREATE ROLE writer LOGIN");
    const std::string grants = Schema(database).grants("writer", TableUse::outbox);
    const auto push_as_writer = [&] {
        pqxx::connection connection(database.conninfo() + " user=writer");
        pqxx::work tx(connection);
        outbox.push(tx, "a");
        Outbox<std::string>("q", {.order = OutboxOrder::none}).push(tx, "b");
        tx.commit();
    };
    CHECK_THROWS_AS(push_as_writer(), pqxx::insufficient_privilege);
    sql(grants);
    push_as_writer();
    for (const std::string& grant : table_grants(grants)) {
        CAPTURE(grant);
        sql("REVOKE" + grant.substr(5, grant.rfind(" TO ") - 5) + " FROM writer");
        CHECK_THROWS_AS(push_as_writer(), pqxx::insufficient_privilege);
        sql(grant);
    }
    CHECK(table_grants(grants).size() == 3);
    push_as_writer();
    CHECK(relay() == 4);
    sql("DROP OWNED BY writer");
}

} // namespace outbox_test
