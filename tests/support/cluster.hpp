// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A real Cluster of redis-servers on 127.0.0.1: masters, and a replica for each if asked for.

#pragma once

#include "support/eventually.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace orizuru::test {

class Cluster {
  public:
    static constexpr int slots = 16384;

    /// With Listen::tls all speak TLS only; `more` then names the files.
    explicit Cluster(std::size_t masters, bool replicas = false, std::vector<std::string> more = {},
                     RedisServer::Listen listen = RedisServer::Listen::tcp)
        : m_listen(listen) {
        std::vector<std::string> arguments{"--cluster-enabled",
                                           "yes",
                                           "--cluster-node-timeout",
                                           "2000",
                                           "--cluster-replica-validity-factor",
                                           "0",
                                           "--repl-diskless-sync-delay",
                                           "0"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        if (listen == RedisServer::Listen::tls) {
            arguments.insert(arguments.end(), {"--tls-cluster", "yes", "--tls-replication", "yes"});
        }
        for (std::size_t i = 0; i < (replicas ? 2 : 1) * masters; ++i) {
            m_nodes.push_back(start(arguments));
        }
        for (std::size_t i = 0; i < masters; ++i) {
            command(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(slots * i / masters),
                        std::to_string(slots * (i + 1) / masters - 1)});
        }
        for (std::size_t i = 0; i < m_nodes.size(); ++i) {
            command(i, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}, false);
        }
        meet();
        for (std::size_t i = masters; i < m_nodes.size(); ++i) {
            command(i, {"CLUSTER", "REPLICATE", id(i - masters)});
        }
        await([&] { return serves(); });
    }

    [[nodiscard]] std::size_t size() const noexcept { return m_nodes.size(); }
    [[nodiscard]] RedisServer& node(std::size_t number) { return *m_nodes.at(number); }
    /// `redis+cluster://` or `rediss+cluster://`, with these nodes.
    [[nodiscard]] std::string uri(const std::vector<std::size_t>& numbers = {0}) const {
        std::string nodes;
        for (const std::size_t number : numbers) {
            nodes += (nodes.empty() ? "127.0.0.1:" : ",127.0.0.1:") +
                     std::to_string(m_nodes.at(number)->port());
        }
        return (m_listen == RedisServer::Listen::tls ? "rediss+cluster://" : "redis+cluster://") +
               nodes;
    }

    [[nodiscard]] int slot(const std::string& key) {
        return static_cast<int>(command(0, {"CLUSTER", "KEYSLOT", key}).integer);
    }
    /// The master that has the key now, as it says.
    [[nodiscard]] std::optional<std::size_t> present_owner(const std::string& key) const {
        for (std::size_t i = 0; i < m_nodes.size(); ++i) {
            try {
                const Answer type = client(i).try_command({"TYPE", key});
                const bool replica = client(i).command({"ROLE"}).elements.at(0).text != "master";
                // Nor is it one that knows of no master for the slot: CLUSTERDOWN.
                if (!replica && (!type.is_error() || type.text.starts_with("ASK"))) {
                    return i;
                }
            } catch (const std::runtime_error&) { // NOLINT(bugprone-empty-catch)
                // It does not run.
            }
        }
        return std::nullopt;
    }
    /// Waits for one: nodes that a busy machine has kept silent are taken for failed, and then none
    /// serves.
    [[nodiscard]] std::size_t owner(const std::string& key) const {
        std::optional<std::size_t> found;
        if (!eventually([&] { return (found = present_owner(key)).has_value(); })) {
            throw std::runtime_error("no node has " + key);
        }
        return *found;
    }
    /// A plain client of the node that has the key.
    [[nodiscard]] RedisClient client_of(const std::string& key) { return client(owner(key)); }
    [[nodiscard]] RedisClient client(std::size_t number) const {
        return RedisClient(m_nodes.at(number)->plain_uri());
    }
    [[nodiscard]] std::string id(std::size_t number) {
        return command(number, {"CLUSTER", "MYID"}).text;
    }

    /// Moves the slot of a key to another master as operators do it, key by key. `within` is called
    /// when the slot is migrating and no key has moved, and again when all have.
    void migrate(
        const std::string& key, std::size_t to, const std::function<void()>& within = [] {}) {
        const std::size_t from = owner(key);
        const std::string number = std::to_string(slot(key));
        command(to, {"CLUSTER", "SETSLOT", number, "IMPORTING", id(from)});
        command(from, {"CLUSTER", "SETSLOT", number, "MIGRATING", id(to)});
        within();
        while (true) {
            const Answer keys = command(from, {"CLUSTER", "GETKEYSINSLOT", number, "100"});
            if (keys.elements.empty()) {
                break;
            }
            std::vector<std::string> move{
                "MIGRATE", "127.0.0.1", std::to_string(m_nodes[to]->port()), "", "0",
                "5000",    "KEYS"};
            for (const Answer& one : keys.elements) {
                move.push_back(one.text);
            }
            command(from, move);
        }
        within();
        // The new one first: https://redis.io/docs/latest/commands/cluster-setslot
        command(to, {"CLUSTER", "SETSLOT", number, "NODE", id(to)});
        command(from, {"CLUSTER", "SETSLOT", number, "NODE", id(to)});
        for (std::size_t i = 0; i < m_nodes.size(); ++i) {
            command(i, {"CLUSTER", "SETSLOT", number, "NODE", id(to)}, false);
        }
    }

    /// Whether the nodes can move slots by themselves, as Valkey's can since version 9.
    [[nodiscard]] bool moves_atomically() const {
        return command(0, {"COMMAND", "INFO", "cluster|migrateslots"}).elements.at(0).kind ==
               Answer::Kind::array;
    }
    /// Has the slot's master copy it to another one and hand it over in one step. `within` is
    /// called when it has been told to.
    void migrate_atomically(
        const std::string& key, std::size_t to, const std::function<void()>& within = [] {}) {
        const std::size_t from = owner(key);
        const std::string number = std::to_string(slot(key));
        command(from, {"CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", number, number, "NODE", id(to)});
        within();
        await([&] {
            // The newest comes first.
            const Answer told = command(from, {"CLUSTER", "GETSLOTMIGRATIONS"}).elements.at(0);
            const std::string state = told.field("state");
            if (state == "failed" || state == "cancelled") {
                throw std::runtime_error("a migration " + state + ": " + told.field("message"));
            }
            return state == "success" && present_owner(key) == to;
        });
    }

    /// All slots are served, and all nodes that run agree on it.
    [[nodiscard]] bool serves() const {
        for (std::size_t i = 0; i < m_nodes.size(); ++i) {
            try {
                const std::string info = client(i).command({"CLUSTER", "INFO"}).text;
                if (info.find("cluster_state:ok") == std::string::npos ||
                    info.find("cluster_slots_ok:16384") == std::string::npos) {
                    return false;
                }
            } catch (const std::runtime_error&) { // NOLINT(bugprone-empty-catch)
                // It does not run.
            }
        }
        return true;
    }
    template <class Condition>
    static void await(Condition condition) {
        if (!eventually(condition, std::chrono::seconds(30))) {
            throw std::runtime_error("the Cluster does not come to rest");
        }
    }

  private:
    /// The bus of a node is 10,000 ports above its own.
    std::unique_ptr<RedisServer> start(const std::vector<std::string>& arguments) const {
        for (int tries = 0;; ++tries) {
            try {
                auto server = std::make_unique<RedisServer>(arguments, m_listen);
                return server;
            } catch (const std::runtime_error&) {
                if (tries == 20) {
                    throw;
                }
            }
        }
    }

    Answer command(std::size_t number, const std::vector<std::string>& words,
                   bool succeeds = true) const {
        RedisClient redis = client(number);
        return succeeds ? redis.command(words) : redis.try_command(words);
    }
    /// Redis forgets a node that has not answered in the node timeout, so it is asked again.
    void meet() const {
        for (int tries = 0; tries < 6; ++tries) {
            for (std::size_t i = 0; i < m_nodes.size(); ++i) {
                command(i, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(m_nodes[0]->port())});
            }
            if (eventually([&] { return known() == m_nodes.size(); }, std::chrono::seconds(5))) {
                return;
            }
        }
        throw std::runtime_error("the nodes of the Cluster do not meet");
    }
    [[nodiscard]] std::size_t known() const {
        std::size_t least = m_nodes.size();
        for (std::size_t i = 0; i < m_nodes.size(); ++i) {
            const std::string info = command(i, {"CLUSTER", "INFO"}).text;
            const std::string field = "cluster_known_nodes:";
            least = std::min<std::size_t>(least,
                                          std::stoul(info.substr(info.find(field) + field.size())));
        }
        return least;
    }

    RedisServer::Listen m_listen;
    std::vector<std::unique_ptr<RedisServer>> m_nodes;
};

} // namespace orizuru::test
