// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A transaction, tried again while others are in its way or the server is away.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/detail/postgres/failure.hpp>
#include <orizuru/detail/postgres/pool.hpp>
#include <orizuru/postgres/error.hpp>

#include <pqxx/pqxx>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace orizuru::detail {

/// Tells if a transaction has statements of the user's.
enum class Statements : std::uint8_t { own, users };

/// Classifies the exception that is being handled. It came from a transaction that is over, or from
/// the attempt to connect, without a client. If a user's statement may have made the session
/// unusable, asks the server whether it can be written to.
[[nodiscard]] inline Failure failure_in(const std::unique_ptr<Client>& client, int backend,
                                        Statements statements) {
    if (!client) {
        return failure_to_connect();
    }
    const Failure failure = failure_of_current(**client, backend);
    if (failure == Failure::unusable) {
        // By the time that it is asked, the server may be writable again.
        const bool by_server = statements == Statements::own || client->said_read_only();
        return by_server || !client->can_write() ? failure : Failure::other;
    }
    return failure == Failure::lost && client->last_words().tell_of_timeout() ? Failure::late
                                                                              : failure;
}

/// Returns the server's words from the end of the session; without them, the text of `error`.
[[nodiscard]] inline std::string reason_of(const std::unique_ptr<Client>& client,
                                           const std::exception& error) {
    return client && !client->last_words().text.empty() ? client->last_words().text : error.what();
}

/// Calls `transact(connection)` until it returns, and returns what it has. It has to be one
/// transaction that can be repeated even when a commit may have happened.
/// A server that can only be read is taken for one that is away.
/// Throws DatabaseError when the server was away for Database::patience(), which begins when a
/// connection is lost or cannot be made, or when 20 connections were lost, by what `transact` does,
/// say; pqxx::broken_connection with the server's words when it has ended two transactions because
/// they took too long. What `transact` throws for other reasons passes through, a conflict too when
/// it was met 20 times.
template <class Transact>
auto attempt(Pool& pool, Transact transact, Statements statements = Statements::users) {
    constexpr int most_conflicts = 20;
    constexpr int most_losses = 20;
    constexpr int most_late = 2;  // the first time the process may have been frozen
    std::optional<TimePoint> end; // of the patience, since the server was there last
    JitteredPauses pauses;
    for (int conflicts = 0, losses = 0, late = 0;;) {
        std::unique_ptr<Client> client;
        int backend = 0;
        try {
            client = pool.take();
            backend = (*client)->backendpid();
            auto result = transact(**client);
            pool.give_back(std::move(client));
            return result;
        } catch (const std::exception& error) {
            const Failure failure = failure_in(client, backend, statements);
            if (failure == Failure::late) {
                if (++late == most_late) {
                    throw pqxx::broken_connection(client->last_words().text);
                }
            } else if (failure == Failure::lost || failure == Failure::unusable) {
                pool.forget_idle();
                const bool was_there = client && failure == Failure::lost;
                if (was_there || !end) {
                    end = deadline_in(pool.database().patience());
                }
                losses += was_there ? 1 : 0;
                if (Clock::now() >= *end || losses == most_losses) {
                    throw database_error(pool.database(), reason_of(client, error));
                }
            } else {
                if (client && client->last_words().text.empty()) {
                    pool.give_back(std::move(client));
                }
                if (failure != Failure::conflict || ++conflicts == most_conflicts) {
                    throw;
                }
            }
        }
        std::this_thread::sleep_for(pauses.next());
    }
}

/// Does the same for a transaction in which all statements are the library's own: throws
/// DatabaseError for what pqxx says of them.
template <class Transact>
auto attempt_own(Pool& pool, Transact transact) {
    try {
        return attempt(pool, std::move(transact), Statements::own);
    } catch (const pqxx::failure& error) {
        throw database_error(pool.database(), error);
    }
}

} // namespace orizuru::detail
