// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Knows what must be true of a queue's messages, whatever happened: each that was pushed is in
// exactly one list of the queue, unless its ack said true. What is unknown when a process dies is
// unknown to the exact number, and nothing else is.

#pragma once

#include "fuzz/model/server.hpp"
#include "fuzz/simulation/violation.hpp"

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/keys.hpp>

#include <msgpack.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

/// How a user settles a message.
enum class Settling {
    ack,
    reject,  ///< as it is to the unack list, from where it comes back
    push,    ///< as it is to another queue
    replace, ///< other bytes to another queue
    bury,
    give_back,
    record, ///< a body that writes to a key of its own
    refuse, ///< a body that will not have it
    fail,   ///< a body that writes and then fails
    wrong_target
};

enum class Lease { held, lost };

class Oracle {
  public:
    Oracle(const Keys& keys, bool unique, bool exact)
        : m_keys(keys), m_unique(unique), m_exact(exact) {}

    void issued(const detail::Identity& identity) { m_prefixes.insert(identity.header_prefix()); }
    void pushed(const std::string& payload) { ++m_counts[payload].pushed; }

    /// A consumer that lost its lease may hand out what another has settled; it cannot know.
    void handed_out(const std::string& payload, Lease lease) {
        const auto known = m_counts.find(payload);
        if (known == m_counts.end()) {
            throw Violation("a message that nobody pushed was delivered: " + payload);
        }
        if (m_exact && m_unique && lease == Lease::held && known->second.finished) {
            throw Violation("I6: " + payload + " was delivered after its settlement said true");
        }
    }

    /// A mark that no other settlement has.
    int new_mark() {
        m_marks.push_back(Mark::none);
        return static_cast<int>(m_marks.size()) - 1;
    }
    static std::string marked(const std::string& payload, int mark) {
        return payload + "|" + std::to_string(mark);
    }

    void asked(const std::string& payload, Settling how) {
        if (how == Settling::ack) {
            ++m_counts[payload].ack_asked;
        }
    }
    void said_true(const std::string& payload, Settling how, int mark) {
        if (how == Settling::refuse || how == Settling::fail || how == Settling::wrong_target) {
            throw Violation("a settlement that cannot run was said to have run: " + payload);
        }
        Count& count = m_counts[payload];
        count.acked += how == Settling::ack ? 1 : 0;
        count.finished |= how != Settling::give_back && how != Settling::reject;
        if (how == Settling::replace || how == Settling::record) {
            m_marks[static_cast<std::size_t>(mark)] = Mark::one;
        }
    }
    /// The process died before it could know.
    void unknown(const std::string& payload, Settling how, int mark) {
        m_counts[payload].unknown += how == Settling::ack ? 1 : 0;
        if (how == Settling::replace || how == Settling::record) {
            m_marks[static_cast<std::size_t>(mark)] = Mark::any;
        }
    }

    /// The settlement of a suspect said true, and its recoveries were counted in this field.
    void count_ended(const std::string& field) { m_ended.insert(field); }

    /// The key of a list or string, besides the library's own, that belongs to the queue.
    [[nodiscard]] std::string key(std::string_view name) const {
        return std::string(name) + ':' + m_keys.source();
    }
    [[nodiscard]] bool owns(const std::string& name) const {
        return name == m_keys.source() || name == m_keys.unack() || name == m_keys.dead() ||
               name == m_keys.suspects() || name.starts_with(m_keys.processing("")) ||
               name.ends_with(key(""));
    }

    /// Throws Violation unless all of the queue is as it must be.
    void check(Server& redis) const;
    /// The list of a mirror that has nothing under way.
    void check_list(Server& redis, const detail::Identity& identity,
                    const detail::Fifo<detail::DeliveryPtr>& messages) const;

  private:
    enum class Mark { none, one, any };
    struct Count {
        int pushed = 0;
        int ack_asked = 0;
        int acked = 0;
        int unknown = 0;
        bool finished = false; ///< it must never be delivered again when no two are equal
    };
    struct Found {
        std::map<std::string, int> payloads;
        std::map<int, int> marks;
    };

    [[nodiscard]] bool is_header(std::string_view text) const {
        return m_prefixes.contains(std::string(text.substr(0, text.rfind(':') + 1)));
    }
    [[nodiscard]] Found find_all(Server& redis) const;
    void check_counts(Server& redis) const;
    static std::string buried_payload(const std::string& entry);

