// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Compares what the users of one queue were told about each message with its place in
// Redis: a queue must keep its word, whatever happened in between. The invariants of a reliable
// queue: every message is in exactly one place (I1, I2), no list is left behind (I4), and a settled
// message never comes again (I6).
//
// A missing message is LOST when its push was confirmed, and VANISHED when its push was in doubt
// but a delivery has shown that it was there.

#pragma once

#include "redis_client.hpp"

#include <msgpack.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

/// Where a message can be.
enum class Place : std::size_t {
    gone,    ///< acked, or never pushed
    waiting, ///< in the queue, with a consumer, or rejected: it will be delivered (again)
    other,   ///< in the other queue
    dead     ///< on the dead list
};

/// A message is named by its payload, which is unique; a new body for the other queue begins with
/// the payload and a '|'. Keeps each violation, in words. Any thread.
class Ledger {
  public:
    /// `queue` is the name of a queue without braces; `other` the list that messages are pushed to.
    explicit Ledger(std::string queue, std::string other = "other")
        : m_source(std::move(queue)), m_other(std::move(other)) {}

    // What producers did and were told.

    void pushing(const std::string& message) {
        change(message, [](Message& told) { ++told.pushes; });
    }
    void pushed(const std::string& message) {
        change(message, [](Message& told) { ++told.confirmed; });
    }
    /// It certainly was not pushed.
    void not_pushed(const std::string& message) {
        change(message, [](Message& told) { --told.pushes; });
    }
    /// The producer itself repeats pushes in doubt, so there may be several copies.
    void may_repeat(const std::string& message) {
        change(message, [](Message& told) { told.repeats = true; });
    }

    // What consumers did and were told.

    /// It was fetched after all that was noted before: a settlement that was under way then did not
    /// run.
    void handed_out(const std::string& message) {
        const std::lock_guard lock(m_mutex);
        const auto known = m_messages.find(message);
        if (known == m_messages.end()) {
            m_wrong.push_back("nobody pushed " + message + ", and it was delivered");
            return;
        }
        if (known->second.settled && !known->second.repeats) {
            m_wrong.push_back("I6: " + message + " was delivered after its settlement said true");
        }
        known->second.deliveries += 1;
        if (!known->second.repeats) {
            known->second.void_doubts();
        }
    }
    /// From now on the message may go there.
    void settling(const std::string& message, Place to) {
        change(message, [=](Message& told) { ++told.asked[index(to)]; });
    }
    /// The settlement returned true.
    void settled(const std::string& message, Place to) {
        change(message, [&](Message& told) {
            told.answered(to);
            told.acks += to == Place::gone ? 1 : 0;
            if (to == Place::waiting) {
                return;
            }
            if (told.settled && !told.repeats) {
                m_wrong.push_back("I6: two settlements of " + message + " said true");
            }
            told.settled = to;
        });
    }
    /// The settlement certainly did not run: it returned false, or was refused.
    void not_settled(const std::string& message, Place to) {
        change(message, [=](Message& told) { told.answered(to); });
    }

    [[nodiscard]] std::size_t deliveries() const {
        const std::lock_guard lock(m_mutex);
        std::size_t sum = 0;
        for (const auto& [payload, message] : m_messages) {
            sum += message.deliveries;
        }
        return sum;
    }

    /// Call it when nothing is under way and every consumer is gone. Returns all violations, those
    /// in Redis' own lists included.
    std::vector<std::string> check(RedisClient& redis);

  private:
    static constexpr std::size_t places = 4;
    using PerPlace = std::array<int, places>;

    /// The most copies of a message that its producer repeats: more than its connections break
    /// meanwhile.
    static constexpr int most_copies = 10;

    struct Message {
        int pushes = 0;
        int confirmed = 0;
        bool repeats = false;
        PerPlace asked{};  ///< settlements with unknown outcomes
        PerPlace voided{}; ///< those that did not run, since the message came again
        std::optional<Place> settled;
        int acks = 0; ///< that returned true
        std::size_t deliveries = 0;

        void void_doubts() {
            for (std::size_t place = 0; place < places; ++place) {
                voided[place] += std::exchange(asked[place], 0);
            }
        }
        /// Late answers may come to voided settlements, so they are counted for those.
        void answered(Place to) { --(voided[index(to)] > 0 ? voided : asked)[index(to)]; }
        /// How many copies must at least exist, by the answers.
        [[nodiscard]] int least(int told) const {
            const bool may_be_gone =
                settled ? settled == Place::gone : asked[index(Place::gone)] > 0;
            return may_be_gone ? 0 : told;
        }
        [[nodiscard]] int most() const {
            return repeats ? most_copies - acks : settled == Place::gone ? 0 : pushes;
        }
    };

