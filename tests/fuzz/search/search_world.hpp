// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A state of the whole that is searched: Redis, two consumers with what is under way between them
// and Redis, requests of which the sender has given up (ghosts), what was pushed, and what the
// users were told. In numbers of SearchTables.

#pragma once

#include "fuzz/search/search_tables.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace orizuru::test {

/// A request on its way to Redis, or a reply on its way back.
struct Parcel {
    enum class Kind : std::uint8_t {
        none,
        request,
        old, ///< a request of an earlier incarnation: its reply will not count
        reply
    };
    Number number = 0;
    Kind kind = Kind::none;
    std::uint8_t who = 0; ///< a consumer
    std::uint16_t unused = 0;

    /// It has not run.
    [[nodiscard]] bool runs() const noexcept { return kind == Kind::request || kind == Kind::old; }
};

/// What is under way on a control connection, the first one first.
class Line {
  public:
    /// Of two consumers: what is unanswered when they come to recover, and their ADOPTs.
    static constexpr std::size_t most = 6;

    [[nodiscard]] auto begin() noexcept { return m_parcels.begin(); }
    [[nodiscard]] auto end() noexcept { return m_parcels.begin() + m_size; }
    [[nodiscard]] auto begin() const noexcept { return m_parcels.begin(); }
    [[nodiscard]] auto end() const noexcept { return m_parcels.begin() + m_size; }
    [[nodiscard]] bool empty() const noexcept { return m_size == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(m_size); }

    void push_back(const Parcel& parcel) noexcept {
        assert(size() < most);
        m_parcels[size()] = parcel;
        ++m_size;
    }
    void erase(const Parcel* parcel) noexcept {
        auto* const at = m_parcels.data() + (parcel - m_parcels.data());
        std::copy(at + 1, m_parcels.data() + m_size, at);
        m_parcels[static_cast<std::size_t>(--m_size)] = {};
    }
    [[nodiscard]] Parcel* first_request() noexcept {
        const auto found = std::find_if(begin(), end(), [](const Parcel& p) { return p.runs(); });
        return found == end() ? nullptr : &*found;
    }
    [[nodiscard]] bool has(std::size_t who, Parcel::Kind kind) const noexcept {
        return std::any_of(begin(), end(), [&](const Parcel& parcel) {
            return parcel.who == who && parcel.kind == kind;
        });
    }
    /// A recovery of the consumer begins: replies to what it sent are not read any more.
    void outdate(std::size_t who) noexcept {
        for (std::size_t i = size(); i-- > 0;) {
            Parcel& parcel = m_parcels[i];
            if (parcel.who == who && parcel.kind == Parcel::Kind::reply) {
                erase(&parcel);
            } else if (parcel.who == who) {
                parcel.kind = Parcel::Kind::old;
            }
        }
    }

  private:
    std::array<Parcel, most> m_parcels = {};
    std::ptrdiff_t m_size = 0;
};

struct World {
    struct Client {
        Number consumer = 0; ///< 0: its process has died
        Parcel wait = {};
    };
    struct Fixed {
        Number redis = 0;
        std::array<Client, 2> clients = {};
        std::uint8_t pushed = 0; ///< of the messages that the producer has
        std::uint8_t faults = 0; ///< that may still come
        std::uint8_t odd = 0;    ///< settlements other than acks that may still be asked for
        std::uint8_t unused = 0;
        Counts acked = {};   ///< acks that said true
        Counts unknown = {}; ///< acks of which a dead process did not learn
    };
    using Ghost = std::array<Number, Line::most>; ///< commands, one behind the other; 0: none

    Fixed fixed;
    std::array<Line, 2> lines; ///< both consumers may be on the first
    std::vector<Ghost> ghosts;

    /// Ghosts have no order.
    void add_ghost(const Ghost& ghost) {
        if (ghost[0] != 0) {
            ghosts.insert(std::upper_bound(ghosts.begin(), ghosts.end(), ghost), ghost);
        }
    }

    [[nodiscard]] std::string key() const;
    static World of(std::string_view key);
};
static_assert(std::has_unique_object_representations_v<World::Fixed>);
static_assert(std::has_unique_object_representations_v<Parcel>);

inline std::string World::key() const {
    std::string bytes;
    bytes.reserve(sizeof fixed + (lines[0].size() + lines[1].size() + 1) * sizeof(Parcel) +
                  ghosts.size() * 3 * sizeof(Number));
    const auto add = [&bytes](const auto& value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    add(fixed);
    for (const Line& line : lines) {
        std::for_each(line.begin(), line.end(), add);
        add(Number{0}); // no parcel has this number
    }
    for (const Ghost& ghost : ghosts) {
        std::for_each(ghost.begin(), std::find(ghost.begin(), ghost.end(), Number{0}), add);
        add(Number{0});
    }
    return bytes;
}

inline World World::of(std::string_view key) {
    const auto take = [&key](auto& value) {
        std::memcpy(&value, key.data(), sizeof value);
        key.remove_prefix(sizeof value);
    };
    const auto ends = [&key] {
        Number number;
        std::memcpy(&number, key.data(), sizeof number);
        if (number == 0) {
            key.remove_prefix(sizeof number);
        }
        return number == 0;
    };
    World world;
    take(world.fixed);
    for (Line& line : world.lines) {
        while (!ends()) {
            Parcel parcel;
            take(parcel);
            line.push_back(parcel);
        }
    }
    while (!key.empty()) {
        Ghost& ghost = world.ghosts.emplace_back();
        for (std::size_t i = 0; !ends(); ++i) {
            take(ghost.at(i));
        }
    }
    return world;
}

} // namespace orizuru::test
