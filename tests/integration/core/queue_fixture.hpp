// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the integration tests: one redis-server per process, emptied before each case, and the
// queue `q` on it, read with plain commands and key names written out.

#pragma once

#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/hex.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/event.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <regex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace orizuru::test {

using Texts = std::vector<std::string>;

inline RedisServer& server() {
    static RedisServer instance;
    return instance;
}

/// An Event that outlives the call of on_event.
struct Told {
    EventKind kind;
    std::string queue;
    std::string consumer;
    std::string detail;
    std::string payload;
};

/// Records the events of `on_event`, from any thread.
class Diary {
  public:
    [[nodiscard]] std::function<void(const Event&)> pen() const {
        return [pages = m_pages](const Event& event) {
            const std::lock_guard lock(pages->mutex);
            pages->told.push_back({event.kind, std::string(event.queue),
                                   std::string(event.consumer), std::string(event.detail),
                                   std::string(event.payload)});
        };
    }

    [[nodiscard]] std::vector<Told> of(EventKind kind) const {
        const std::lock_guard lock(m_pages->mutex);
        std::vector<Told> found;
        std::ranges::copy_if(m_pages->told, std::back_inserter(found),
                             [=](const Told& told) { return told.kind == kind; });
        return found;
    }
    [[nodiscard]] std::size_t count(EventKind kind) const { return of(kind).size(); }
    [[nodiscard]] std::size_t size() const {
        const std::lock_guard lock(m_pages->mutex);
        return m_pages->told.size();
    }

  private:
    // Shared, because a consumer may report an event after the test has left its scope.
    struct Pages {
        std::mutex mutex;
        std::vector<Told> told;
    };
    std::shared_ptr<Pages> m_pages = std::make_shared<Pages>();
};

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// The message of the Exception that `action` throws; empty, with a failed check, for any other
/// outcome.
template <class Exception, class Action>
std::string message_of(Action action) {
    try {
        action();
    } catch (const Exception& error) {
        return error.what();
    } catch (const std::exception& error) {
        FAIL_CHECK("another exception: " << error.what());
        return {};
    }
    FAIL_CHECK("no exception");
    return {};
}

/// A range that can be read once: it has `count` elements, each made when it is read. (With clang
/// 14 the views of libstdc++ 12 do not compile.)
template <class Make>
class Making {
  public:
    class Iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using difference_type = std::ptrdiff_t;
        using value_type = std::invoke_result_t<const Make&, std::size_t>;

        Iterator() = default;
        Iterator(const Making& range, std::size_t at) : m_range(&range), m_at(at) {}
        value_type operator*() const { return m_range->m_make(m_at); }
        Iterator& operator++() {
            ++m_at;
            return *this;
        }
        void operator++(int) { ++m_at; }
        friend bool operator==(const Iterator& one, const Iterator& other) {
            return one.m_at == other.m_at;
        }

      private:
        const Making* m_range = nullptr;
        std::size_t m_at = 0;
    };

    Making(std::size_t count, Make make) : m_count(count), m_make(std::move(make)) {}
    [[nodiscard]] Iterator begin() const { return {*this, 0}; }
    [[nodiscard]] Iterator end() const { return {*this, m_count}; }

  private:
    std::size_t m_count;
    Make m_make;
};

/// The queue `q`, empty, on the binary's server.
struct QueueFixture {
    QueueFixture() { redis.flushall(); }

    RedisClient redis{server().uri()};
    std::string uri = server().uri();
    std::string consumers = "orizuru:{q}:consumers";
    std::string unack = "orizuru:{q}:unack";
    std::string dead = "orizuru:{q}:dead";
    std::string recoveries = "orizuru:{q}:recoveries";

    static std::string processing(const std::string& id) { return "orizuru:{q}:processing:" + id; }
    static std::string heartbeat(const std::string& id) { return "orizuru:{q}:heartbeat:" + id; }

    Texts ids() {
        Texts found;
        for (const Answer& member : redis.command({"SMEMBERS", consumers}).elements) {
            found.push_back(member.text);
        }
        std::ranges::sort(found);
        return found;
    }
    std::string only_id() {
        const Texts found = ids();
        REQUIRE(found.size() == 1);
        return found.front();
    }

    /// A list, the next message to be served first.
    Texts oldest_first(const std::string& key) {
        Texts list = redis.lrange(key);
        std::ranges::reverse(list);
        return list;
    }
    Texts waiting() { return oldest_first("q"); }
    Texts rejected() { return oldest_first(unack); }