    static std::size_t index(Place place) { return static_cast<std::size_t>(place); }

    template <class Action>
    void change(const std::string& message, Action action) {
        const std::lock_guard lock(m_mutex);
        action(m_messages[message]);
    }
    std::map<std::string, PerPlace> find_all(RedisClient& redis);
    void judge(const std::string& payload, const Message& message, const PerPlace& found);
    static std::string buried_payload(const std::string& entry);
    static std::string words(const PerPlace& numbers);

    std::string m_source;
    std::string m_other;
    mutable std::mutex m_mutex;
    std::map<std::string, Message, std::less<>> m_messages;
    std::vector<std::string> m_wrong;
};

inline std::vector<std::string> Ledger::check(RedisClient& redis) {
    std::map<std::string, PerPlace> found = find_all(redis);
    const std::lock_guard lock(m_mutex);
    for (const auto& [payload, message] : m_messages) {
        judge(payload, message, found[payload]);
        found.erase(payload);
    }
    for (const auto& [payload, where] : found) {
        m_wrong.push_back("nobody pushed " + payload + ", and it is " + words(where));
    }
    return m_wrong;
}

inline void Ledger::judge(const std::string& payload, const Message& message,
                          const PerPlace& found) {
    const int copies =
        found[index(Place::waiting)] + found[index(Place::other)] + found[index(Place::dead)];
    const auto wrong = [&](const std::string& what) {
        m_wrong.push_back(what + payload + ": pushed " + std::to_string(message.confirmed) +
                          " of " + std::to_string(message.pushes) + " times, delivered " +
                          std::to_string(message.deliveries) + " times, in doubt " +
                          words(message.asked) + ", settled " +
                          (message.settled ? std::to_string(index(*message.settled)) : "no") +
                          ", found " + words(found));
    };
    if (copies < message.least(message.confirmed)) {
        wrong("LOST ");
    } else if (copies < message.least(message.deliveries > 0 ? 1 : 0)) {
        wrong("VANISHED ");
    } else if (copies > message.most()) {
        wrong("DUP ");
    }
    if (message.repeats) {
        return; // one copy may be here, another there
    }
    for (const Place place : {Place::waiting, Place::other, Place::dead}) {
        const bool may_be_here = message.settled
                                     ? message.settled == place
                                     : place == Place::waiting || message.asked[index(place)] > 0;
        if (found[index(place)] > 0 && !may_be_here) {
            wrong("MISPLACED ");
        }
    }
}

inline std::map<std::string, Ledger::PerPlace> Ledger::find_all(RedisClient& redis) {
    std::map<std::string, PerPlace> found;
    const auto note = [&](std::string_view element, Place place) {
        ++found[std::string(element.substr(0, element.find('|')))][index(place)];
    };
    const std::string prefix = "orizuru:{" + m_source + "}:";
    for (const std::string& list : {m_source, prefix + "unack"}) {
        for (const std::string& element : redis.lrange(list)) {
            note(element, Place::waiting);
        }
    }
    for (const std::string& element : redis.lrange(m_other)) {
        note(element, Place::other);
    }
    for (const std::string& element : redis.lrange(prefix + "dead")) {
        note(buried_payload(element), Place::dead);
    }
    for (const std::string& key : redis.keys(prefix + "processing:*")) {
        if (redis.type(key) == "list") {
            m_wrong.push_back("I4: a list of nobody is left: " + key);
            for (const std::string& element : redis.lrange(key, 0, -2)) {
                note(element, Place::waiting);
            }
        }
    }
    return found;
}

/// An entry is [1, payload, reason, ms].
inline std::string Ledger::buried_payload(const std::string& entry) {
    try {
        const msgpack::object_handle handle = msgpack::unpack(entry.data(), entry.size());
        return handle.get().as<std::vector<msgpack::object>>().at(1).as<std::string>();
    } catch (const std::exception&) {
        return "an entry of the dead list that cannot be read";
    }
}

inline std::string Ledger::words(const PerPlace& numbers) {
    return "[gone " + std::to_string(numbers[0]) + ", waiting " + std::to_string(numbers[1]) +
           ", other " + std::to_string(numbers[2]) + ", dead " + std::to_string(numbers[3]) + "]";
}

} // namespace orizuru::test
