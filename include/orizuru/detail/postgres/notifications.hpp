// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Waiting for a NOTIFY: on a connection of its own, as a poll that a stop and a deadline end.
//
// Listen, then look, then wait: a commit before the LISTEN sends it no NOTIFY. A NOTIFY comes when
// its transaction is committed and can be seen.

#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/postgres/database.hpp>

#include <pqxx/pqxx>

#include <poll.h>

#include <stop_token>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// One thread's at a time. After an exception it is of no more use: make another, and look.
class Notifications {
  public:
    /// Connects and listens; throws pqxx::failure within connect_timeout.
    Notifications(const Database& database, std::string_view channel) : m_client(database) {
        pqxx::nontransaction(*m_client).exec("LISTEN " + database.prefix() + std::string(channel));
    }

    /// True when there was a NOTIFY since the last call, or since it listens: at once, or when one
    /// comes. False when the time is over or a stop was requested.
    /// Throws pqxx::broken_connection when the connection is lost.
    bool wait(TimePoint until, const std::stop_token& token) {
        const Wake wake;
        const std::stop_callback wake_up(token, [&] { wake.signal(); });
        while (true) {
            // First: libpq may have read it along with something else, then the poll is silent.
            if (m_client->get_notifs() > 0) {
                return true;
            }
            if (wait_ready(m_client->sock(), POLLIN, &wake, until) == 0) {
                return false;
            }
        }
    }

    /// Reads all that comes until then, at least what has come. What a session that listens leaves
    /// unread stays in the server's one queue for all databases, and when that is full no
    /// transaction with a NOTIFY can be committed.
    void drain(TimePoint until, const std::stop_token& token) {
        while (!token.stop_requested() && wait(until, token)) {
        }
    }

  private:
    Client m_client;
};

} // namespace orizuru::detail
