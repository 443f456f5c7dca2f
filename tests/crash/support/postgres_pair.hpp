// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A PostgreSQL server and its standby, which has all that was confirmed. Each has a host of its
// own, and a connection string both: which of them can be written to changes with each failover.

#pragma once

#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/postgres_server.hpp"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace orizuru::test {

/// Used by one thread.
class PostgresPair {
  public:
    PostgresPair() {
        m_servers[0] = std::make_unique<PostgresServer>(settings());
        lead_to(0);
        stand_by();
    }

    /// With both hosts.
    [[nodiscard]] std::string conninfo() const {
        return "host=" + host(0) + ',' + host(1) + " dbname=postgres user=orizuru";
    }
    /// The one that can be written to.
    [[nodiscard]] PostgresServer& primary() const { return *m_servers.at(m_primary); }

    /// Kills the primary, and starts it again over the same data.
    void restart_primary() { primary().restart(); }
    /// The primary's machine dies, its standby takes over, and gets a new standby in its place.
    void fail_over() {
        await_standby();
        primary().lose_machine();
        m_primary = other();
        primary().promote();
        stand_by();
    }

  private:
    /// A commit is confirmed when the standby has it. (pg_basebackup has another name.)
    static std::vector<std::string> settings() {
        return {"synchronous_standby_names=walreceiver", "wal_retrieve_retry_interval=100ms"};
    }
    [[nodiscard]] std::size_t other() const noexcept { return 1 - m_primary; }
    [[nodiscard]] std::string host(std::size_t index) const {
        return m_hosts.path() + '/' + std::to_string(index);
    }
    void lead_to(std::size_t index) {
        std::filesystem::remove_all(host(index));
        std::filesystem::create_directory_symlink(m_servers.at(index)->folder(), host(index));
    }
    void stand_by() {
        m_servers.at(other()).reset();
        m_servers.at(other()) =
            std::make_unique<PostgresServer>(PostgresServer::StandbyOf{primary()}, settings());
        lead_to(other());
        await_standby();
    }
    /// What a primary confirmed that was killed and started again may be there only, and be seen:
    /// nobody fails over before the standby has that.
    void await_standby() const {
        const std::string written = primary().ask("SELECT pg_current_wal_flush_lsn()");
        if (!eventually([&] {
                return primary().ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = "
                                     "'sync' AND flush_lsn >= '" +
                                     written + "'") == "1";
            })) {
            throw std::runtime_error("the standby is not there");
        }
    }

    TempDir m_hosts;
    std::array<std::unique_ptr<PostgresServer>, 2> m_servers;
    std::size_t m_primary = 0;
};

} // namespace orizuru::test
