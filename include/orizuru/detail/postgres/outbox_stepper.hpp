// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A relay's work in the two servers: the look for queues that wait, and a queue's step.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/postgres/array.hpp>
#include <orizuru/detail/postgres/attempts.hpp>
#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/detail/postgres/failure.hpp>
#include <orizuru/detail/postgres/outbox_statements.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/detail/postgres/rights.hpp>
#include <orizuru/detail/postgres/sleep.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>
#include <orizuru/postgres/table_use.hpp>

#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Throws what is thrown by Connection; DatabaseError for all that PostgreSQL fails at.
class OutboxStepper {
  public:
    /// Connects; `batch` is the most messages of a step. Throws SchemaError when tables or rights
    /// are missing.
    OutboxStepper(Database database, Endpoint redis, int batch);

    [[nodiscard]] const Database& database() const noexcept { return m_pool.database(); }

    /// See Sleep.
    void wake();
    [[nodiscard]] bool doze(TimePoint until);
    void fall_asleep();
    [[nodiscard]] bool lapsed();
    void leave() noexcept;
    void forget() noexcept { m_sleep.forget(); }

    /// The queues that something waits for; the one with the oldest message comes first.
    std::vector<std::string> waiting();

    /// Sends a queue's next messages; returns how many, none when others have locked the queue.
    std::optional<std::uint64_t> step(const std::string& queue);

    /// After a failed step, whether it is the server that fails.
    [[nodiscard]] bool postgres_answers() { return m_pool.answers(); }
    [[nodiscard]] bool redis_answers();

  private:
    /// A relay that hangs must not hold its queue; one at work does not wait as long for Redis.
    [[nodiscard]] static std::string hang_timeout(const Endpoint& redis);
    std::uint64_t send(pqxx::work& transaction, const std::string& queue);
    std::size_t push(const std::string& queue, const pqxx::result& messages);
    template <class Use>
    auto in_database(Use use);

    int m_batch;
    Pool m_pool;
    Sleep m_sleep;
    std::string m_begin;
    Connection m_redis;
    std::string m_waiting;
    std::string m_lock;
    std::string m_next;
    std::string m_delete;
};

template <class Use>
auto OutboxStepper::in_database(Use use) {
    std::unique_ptr<Client> client;
    int backend = 0;
    try {
        client = m_pool.take();
        backend = (*client)->backendpid();
        auto result = use(**client);
        m_pool.give_back(std::move(client));
        return result;
    } catch (const pqxx::failure& error) {
        const Failure failure = failure_in(client, backend, Statements::own);
        if (failure == Failure::lost || failure == Failure::unusable) {
            m_pool.forget_idle();
        }
        throw database_error(m_pool.database(), reason_of(client, error));
    } catch (const Error&) { // of Redis
        m_pool.give_back(std::move(client));
        throw;
    }
}

inline std::string OutboxStepper::hang_timeout(const Endpoint& redis) {
    const auto timeout = std::max<std::chrono::milliseconds>(
        std::chrono::seconds(30), 2 * (redis.connect_timeout() + redis.command_timeout()));
    return "SET LOCAL idle_in_transaction_session_timeout = " + std::to_string(timeout.count()) +
           ';';
}

inline OutboxStepper::OutboxStepper(Database database, Endpoint redis, int batch)
    : m_batch(batch),
      m_pool(std::move(database)),
      m_sleep(m_pool.database().prefix(), "outbox"),
      m_begin(std::string(begin_step) + hang_timeout(redis)),
      m_redis(std::move(redis)),
      m_waiting(m_pool.sql(waiting_queues)),
      m_lock(m_pool.sql(lock_queue)),
      m_next(m_pool.sql(next_messages)),
      m_delete(m_pool.sql(delete_sent)) {
    check_tables(m_pool, TableUse::relay);
}

inline void OutboxStepper::wake() {
    in_database([this](pqxx::connection& connection) {
        m_sleep.wake(connection);
        return true;
    });
}

inline bool OutboxStepper::doze(TimePoint until) {
    return in_database(
        [&](pqxx::connection& connection) { return m_sleep.doze(connection, until); });
}

inline void OutboxStepper::fall_asleep() {
    in_database([this](pqxx::connection& connection) {
        m_sleep.fall_asleep(connection);
        return true;
    });
}

inline void OutboxStepper::leave() noexcept {
    try {
        in_database([this](pqxx::connection& connection) {
            m_sleep.leave(connection);
            return true;
        });
    } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
    }
}

inline bool OutboxStepper::lapsed() {
    return in_database([this](pqxx::connection& connection) { return m_sleep.lapsed(connection); });
}

inline std::vector<std::string> OutboxStepper::waiting() {
    return in_database([this](pqxx::connection& connection) {
        std::vector<std::string> queues;
        for (const auto& row : pqxx::nontransaction(connection).exec(m_begin + m_waiting)) {
            queues.push_back(row[0].as<std::string>());
        }
        return queues;
    });
}

inline std::optional<std::uint64_t> OutboxStepper::step(const std::string& queue) {
    return in_database([&](pqxx::connection& connection) -> std::optional<std::uint64_t> {
        pqxx::work transaction(connection);
        const bool locked =
            !transaction
                 .exec(m_begin + m_lock + transaction.quote(queue) + std::string(unless_locked))
                 .empty();
        return locked ? std::optional(send(transaction, queue)) : std::nullopt;
    });
}

inline bool OutboxStepper::redis_answers() {
    try {
        m_redis.command("the outbox", "PING");
        return true;
    } catch (const ReplyError&) { // the user may have no right to it
        return true;
    } catch (const Error&) {
        return false;
    }
}

/// None, when others have sent them in the moment before the queue was locked.
inline std::uint64_t OutboxStepper::send(pqxx::work& transaction, const std::string& queue) {
    const pqxx::result messages =
        execute(transaction, m_next, queue, m_batch, PushChunk::most_bytes);
    if (messages.empty()) {
        return 0;
    }
    const std::uint64_t pushed = push(queue, messages);
    std::vector<std::string> ids;
    std::vector<std::string> positions;
    for (const auto& message : messages) {
        ids.push_back(message[0].as<std::string>());
        if (!message[1].is_null()) {
            positions.push_back(message[1].as<std::string>());
        }
    }
    execute(transaction, m_delete, queue, to_array(ids), to_array(positions));
    transaction.commit();
    return pushed;
}

/// Those that were not deleted by hand; returns how many.
inline std::size_t OutboxStepper::push(const std::string& queue, const pqxx::result& messages) {
    PushChunk chunk(queue);
    for (const auto& message : messages) {
        if (!message[2].is_null()) {
            const auto payload = [&](std::string& out) {
                out += from_hex({message[2].c_str(), message[2].size()});
                return true;
            };
            chunk.add(payload);
        }
    }
    if (!chunk.empty()) {
        const Reply reply =
            exchange(m_redis, queue, "LPUSH", [&](std::string& out) { out += chunk.command(); });
        require_type(m_redis, reply, Reply::Type::integer, "LPUSH");
    }
    return chunk.size();
}

} // namespace orizuru::detail
