// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells if a transaction that ended by an exception can be tried again.

#include <orizuru/postgres/database.hpp>
#include <orizuru/postgres/error.hpp>

#include <pqxx/pqxx>

#include <exception>
#include <sstream>
#include <string>
#include <string_view>

namespace orizuru::detail {

enum class Failure {
    conflict, ///< another transaction was in the way: nothing has happened, try again
    waited,   ///< another transaction was in the way for as long as lock_timeout
    lost,     ///< the connection is gone; a commit may have happened
    late,     ///< the server has ended the session because the transaction took too long
    unusable, ///< the state of the transaction was wrong; the session's still is when it says so
    other     ///< trying again would not help, or it is not the database's
};

/// By SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html
[[nodiscard]] inline Failure failure_of(std::string_view state) noexcept {
    if (state == "40001" || state == "40P01") { // serialization_failure, deadlock_detected
        return Failure::conflict;
    }
    if (state == "55P03") { // lock_not_available
        return Failure::waited;
    }
    // 57P01 to 57P05: shut down, crashed, not yet started, idle for too long. 53300: too many
    // connections.
    if (state.starts_with("08") || state.starts_with("57P0") || state == "53300") {
        return Failure::lost;
    }
    // Class 25 is about the transaction's state. 25006: it is read-only. 25P02: it has failed.
    if (state.starts_with("25")) {
        return Failure::unusable;
    }
    return Failure::other;
}

/// Classifies the exception that is being handled; `backend` was the connection's backendpid(). An
/// exception about a lost connection may concern another one of the user's, and libpqxx 6 may have
/// connected again by itself.
[[nodiscard]] inline Failure failure_of_current(const pqxx::connection& connection, int backend) {
    const bool lost = !connection.is_open() || connection.backendpid() != backend;
    try {
        throw;
    } catch (const pqxx::statement_completion_unknown&) {
        return Failure::lost;
    } catch (const pqxx::transaction_rollback&) {
        return lost ? Failure::lost : Failure::conflict;
    } catch (const pqxx::sql_error& error) {
        // A server that dies mid-statement sends no SQLSTATE.
        return lost ? Failure::lost : failure_of(error.sqlstate());
    } catch (const pqxx::usage_error&) { // since libpqxx 8 a failure
        // pqxx reports this when the session ended while idle.
        return lost ? Failure::lost : Failure::other;
    } catch (const pqxx::failure&) {
        return lost ? Failure::lost : Failure::other;
    } catch (...) {
        return Failure::other;
    }
}

/// Does the same where there is no connection yet.
[[nodiscard]] inline Failure failure_to_connect() {
    try {
        throw;
    } catch (const pqxx::usage_error&) {
        return Failure::other;
    } catch (const pqxx::failure&) {
        return Failure::lost;
    } catch (...) {
        return Failure::other;
    }
}

/// Puts the text of pqxx or the server, often several lines, into one.
[[nodiscard]] inline DatabaseError database_error(const Database& database,
                                                  const std::string& reason) {
    std::string text = database.address() + ":";
    std::istringstream words(reason);
    for (std::string word; words >> word;) {
        text += ' ' + word;
    }
    DatabaseError told(text);
    return told;
}
[[nodiscard]] inline DatabaseError database_error(const Database& database,
                                                  const std::exception& error) {
    return database_error(database, std::string(error.what()));
}

} // namespace orizuru::detail
