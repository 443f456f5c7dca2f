// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads and changes the number of a queue's shards in Redis.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/exchange.hpp>
#include <orizuru/detail/redis/place/queue_connections.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/scripts/run_script.hpp>
#include <orizuru/detail/shards/shard_layout.hpp>
#include <orizuru/detail/shards/shard_scripts.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// For one thread at a time. Connects when it is used, and then throws as Connection does.
class ShardRegistry {
  public:
    ShardRegistry(const Endpoint& endpoint, std::string queue)
        : m_keys(std::move(queue)), m_connections(endpoint) {
        if (m_keys.source().find('{') != std::string::npos) {
            throw std::invalid_argument(
                joined({"queue '", m_keys.source(),
                        "' has a hash tag, which puts all of its shards into one slot"}));
        }
    }

    static void validate(std::size_t count) {
        if (count < 1 || count > ShardLayout::most_shards) {
            throw std::invalid_argument("the number of shards must be 1 to 1024");
        }
    }

    [[nodiscard]] std::optional<ShardLayout> find() {
        const std::string key = m_keys.shards();
        Connection& connection = *m_connections.of(m_keys);
        const Reply reply = connection.command(key, "GET", key);
        if (reply.is(Reply::Type::nil)) {
            return std::nullopt;
        }
        require_type(connection, reply, Reply::Type::string, "GET");
        return ShardLayout(m_keys.source(), reply.text);
    }
    [[nodiscard]] ShardLayout get() {
        auto layout = find();
        if (!layout) {
            throw std::logic_error(
                joined({"queue '", m_keys.source(), "' has no shards; create_shards makes them"}));
        }
        return *std::move(layout);
    }

    /// False when Redis has another text than `expected` by now; '' = none.
    bool replace(std::string_view expected, std::string_view text) {
        const std::string key = m_keys.shards();
        Connection& connection = *m_connections.of(m_keys);
        const Reply reply =
            run_script(connection, key, cached_replace_text(), 1, key, expected, text);
        require_flag(connection, reply);
        return reply.integer == 1;
    }
    /// Edits the layout until no other change came in between; returns what it is then. Every
    /// change gets a number, also one that leaves all as it is: what `open` and `close` do for an
    /// earlier one, however late, then undoes nothing of it.
    template <class Edit>
    ShardLayout change(Edit edit) {
        while (true) {
            ShardLayout layout = get();
            const std::string before = layout.text();
            layout.advance();
            edit(layout);
            if (replace(before, layout.text())) {
                return layout;
            }
        }
    }

    /// Lets producers push to those of these shards that this layout reads.
    void open(const std::vector<std::string>& names, const ShardLayout& layout) {
        const std::vector<std::string> read = layout.names(m_keys.source());
        for (const std::string& name : names) {
            if (std::ranges::find(read, name) == read.end()) {
                continue;
            }
            Connection& connection = *m_connections.of(Keys(name));
            require_flag(connection, run_script(connection, name, cached_open_shard(), 1, name,
                                                Digits(layout.change())));
        }
    }
    /// Has Redis refuse pushes to these shards, if they are empty, by the change that leads to this
    /// layout.
    void close(const std::vector<std::string>& names, const ShardLayout& layout) {
        for (const std::string& name : names) {
            const Keys keys(name);
            Connection& connection = *m_connections.of(keys);
            require_flag(connection,
                         run_script(connection, name, cached_retire_shard(), 6, name, keys.unack(),
                                    keys.scheduled(), keys.dead(), keys.consumers(),
                                    keys.suspects(), Digits(layout.change()), keys.processing("")));
        }
    }

  private:
    static void require_flag(Connection& connection, const Reply& reply) {
        if (!is_count(reply) || reply.integer > 1) {
            refuse(connection, "EVALSHA");
        }
    }

    Keys m_keys;
    QueueConnections m_connections;
};

} // namespace orizuru::detail
