// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Where and how connections can be cut: every byte, both directions, four ways, as numbers.

#pragma once

#include "support/proxy.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

inline constexpr std::array directions{Proxy::Direction::to_server, Proxy::Direction::to_client};
inline constexpr std::array<std::string_view, 2> direction_names{"to_server", "to_client"};
inline constexpr std::array ways{Proxy::Cut::fin, Proxy::Cut::rst, Proxy::Cut::silence,
                                 Proxy::Cut::delay};
inline constexpr std::array<std::string_view, 4> way_names{"fin", "rst", "silence", "delay"};

struct Cut {
    std::size_t direction = 0;
    std::uint64_t bytes = 0;
    std::size_t way = 0;
};

struct CutPoint {
    std::size_t connection = 0;
    Cut cut;
    std::optional<Cut> next; ///< on the connection that is opened after it
};

inline std::ostream& operator<<(std::ostream& out, const Cut& cut) {
    return out << direction_names.at(cut.direction) << '/' << cut.bytes << '/'
               << way_names.at(cut.way);
}

inline std::string to_text(const CutPoint& point) {
    std::ostringstream out;
    out << point.connection << '/' << point.cut;
    if (point.next) {
        out << '/' << *point.next;
    }
    return out.str();
}

template <class Names>
std::size_t index_of(const Names& names, const std::string& name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
        throw std::invalid_argument("no such name: '" + name + "'");
    }
    return static_cast<std::size_t>(found - names.begin());
}

inline std::optional<Cut> read_cut(std::istream& in) {
    std::string direction;
    std::string way;
    Cut cut;
    if (!(in >> direction >> cut.bytes >> way)) {
        return std::nullopt;
    }
    cut.direction = index_of(direction_names, direction);
    cut.way = index_of(way_names, way);
    return cut;
}

/// The reverse of to_text.
inline CutPoint to_cut_point(std::string text) {
    std::ranges::replace(text, '/', ' ');
    std::istringstream in(text);
    CutPoint point;
    in >> point.connection;
    point.cut = read_cut(in).value();
    point.next = read_cut(in);
    return point;
}

/// How many bytes pass in each direction on a connection without a cut.
using Lengths = std::array<std::uint64_t, 2>;

/// All points of a scenario, numbered: before its first byte, and after each byte.
class CutPoints {
  public:
    /// `cuts`: 1, or 2 for one more on the connection opened next, whose number of bytes is not
    /// known yet.
    CutPoints(std::vector<Lengths> connections, std::uint64_t cuts)
        : m_connections(std::move(connections)) {
        for (const Lengths& lengths : m_connections) {
            m_singles += count(lengths);
            m_longest = {std::max(m_longest[0], lengths[0]), std::max(m_longest[1], lengths[1])};
        }
        m_pairs = cuts == 2 ? count(m_longest) : 1;
    }

    [[nodiscard]] std::uint64_t size() const { return m_singles * m_pairs; }

    [[nodiscard]] CutPoint at(std::uint64_t number) const {
        CutPoint point;
        if (m_pairs > 1) {
            point.next = cut(m_longest, number % m_pairs);
        }
        number /= m_pairs;
        while (number >= count(m_connections[point.connection])) {
            number -= count(m_connections[point.connection]);
            ++point.connection;
        }
        point.cut = cut(m_connections[point.connection], number);
        return point;
    }

  private:
    static std::uint64_t count(const Lengths& lengths) {
        return (lengths[0] + 1 + lengths[1] + 1) * ways.size();
    }
    static Cut cut(const Lengths& lengths, std::uint64_t number) {
        const std::size_t way = number % ways.size();
        const std::uint64_t byte = number / ways.size();
        return byte <= lengths[0] ? Cut{0, byte, way} : Cut{1, byte - lengths[0] - 1, way};
    }

    std::vector<Lengths> m_connections;
    Lengths m_longest{};
    std::uint64_t m_singles = 0;
    std::uint64_t m_pairs = 1;
};

} // namespace orizuru::test