    const Keys& m_keys;
    bool m_unique;
    bool m_exact;
    std::set<std::string> m_prefixes;
    std::map<std::string, Count> m_counts;
    std::vector<Mark> m_marks;
    std::set<std::string> m_ended;
};

inline std::string Oracle::buried_payload(const std::string& entry) {
    try {
        const msgpack::object_handle handle = msgpack::unpack(entry.data(), entry.size());
        const auto& parts = handle.get().as<std::vector<msgpack::object>>();
        if (parts.size() == 4 && parts[0].as<int>() == 2 && !parts[2].as<std::string>().empty() &&
            parts[3].as<std::int64_t>() > 1'600'000'000'000) {
            return parts[1].as<std::string>();
        }
    } catch (const std::exception&) {
        // as below
    }
    throw Violation("an entry of the dead list is not [2, payload, reason, ms]");
}

inline Oracle::Found Oracle::find_all(Server& redis) const {
    Found found;
    for (const std::string& name : redis.keys()) {
        if (!owns(name) || redis.type(name) != "list" || name == key("partial")) {
            continue;
        }
        Words list = redis.list(name);
        if (name.starts_with(m_keys.processing("")) && is_header(list.back())) {
            list.pop_back();
        }
        for (const std::string& element : list) {
            if (is_header(element)) {
                throw Violation("a marker was left in " + name);
            }
            const std::string text = name == m_keys.dead() ? buried_payload(element) : element;
            const auto bar = text.find('|');
            ++found.payloads[text.substr(0, bar)];
            if (bar != std::string::npos) {
                ++found.marks[std::stoi(text.substr(bar + 1))];
            }
        }
    }
    return found;
}

// A consumer that dies later may be holding an equal message.
inline void Oracle::check_counts(Server& redis) const {
    for (const std::string& field : m_ended) {
        if (m_unique && m_exact &&
            !redis.command({"HGET", m_keys.recoveries(), field}).is(Reply::Type::nil)) {
            throw Violation("recoveries of a settled suspect are left in " + field);
        }
    }
}

inline void Oracle::check(Server& redis) const {
    check_counts(redis);
    Found found = find_all(redis);
    for (const auto& [payload, in_lists] : found.payloads) {
        if (!m_counts.contains(payload)) {
            throw Violation("nobody pushed " + payload);
        }
    }
    for (const auto& [payload, count] : m_counts) {
        const int in_lists = found.payloads[payload];
        if (!m_exact) {
            if (in_lists + count.ack_asked < 1) {
                throw Violation("LOST " + payload);
            }
            continue;
        }
        const int missing = count.pushed - in_lists - count.acked;
        if (missing < 0 || missing > count.unknown) {
            throw Violation((missing < 0 ? "DUP " : "LOST ") + payload + ": pushed " +
                            std::to_string(count.pushed) + ", in lists " +
                            std::to_string(in_lists) + ", acks that said true " +
                            std::to_string(count.acked) + ", unknown " +
                            std::to_string(count.unknown));
        }
    }
    for (std::size_t mark = 0; m_exact && mark < m_marks.size(); ++mark) {
        const int times = found.marks[static_cast<int>(mark)];
        const int least = m_marks[mark] == Mark::one ? 1 : 0;
        const int most = m_marks[mark] == Mark::none ? 0 : 1;
        if (times < least || times > most) {
            throw Violation("settlement " + std::to_string(mark) + " wrote " +
                            std::to_string(times) + " times what it should write " +
                            std::to_string(least) + " to " + std::to_string(most) + " times");
        }
    }
}

inline void Oracle::check_list(Server& redis, const detail::Identity& identity,
                               const detail::Fifo<detail::DeliveryPtr>& messages) const {
    const std::string name = m_keys.processing(identity.id);
    if (redis.type(name) == "string") {
        return; // a collector came, and the consumer does not know yet
    }
    const Words list = redis.list(name);
    std::string mirror;
    std::string in_redis;
    for (const detail::DeliveryPtr& message : messages) {
        mirror += ' ' + message->payload;
    }
    for (auto element = list.rbegin(); element != list.rend(); ++element) {
        if (element != list.rbegin()) {
            in_redis += ' ' + *element;
        }
    }
    if (list.empty() || !identity.version(list.back()) || mirror != in_redis) {
        throw Violation("the mirror holds" + mirror + ", the list" + in_redis);
    }
}

} // namespace orizuru::test
