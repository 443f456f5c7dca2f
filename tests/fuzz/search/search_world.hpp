// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A state of the whole that is searched: Redis, two consumers with what is under way between them
// and Redis, requests of which the sender has given up (ghosts), what was pushed, and what the
// users were told. In numbers of SearchTables.

#pragma once

#include "fuzz/search/search_tables.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

/// A request on its way to Redis, or a reply on its way back.
struct Parcel {
    enum class Kind : std::uint32_t { none, request, reply };
    Kind kind = Kind::none;
    Number number = 0;
};

struct World {
    struct Client {
        Number consumer = 0; ///< 0: its process has died
        std::array<Parcel, 2> control = {};
        Parcel wait = {};

        [[nodiscard]] bool idle() const noexcept {
            return control[0].kind == Parcel::Kind::none && wait.kind == Parcel::Kind::none;
        }
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
    using Ghost = std::array<Number, 2>; ///< commands, one behind the other; 0: none

    Fixed fixed;
    std::vector<Ghost> ghosts;

    /// Ghosts have no order.
    void add_ghost(Ghost ghost) {
        ghosts.insert(std::upper_bound(ghosts.begin(), ghosts.end(), ghost), ghost);
    }

    [[nodiscard]] std::string key() const {
        std::string bytes(sizeof fixed + ghosts.size() * sizeof(Ghost), '\0');
        std::memcpy(bytes.data(), &fixed, sizeof fixed);
        if (!ghosts.empty()) {
            std::memcpy(bytes.data() + sizeof fixed, ghosts.data(), ghosts.size() * sizeof(Ghost));
        }
        return bytes;
    }
    static World of(std::string_view key) {
        World world;
        std::memcpy(&world.fixed, key.data(), sizeof fixed);
        world.ghosts.resize((key.size() - sizeof fixed) / sizeof(Ghost));
        if (!world.ghosts.empty()) {
            std::memcpy(world.ghosts.data(), key.data() + sizeof fixed,
                        world.ghosts.size() * sizeof(Ghost));
        }
        return world;
    }
};
static_assert(std::has_unique_object_representations_v<World::Fixed>);

} // namespace orizuru::test
