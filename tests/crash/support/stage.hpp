// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The stage of a scenario: a queue of its own, a user who handles the library's exceptions and
// calls again, the book of that user's answers, and the judgement when all clients have gone.

#pragma once

#include "support/collect_dead.hpp"
#include "support/ledger.hpp"
#include "support/proxy.hpp"
#include "support/redis_client.hpp"

#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/tls.hpp>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace orizuru::test {

/// A line of the user's book, to be written into any ledger.
using Entry = std::function<void(Ledger&)>;

class Stage {
  public:
    /// Called for each entry before it is written; says whether Redis is yet to be asked for it, or
    /// has answered.
    enum class Word { request, answer };
    using Reader = std::function<void(Word, const Entry&)>;

    /// `uri` is the user's address of the server, `server_uri` the undisturbed one. `proxy`: the
    /// proxy on the user's way, if any.
    Stage(const std::string& uri, std::string server_uri, std::string queue, Proxy* proxy = nullptr,
          Reader reader = {})
        : ledger(queue, queue + "-other"),
          redis(server_uri),
          m_endpoint(tls_endpoint(uri)),
          m_server_uri(std::move(server_uri)),
          m_queue(std::move(queue)),
          m_proxy(proxy),
          m_reader(std::move(reader)) {}

    Ledger ledger;
    RedisClient redis;

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    [[nodiscard]] const std::string& server_uri() const noexcept { return m_server_uri; }
    [[nodiscard]] const std::string& queue() const noexcept { return m_queue; }
    [[nodiscard]] std::string other() const { return m_queue + "-other"; }
    [[nodiscard]] std::string key(const std::string& name) const {
        return "orizuru:{" + m_queue + "}:" + name;
    }

    /// A unique payload.
    std::string new_message() { return "m" + std::to_string(m_messages++); }

    /// From now on this may happen.
    void asks(const Entry& entry) { write(Word::request, entry); }
    /// Redis has answered the user.
    void hears(const Entry& entry) { write(Word::answer, entry); }

    /// Puts messages onto one of the queue's lists without the library.
    std::vector<std::string> prepare(std::size_t count, const std::string& list);
    std::vector<std::string> prepare(std::size_t count) { return prepare(count, m_queue); }

    /// Repeats the call after every lost connection; no fault here explains another error.
    template <class Action>
    std::invoke_result_t<Action&> insist(Action action) {
        while (true) {
            try {
                return action();
            } catch (const ConnectionError& error) {
                still_patient(error.what());
            }
        }
    }
    /// Throws when a client should have recovered long ago.
    void still_patient(const std::string& reason) const {
        if (std::chrono::steady_clock::now() > m_deadline) {
            throw std::runtime_error("no recovery: " + reason);
        }
    }

    // Faults of the user's connections; none without a proxy.

    /// Loses the next reply on the connection opened last, and the connection with it.
    void lose_next_reply() {
        if (m_proxy != nullptr) {
            const std::size_t last = m_proxy->accepted() - 1;
            m_proxy->cut_after(Proxy::Direction::to_client,
                               m_proxy->bytes(last, Proxy::Direction::to_client), Proxy::Cut::fin,
                               last);
        }
    }
    void lose_connections() {
        if (m_proxy != nullptr) {
            m_proxy->break_all();
        }
    }

  private:
    void write(Word word, const Entry& entry) {
        if (m_reader) {
            m_reader(word, entry);
        }
        entry(ledger);
    }

    Endpoint m_endpoint;
    std::string m_server_uri;
    std::string m_queue;
    Proxy* m_proxy;
    Reader m_reader;
    std::size_t m_messages = 0;
    std::chrono::steady_clock::time_point m_deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
};

inline std::vector<std::string> Stage::prepare(std::size_t count, const std::string& list) {
    std::vector<std::string> messages;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string message = messages.emplace_back(new_message());
        asks([=](Ledger& book) { book.pushing(message); });
        redis.lpush(list, message);
        hears([=](Ledger& book) { book.pushed(message); });
    }
    return messages;
}

/// Call it when no client of the queue is left: brings back the messages of dead consumers, returns
/// the violations, and removes the queue from Redis.
inline std::vector<std::string> judge(Ledger& ledger, const std::string& server_uri,
                                      const std::string& queue) {
    RedisClient redis(server_uri);
    const std::string prefix = "orizuru:{" + queue + "}:";
    std::vector<std::string> wrong;

    const std::string processing = prefix + "processing:";
    for (const std::string& list : redis.keys(processing + "*")) {
        const std::string id = list.substr(processing.size());
        // Checks the type last: a request of a closed connection may run only now, and remove the
        // registration together with the list.
        if (!redis.exists(prefix + "heartbeat:" + id) &&
            redis.command({"SISMEMBER", prefix + "consumers", id}).integer == 0 &&
            redis.type(list) == "list") {
            wrong.push_back("I4: neither registered nor alive: " + id);
        }
    }

    collect_dead(redis, server_uri, queue);
    if (redis.exists(prefix + "consumers")) {
        wrong.emplace_back("I5: the dead are still registered");
    }

    for (const std::string& what : ledger.check(redis)) {
        wrong.push_back(what);
    }
    for (const std::string& key : redis.keys(prefix + "*")) {
        redis.del(key);
    }
    redis.del(queue);
    redis.del(queue + "-other");
    return wrong;
}

} // namespace orizuru::test
