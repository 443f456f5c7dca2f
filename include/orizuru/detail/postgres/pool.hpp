// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// As many connections as threads are at work at once, each used by one of them at a time. None in a
// forked child: it has its parent's names, and not its threads.

#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/postgres/client.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/postgres/database.hpp>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Pool {
  public:
    enum class Isolation {
        of_database, ///< its default, which the user may choose
        read_committed
    };

    explicit Pool(Database database, Isolation isolation = Isolation::of_database)
        : m_database(std::move(database)), m_isolation(isolation) {}
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
        {
            const std::lock_guard lock(m_mutex);
            while (!m_idle.empty()) {
                auto client = std::move(m_idle.back());
                m_idle.pop_back();
                if (client->is_silent()) {
                    return client;
                }
            }
        }
        auto client = std::make_unique<Client>(m_database);
        if (m_isolation == Isolation::read_committed) {
            read_committed(**client);
        }
        return client;
    }
    void give_back(std::unique_ptr<Client> client) {
        const std::lock_guard lock(m_mutex);
        m_idle.push_back(std::move(client));
    }

    /// For when a connection was lost: the idle ones usually are, too.
    void forget_idle() {
        const std::lock_guard lock(m_mutex);
        m_idle.clear();
    }

  private:
    Database m_database;
    Isolation m_isolation;
    ForkMark m_fork_mark;
    std::mutex m_mutex;
    std::vector<std::unique_ptr<Client>> m_idle;
};

} // namespace orizuru::detail
