// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// As many connections as threads are at work at once with the objects of one Database, each used by
// one of them at a time. None in a forked child: it has its parent's names, and not its threads.

#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>

#include <pqxx/pqxx>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Isolation of a connection's transactions from others.
enum class Isolation : std::size_t {
    of_database, ///< its default, which the user may choose
    read_committed
};

/// The connections that no thread uses. Any thread.
class IdleClients {
  public:
    /// The one that was used last; null when there is none.
    [[nodiscard]] std::unique_ptr<Client> take(Isolation isolation) {
        const std::lock_guard lock(m_mutex);
        auto& idle = m_idle[static_cast<std::size_t>(isolation)];
        while (!idle.empty()) {
            auto client = std::move(idle.back());
            idle.pop_back();
            if (client->is_silent()) {
                return client;
            }
        }
        return nullptr;
    }
    void give_back(std::unique_ptr<Client> client, Isolation isolation) {
        const std::lock_guard lock(m_mutex);
        m_idle[static_cast<std::size_t>(isolation)].push_back(std::move(client));
    }
    void forget() {
        const std::lock_guard lock(m_mutex);
        for (auto& idle : m_idle) {
            idle.clear();
        }
    }

  private:
    std::mutex m_mutex;
    std::array<std::vector<std::unique_ptr<Client>>, 2> m_idle; ///< by their isolation
};

class Pool {
  public:
    explicit Pool(Database database, Isolation isolation = Isolation::of_database)
        : m_database(std::move(database)),
          m_isolation(isolation),
          m_idle(m_database.m_idle->get()) {}
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() = default;

    [[nodiscard]] const Database& database() const noexcept { return m_database; }

    [[nodiscard]] std::string sql(std::string_view text) const {
        return with_prefix(text, m_database.prefix());
    }

    /// Throws pqxx::failure when a new one is needed and the server cannot be reached;
    /// std::logic_error in a forked child.
    [[nodiscard]] std::unique_ptr<Client> take() {
        if (m_fork_mark.forked()) {
            throw std::logic_error("connections to PostgreSQL are used in a forked child");
        }
        auto client = m_idle->take(m_isolation);
        if (!client) {
            client = std::make_unique<Client>(m_database);
            if (m_isolation == Isolation::read_committed) {
                read_committed(**client);
            }
        }
        return client;
    }
    void give_back(std::unique_ptr<Client> client) {
        if (!client->said_read_only()) {
            m_idle->give_back(std::move(client), m_isolation);
        }
    }
    /// True when the server is there now, and can be written to.
    [[nodiscard]] bool answers() {
        try {
            auto client = take();
            if (!client->can_write()) {
                return false;
            }
            give_back(std::move(client));
            return true;
        } catch (const pqxx::failure&) {
            return false;
        }
    }
    /// For when a connection was lost: the idle ones usually are, too.
    void forget_idle() { m_idle->forget(); }

  private:
    Database m_database;
    Isolation m_isolation;
    ForkMark m_fork_mark;
    std::shared_ptr<IdleClients> m_idle;
};

} // namespace orizuru::detail
