// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A connection that writes nothing to the user's stderr, and leaves that of the parent alone in a
// forked child.

#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/postgres/last_words.hpp>
#include <orizuru/detail/postgres/libpq_handle.hpp>
#include <orizuru/postgres/database.hpp>

#include <libpq-fe.h>
#include <pqxx/pqxx>

#include <poll.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// One thread's at a time. Throws std::logic_error when it is used in a forked child.
class Client {
  public:
    /// Connects; throws pqxx::failure within connect_timeout.
    explicit Client(const Database& database) {
        take_standard_descriptors();
        m_session = std::make_unique<Session>(database.conninfo());
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client() {
        if (m_fork_mark.forked()) {
            static_cast<void>(m_session.release()); // closing it would end the parent's session
        }
    }

    [[nodiscard]] pqxx::connection& operator*() {
        if (m_fork_mark.forked()) {
            throw std::logic_error("a connection to PostgreSQL is used in a forked child");
        }
        return m_session->connection;
    }
    [[nodiscard]] pqxx::connection* operator->() { return &**this; }
    /// Why the server has ended the session.
    [[nodiscard]] const LastWords& last_words() const noexcept { return m_session->last_words; }
    /// True when a transaction can begin in it, and write: the server is no standby, nobody has
    /// made it read-only, and no transaction is left open. One statement, in no transaction.
    [[nodiscard]] bool can_write() {
        try {
            return pqxx::nontransaction(**this)
                       .exec("SELECT current_setting('transaction_read_only')")[0][0]
                       .as<std::string>() == "off";
        } catch (const pqxx::failure&) {
            return false;
        }
    }
    /// True when the server has said, with its answer to a statement, that it can only be read.
    /// Such a session must not be kept by those who only read, either: what is written meanwhile is
    /// written at another server. A server says so since version 14.
    [[nodiscard]] bool said_read_only() noexcept {
        const auto is_on = [this](const char* setting) {
            const char* const value =
                ::PQparameterStatus(handle_of(m_session->connection), setting);
            return value != nullptr && std::string_view(value) == "on";
        };
        return is_on("default_transaction_read_only") || is_on("in_hot_standby");
    }
    /// True if nothing is to be read. When no statement runs, the server only sends something to
    /// end the session.
    [[nodiscard]] bool is_silent() {
        pollfd socket{(*this)->sock(), POLLIN, 0};
        return ::poll(&socket, 1, 0) == 0;
    }

  private:
    struct Session {
        explicit Session(const std::string& conninfo) : connection(conninfo) {
            last_words.listen_to(connection);
            // The server hears nothing when a client's host is gone, and by its own defaults keeps
            // the client's locks for two hours. Ignored for Unix sockets.
            pqxx::nontransaction(connection)
                .exec("SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; "
                      "SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000");
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR >= 710
            connection.set_notice_handler([](pqxx::zview) noexcept {});
#endif
        }

        LastWords last_words;
        pqxx::connection connection;
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 710
        // It is told the server's notices, and what pqxx thinks of a lost connection.
        pqxx::quiet_errorhandler quiet{connection};
#endif
    };

    ForkMark m_fork_mark;
    std::unique_ptr<Session> m_session;
};

} // namespace orizuru::detail
