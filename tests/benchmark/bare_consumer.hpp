// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A consumer without the library: the same commands with the same arguments, by hiredis alone. It
// keeps no lease, guards nothing, decodes nothing and recovers from nothing. When the library's
// commands change, these must change, too.

#pragma once

#include "benchmark/messages.hpp"
#include "benchmark/redis.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/keys.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::benchmark {

/// The processing list and the chain of settlements on it.
class BareList {
  public:
    explicit BareList(const std::string& socket) : m_redis(socket) {
        m_redis.command("SCRIPT", "LOAD", detail::settle_script.source());
        m_redis.command("RPUSH", m_processing, m_self.header(0));
    }

    /// Asks for the settlement of the `oldest` messages and of `others`, as SETTLE's arguments say
    /// it, and for up to `fetch` messages. `held` = how many it holds at least.
    void settle(std::size_t held, std::size_t oldest, std::size_t fetch,
                std::span<const std::int64_t> others = {}) {
        m_words.clear();
        m_words.push_back(m_self.header(m_version));
        m_words.push_back(m_self.header(++m_version));
        m_words.push_back(std::to_string(-1 - static_cast<std::int64_t>(oldest)));
        const bool counts = !others.empty() || held > oldest;
        if (fetch > 0 || counts) {
            m_words.push_back(std::to_string(fetch));
        }
        if (counts) {
            m_words.push_back(std::to_string(held));
        }
        for (const std::int64_t other : others) {
            m_words.push_back(std::to_string(other));
        }
        m_redis.begin();
        m_redis.add("EVALSHA");
        m_redis.add(m_settle);
        m_redis.add(fetch > 0 ? "2" : "1");
        m_redis.add(m_processing);
        if (fetch > 0) {
            m_redis.add(queue);
        }
        for (const std::string& word : m_words) {
            m_redis.add(word);
        }
        m_redis.send();
    }
    /// The messages that the oldest settlement without a reply has fetched.
    Reply fetched() { return m_redis.reply(); }

    /// Waits in Redis for one message; null after 5 s.
    Reply wait() {
        Reply reply = m_redis.command("BLMOVE", queue, m_processing, "RIGHT", "LEFT", "5.000");
        return reply->type == REDIS_REPLY_STRING ? std::move(reply) : nullptr;
    }

  private:
    Redis m_redis;
    const detail::Sha1Hex m_settle = detail::settle_script.sha1();
    const detail::Identity m_self = detail::make_identity("bare");
    const std::string m_processing = Keys(queue).processing(m_self.id);
    std::uint64_t m_version = 0;
    std::vector<std::string> m_words;
};

/// Takes messages in order, with acks that ride on the next fetch.
class BareConsumer {
  public:
    BareConsumer(const std::string& socket, std::size_t batch, std::size_t in_flight)
        : m_list(socket), m_batch(batch), m_in_flight(in_flight) {}

    [[nodiscard]] const Total& total() const noexcept { return m_total; }

    /// Takes messages until `messages` have come in all.
    void take(std::uint64_t messages) {
        while (m_total.messages < messages) {
            if (!look()) {
                wait();
            }
        }
    }
    /// Takes messages until the queue is empty.
    void take_all() {
        while (look()) {
        }
    }
    /// Sends the remaining acks and waits for all replies.
    void flush() {
        while (m_asked > 0) {
            receive();
        }
        m_list.settle(m_unsettled, m_unsettled, 0);
        m_list.fetched();
        m_unsettled = 0;
    }

  private:
    /// Reads the next reply; false when the queue is empty and no reply is due.
    bool look() {
        if (m_empty && m_asked == 0) {
            m_empty = false;
            return false;
        }
        while (!m_empty && m_asked < m_in_flight) {
            m_list.settle(m_unsettled, m_unsettled, m_batch);
            m_unsettled = 0;
            ++m_asked;
        }
        receive();
        return true;
    }
    void receive() {
        const Reply reply = m_list.fetched();
        --m_asked;
        for (std::size_t i = 0; i < reply->elements; ++i) {
            handle(*reply->element[i]);
        }
        m_empty = reply->elements == 0;
    }
    void wait() {
        if (const Reply reply = m_list.wait()) {
            handle(*reply);
        }
    }
    void handle(const redisReply& message) {
        m_total.add(message.len);
        ++m_unsettled;
    }

    BareList m_list;
    std::size_t m_batch;
    std::size_t m_in_flight;
    Total m_total; ///< of sizes
    std::size_t m_unsettled = 0;
    std::size_t m_asked = 0; ///< fetches without a reply
    bool m_empty = false;    ///< the last fetch brought nothing
};

} // namespace orizuru::benchmark
