// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Impossible input is refused by name, before a message is touched, and no password is shown.

#include "integration/postgres/postgres_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/inbox.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/outbox.hpp>

#include <doctest/doctest.h>
#include <pqxx/pqxx>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace postgres_bad_input_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;

TEST_CASE("a connection string that cannot be read is refused, and not repeated") {
    for (const std::string& text :
         {std::string("host=/tmp passwrd=secret"), std::string("postgresql://u:secret@[h"),
          std::string("password='secret"), std::string("dbname=a\0secret", 15),
          std::string("dbname=postgresql://u:secret@h/db"), std::string("host=a://secret")}) {
        CAPTURE(text);
        const std::string message =
            message_of<std::invalid_argument>([&] { const Database database(text); });
        CHECK(contains(message, "PostgreSQL"));
        CHECK_FALSE(contains(message, "secret"));
    }
}

TEST_CASE("a password that a URI takes for another part is refused, and not repeated") {
    for (const std::string& text :
         {std::string("postgresql://bob:c2Vj/cmV0@db1/bank"),
          std::string("postgres://bob:5432/cmV0@db1/bank"),
          std::string("postgresql://bob:se@cmV0@db1/bank"),
          std::string("postgresql://bob:se@cmV0:c2Vj@db1/bank"),
          std::string("postgresql://bob:se@c2Vj/cmV0@db1/bank"),
          std::string("postgresql://bob:1,c2Vj/cmV0@db1/bank"), std::string("host=db1,bob@cmV0"),
          std::string("host=db1 port=c2Vj"), std::string("dbname='user=bob password=cmV0'")}) {
        CAPTURE(text);
        const std::string message =
            message_of<std::invalid_argument>([&] { const Database database(text); });
        CHECK(contains(message, "PostgreSQL"));
        CHECK(contains(message, "percent-encoded"));
        CHECK_FALSE(contains(message, "c2Vj"));
        CHECK_FALSE(contains(message, "cmV0"));
    }
    CHECK(Database("postgresql://bob:c2Vj%2FcmV0%40@db1:1,db2:2/bank").address() ==
          "PostgreSQL user=bob dbname=bank host=db1,db2 port=1,2");
}

TEST_CASE("an abstract socket is a host, and a name with an at sign is a user and a database") {
    CHECK(Database("host=@socket,@other port=,5433").address() ==
          "PostgreSQL host=@socket,@other port=,5433");
    CHECK(Database("postgresql://%40socket/bank").address() ==
          "PostgreSQL dbname=bank host=@socket");
    const Database tenant("host=db1 user=bob@tenant dbname=bank@tenant");
    CHECK(contains(tenant.conninfo(), "user='bob@tenant'"));
    CHECK(contains(tenant.conninfo(), "dbname='bank@tenant'"));
}

TEST_CASE("an address leaves out the parts that may have a password") {
    CHECK(Database("host=db1 user='bob password=secret'").address() == "PostgreSQL host=db1");
    CHECK(Database("host=db1 dbname=bob:secret@db2/bank").address() == "PostgreSQL host=db1");
    CHECK(Database("user=bob host='db1 password=secret'").address() == "PostgreSQL user=bob");
}

TEST_CASE("an address says where the server is, without the password") {
    CHECK(Database("postgresql://u:secret@db1:5433/bank").address() ==
          "PostgreSQL user=u dbname=bank host=db1 port=5433");
    CHECK(Database("host='/a b' password=secret").address() == "PostgreSQL host=/a b");
    CHECK(Database("").address() == "PostgreSQL");
}

TEST_CASE("a value with quotes and backslashes reaches libpq unchanged") {
    const Database database("password='a\\'b\\\\c' application_name='it\\'s'");
    CHECK(contains(database.conninfo(), "password='a\\'b\\\\c'"));
    CHECK(contains(database.conninfo(), "connect_timeout='5'"));
    CHECK(contains(Database("connect_timeout=7").conninfo(), "connect_timeout='7'"));
    pqxx::connection connection(
        Database(postgres().conninfo() + " application_name='it\\'s'").conninfo());
    CHECK(pqxx::nontransaction(connection).exec("SHOW client_encoding")[0][0].as<std::string>() ==
          "UTF8");
    CHECK(pqxx::nontransaction(connection)
              .exec("SELECT current_setting('application_name')")[0][0]
              .as<std::string>() == "it's");
}

