// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Why a server has ended a session. libpqxx does not tell: of a statement's results it sees the
// last one only, which says that the connection is closed. The one before has the server's words,
// and libpq shows each to an event procedure.

#include <orizuru/detail/postgres/libpq_handle.hpp>

#include <libpq-fe.h>
#include <pqxx/pqxx>

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include <libpq-events.h>

namespace orizuru::detail {

/// The server's words from the end of the session; empty until then.
struct LastWords {
    std::string state; ///< SQLSTATE
    std::string text;

    /// Notes what the server says from now on; throws std::bad_alloc. Must outlive the connection.
    void listen_to(const pqxx::connection& connection);

    /// The server ends a session that waits for too long within a transaction (25P03), or whose
    /// transaction takes too long (25P04).
    [[nodiscard]] bool tell_of_timeout() const noexcept {
        return state == "25P03" || state == "25P04";
    }
};

/// A PGEventProc; `words` are LastWords.
inline int note_last_words(PGEventId event, void* info, void* words) {
    if (event != PGEVT_RESULTCREATE) {
        return 1;
    }
    const PGresult* const result = static_cast<PGEventResultCreate*>(info)->result;
    const auto field = [&](int code) {
        const char* const value = ::PQresultErrorField(result, code);
        return std::string_view(value == nullptr ? "" : value);
    };
    if (::PQresultStatus(result) == PGRES_FATAL_ERROR &&
        (field(PG_DIAG_SEVERITY_NONLOCALIZED) == "FATAL" ||
         field(PG_DIAG_SEVERITY_NONLOCALIZED) == "PANIC")) {
        try {
            static_cast<LastWords*>(words)->text = field(PG_DIAG_MESSAGE_PRIMARY);
            static_cast<LastWords*>(words)->state = field(PG_DIAG_SQLSTATE);
        } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
            // No memory: then nothing is known, as without this.
        }
    }
    return 1;
}

inline void LastWords::listen_to(const pqxx::connection& connection) {
    if (::PQregisterEventProc(handle_of(connection), note_last_words, "orizuru", this) == 0) {
        throw std::bad_alloc();
    }
}

} // namespace orizuru::detail