    /// The messages that the consumer holds, the oldest first, without the header.
    Texts held(const std::string& id) {
        Texts list = oldest_first(processing(id));
        REQUIRE_FALSE(list.empty());
        REQUIRE(is_header(list.front()));
        list.erase(list.begin());
        return list;
    }
    Texts held() { return held(only_id()); }
    std::string header(const std::string& id) {
        const Texts last = redis.lrange(processing(id), -1, -1);
        REQUIRE(last.size() == 1);
        return last.front();
    }
    std::string fence(const std::string& id) { return redis.command({"GET", processing(id)}).text; }
    /// How many settlement scripts have run, as the header counts them.
    int version(const std::string& id) {
        const std::string text = header(id);
        REQUIRE(is_header(text));
        return std::stoi(text.substr(text.rfind(':') + 1));
    }
    /// "orz:", 16 hexadecimal digits, "l", the lease, of a worker "n" and how many it handles at
    /// once, ":", a number; in 0.1.0 without lease and "n".
    static bool is_header(const std::string& text) {
        static const std::regex shape(
            "orz:[0-9a-f]{16}(l[1-9][0-9]*(n[1-9][0-9]*)?)?:(0|[1-9][0-9]*)");
        return std::regex_match(text, shape);
    }

    void push(const Texts& payloads) { redis.lpush("q", payloads); }

    /// A consumer that died holding these, the oldest first.
    void add_dead_consumer(const std::string& id, const Texts& payloads,
                           const std::string& header_text = "orz:0123456789abcdef:7") {
        redis.command({"SADD", consumers, id});
        redis.command({"RPUSH", processing(id), header_text});
        if (!payloads.empty()) {
            redis.lpush(processing(id), payloads);
        }
    }
    /// Makes the next pass of a collector declare the consumer dead, unless a beat comes first.
    void forget_heartbeat(const std::string& id) { REQUIRE(redis.del(heartbeat(id)) == 1); }
    /// Has a collector declare the only consumer dead, between two of its beats. Returns how many
    /// messages that gave back.
    template <class Collector>
    auto reclaimed_by(Collector& collector) {
        const std::string id = only_id();
        decltype(collector.collect().reclaimed) reclaimed = 0;
        REQUIRE(eventually([&] {
            redis.del(heartbeat(id));
            reclaimed = collector.collect().reclaimed;
            return reclaimed > 0;
        }));
        return reclaimed;
    }

    /// No consumer is registered, and only the fences of former ones are left.
    bool nobody_left() {
        return ids().empty() && redis.keys("orizuru:{q}:heartbeat:*").empty() &&
               std::ranges::all_of(
                   redis.keys("orizuru:{q}:processing:*"),
                   [this](const std::string& key) { return redis.type(key) == "string"; });
    }

    std::int64_t info(const std::string& section, const std::string& field) {
        const std::string text = redis.command({"INFO", section}).text;
        const auto at = text.find("\n" + field);
        return at == std::string::npos
                   ? 0
                   : std::stoll(
                         text.substr(text.find_first_of(":=", at + 1 + field.size() - 1) + 1));
    }
    /// True when a client waits in Redis for a message.
    bool somebody_waits() {
        return eventually([this] { return info("clients", "blocked_clients") == 1; });
    }
    std::int64_t server_ms() {
        const auto time = redis.command({"TIME"}).elements;
        return std::stoll(time[0].text) * 1000 + std::stoll(time[1].text) / 1000;
    }
};

/// A number as msgpack's uint 64.
inline std::string msgpack_u64(std::uint64_t number) {
    std::string bytes = "\xcf";
    for (int shift = 56; shift >= 0; shift -= 8) {
        bytes += static_cast<char>(number >> shift & 0xff);
    }
    return bytes;
}
/// A string as msgpack writes it.
inline std::string msgpack_str(const std::string& text) {
    std::string head;
    if (text.size() < 32) {
        head = static_cast<char>(0xa0 | text.size());
    } else if (text.size() < 256) {
        head = {static_cast<char>(0xd9), static_cast<char>(text.size())};
    } else if (text.size() < 65536) {
        head = {static_cast<char>(0xda), static_cast<char>(text.size() >> 8),
                static_cast<char>(text.size() & 0xff)};
    } else {
        head = {static_cast<char>(0xdb), static_cast<char>(text.size() >> 24),
                static_cast<char>(text.size() >> 16 & 0xff),
                static_cast<char>(text.size() >> 8 & 0xff), static_cast<char>(text.size() & 0xff)};
    }
    return head + text;
}

[[nodiscard]] inline std::string msgpack_bin32(const std::string& bytes) {
    std::string head = "\xc6";
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        head += static_cast<char>(bytes.size() >> shift & 0xffU);
    }
    return head + bytes;
}

/// True when `entry` is msgpack [2, payload, reason, a time from `since` to `until`].
inline bool is_dead_entry(const std::string& entry, const std::string& payload,
                          const std::string& reason, std::int64_t since, std::int64_t until) {
    const std::string front = "\x94\x02" + msgpack_bin32(payload) + msgpack_bin32(reason);
    if (entry.size() != front.size() + 9 || !entry.starts_with(front)) {
        return false;
    }
    const std::string time = entry.substr(front.size());
    return time >= msgpack_u64(static_cast<std::uint64_t>(since)) &&
           time <= msgpack_u64(static_cast<std::uint64_t>(until));
}
/// True when `entry` begins as the dead list's entry of the payload.
inline bool is_dead_entry_of(const std::string& entry, const std::string& payload) {
    return entry.starts_with("\x94\x02" + msgpack_bin32(payload));
}

} // namespace orizuru::test
