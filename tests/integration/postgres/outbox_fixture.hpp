// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests of the outbox: a database and the queue `q`, read with plain commands.

#pragma once

#include "integration/postgres/postgres_fixture.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/msgpack.hpp>
#include <orizuru/postgres/outbox.hpp>
#include <orizuru/postgres/outbox_relay.hpp>

#include <pqxx/pqxx>

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace orizuru::test {

inline Job<std::string> job_of(const std::string& bytes) {
    Scratch scratch;
    return Codec<Job<std::string>>::decode(bytes, scratch);
}

struct OutboxFixture : PostgresFixture, QueueFixture {
    Outbox<std::string> outbox{"q"};

    /// Pushes in a transaction of its own; returns the id.
    std::string commit(const std::string& payload, const std::string& queue = "q") {
        pqxx::work tx(postgres_connection);
        std::string id = Outbox<std::string>(queue).push(tx, payload);
        tx.commit();
        return id;
    }
    std::uint64_t relay() { return OutboxRelay(database, uri, quiet()).relay(); }
    /// Options of a session that gives up when others block it for 3 s.
    [[nodiscard]] std::string impatient() const {
        return database.conninfo() + " options='-c lock_timeout=3000'";
    }
    static OutboxRelayOptions quiet() { return {.on_event = {}}; }

    /// The messages in the queue, the oldest first.
    Texts sent(const std::string& queue = "q") {
        Texts payloads;
        for (const std::string& bytes : oldest_first(queue)) {
            payloads.push_back(job_of(bytes).payload);
        }
        return payloads;
    }
    /// True when no message waits for a relay.
    bool is_empty() {
        return number("SELECT count(*) FROM orizuru_outbox") == 0 &&
               number("SELECT count(*) FROM orizuru_outbox_order") == 0;
    }
};

/// A relay that runs in a thread of its own.
class RunningRelay {
  public:
    RunningRelay(const Database& database, const std::string& redis, OutboxRelayOptions options)
        : m_relay(database, redis, std::move(options)),
          m_thread([this](const std::stop_token& token) { m_relay.run(token); }) {}

  private:
    OutboxRelay m_relay;
    std::jthread m_thread;
};

} // namespace orizuru::test