/// A variable of the environment, as long as it lives.
class Environment {
  public:
    Environment(const char* name, const char* value) : m_name(name) {
        ::setenv(name, value, 1); // NOLINT(concurrency-mt-unsafe)
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    ~Environment() { ::unsetenv(m_name); } // NOLINT(concurrency-mt-unsafe)

  private:
    const char* m_name;
};

TEST_CASE("of several servers the one that can be written to is taken, unless the user says "
          "otherwise") {
    const std::string read_write = "target_session_attrs='read-write'";
    CHECK(contains(Database("").conninfo(), read_write));
    CHECK(contains(Database("host=db1,db2 dbname=bank").conninfo(), read_write));
    CHECK(contains(Database("postgresql://db1,db2/bank").conninfo(), read_write));
    for (const char* own : {"host=db1,db2 target_session_attrs=any",
                            "postgresql://db1,db2/bank?target_session_attrs=any"}) {
        CAPTURE(own);
        const Database chosen(own);
        CHECK(contains(chosen.conninfo(), "target_session_attrs='any'"));
        CHECK_FALSE(contains(chosen.conninfo(), read_write));
    }
    {
        const Environment attributes("PGTARGETSESSIONATTRS", "any");
        const Environment timeout("PGCONNECT_TIMEOUT", "7");
        CHECK_FALSE(contains(Database("host=db1").conninfo(), "target_session_attrs"));
        CHECK_FALSE(contains(Database("host=db1").conninfo(), "connect_timeout"));
        CHECK(contains(Database("target_session_attrs=read-write").conninfo(), read_write));
    }
    CHECK(contains(Database("host=db1").conninfo(), read_write));
    // libpq reads the file of services for what nobody else says.
    CHECK_FALSE(contains(Database("service=bank").conninfo(), "target_session_attrs"));
    CHECK(
        contains(Database("service=bank target_session_attrs=read-write").conninfo(), read_write));
    {
        const Environment service("PGSERVICE", "bank");
        CHECK_FALSE(contains(Database("host=db1").conninfo(), "target_session_attrs"));
    }
}

TEST_CASE("an encoding in which an id might be another text is refused") {
    CHECK(contains(message_of<std::invalid_argument>(
                       [] { const Database database("client_encoding=LATIN1"); }),
                   "client_encoding"));
    CHECK_NOTHROW(Database("client_encoding=utf8"));
}

TEST_CASE("a prefix that would need quotes is refused") {
    for (const char* prefix :
         {"", "1a", "A", "a-b", "a.b", "a b", "a\"b", "abcdefghijklmnopqrstuvwxyzabcde"}) {
        CAPTURE(prefix);
        CHECK(contains(message_of<std::invalid_argument>(
                           [&] { const Database database("", {.prefix = prefix}); }),
                       "prefix"));
    }
    CHECK_THROWS_AS(Database("", {.patience = -1ms}), std::invalid_argument);
    CHECK_THROWS_AS(Database("", {.patience = 25h}), std::invalid_argument);
}

TEST_CASE("an unreachable server is named, at once") {
    const Database nowhere("host=/tmp/orizuru-nowhere password=secret");
    const auto passed = time_of([&] {
        const std::string message = message_of<DatabaseError>([&] { Inbox(nowhere, "s"); });
        CHECK(contains(message, "host=/tmp/orizuru-nowhere"));
        CHECK_FALSE(contains(message, "\n"));
        CHECK_FALSE(contains(message, "secret"));
    });
    CHECK(passed < 5s);
}

TEST_CASE_FIXTURE(PostgresFixture, "impossible scopes, ids and times are refused") {
    CHECK_THROWS_AS(Inbox(database, ""), std::invalid_argument);
    CHECK_THROWS_AS(Inbox(database, std::string(513, 's')), std::invalid_argument);
    CHECK_THROWS_AS(Inbox(database, std::string("a\0b", 3)), std::invalid_argument);
    CHECK_THROWS_AS(Inbox(database, "s", {.wait = -1ms}), std::invalid_argument);
    CHECK_THROWS_AS(Inbox(database, "s", {.wait = 25h}), std::invalid_argument);

    Inbox inbox(database, "s");
    const auto run = [&](const std::string& id) {
        static_cast<void>(inbox.run(id, [](pqxx::work&) { FAIL("was called"); }));
    };
    for (const std::string& id :
         {std::string(), std::string(513, 'a'), std::string("a\0b", 3), std::string("\xff")}) {
        CAPTURE(id);
        CHECK_THROWS_AS(run(id), std::invalid_argument);
    }
    CHECK(inbox.run(std::string(512, 'a'), [](pqxx::work&) {}) == InboxOutcome::ran);
    CHECK(number("SELECT count(*) FROM orizuru_inbox") == 1);
}

TEST_CASE_FIXTURE(PostgresFixture, "queues and payloads that PostgreSQL cannot keep are refused") {
    for (const std::string& queue :
         {std::string(513, 'q'), std::string("a\0b", 3), std::string("\xff"), std::string("a{")}) {
        CAPTURE(queue);
        CHECK_THROWS_AS(Ledger<Raw>(database, queue), std::invalid_argument);
        CHECK_THROWS_AS(Outbox<Raw>{queue}, std::invalid_argument);
    }
    CHECK_NOTHROW(Ledger<Raw>(database, std::string(512, 'q')));
    for (const std::int64_t bytes : {std::int64_t{0}, (std::int64_t{256} << 20) + 1}) {
        CHECK_THROWS_AS(Ledger<Raw>(database, "q", {.max_payload = bytes}), std::invalid_argument);
        CHECK_THROWS_AS(Outbox<Raw>("q", {.max_payload = bytes}), std::invalid_argument);
    }
}

TEST_CASE("a message stays held when its id is impossible, and when the tables are missing") {
    QueueFixture queue;
    PostgresFixture postgres;
    queue.push({"a"});
    Consumer<Raw> consumer(queue.uri, "q");
    auto guard = consumer.next(patience);
    REQUIRE(guard);
    Inbox inbox(postgres.database, "s");
    const auto process = [&](const std::string& id) {
        inbox.process(*guard, id, [](pqxx::work&, const Raw&) { FAIL("was called"); });
    };
    CHECK_THROWS_AS(process(""), std::invalid_argument);
    postgres.sql("DROP TABLE orizuru_inbox");
    CHECK_THROWS_AS(process("a"), DatabaseError);
    CHECK_FALSE(guard->settled());
    CHECK(queue.held().size() == 1);
}

} // namespace postgres_bad_input_test
