// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Any values: what is encoded is decoded to the same, alone and out of an LPUSH of many.
//
// input: the values.

#include "input.hpp"
#include "messages.hpp"
#include "target.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/redis/reply_reader.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace round_trip_target {

using namespace orizuru::test;
using orizuru::Codec;
using orizuru::Raw;
using orizuru::Reply;
using orizuru::detail::PushChunk;
using orizuru::detail::ReplyReader;

// msgpack-c writes a whole number as an integer, which knows no -0.
bool same_number(double a, double b) {
    return a == b || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
bool equal(const Order& a, const Order& b) {
    return a.number == b.number && a.customer == b.customer && a.counts == b.counts &&
           a.paid == b.paid && std::ranges::equal(a.prices, b.prices, same_number);
}
bool equal(const Tree& a, const Tree& b) {
    return std::ranges::equal(a.branches, b.branches,
                              [](const Tree& x, const Tree& y) { return equal(x, y); });
}
template <class T>
bool equal(const T& a, const T& b) {
    return a == b;
}

Order any_order(Input& input) {
    Order order;
    order.number = input.number<std::int64_t>();
    order.customer = input.text();
    for (std::size_t left = input.below(20); left > 0; --left) {
        order.prices.push_back(std::bit_cast<double>(input.number<std::uint64_t>()));
    }
    for (std::size_t left = input.below(20); left > 0; --left) {
        order.counts[input.text()] = input.number<std::uint16_t>();
    }
    if (const std::size_t paid = input.below(3); paid < 2) {
        order.paid = paid == 1;
    }
    return order;
}

// An array of one array of branches: two levels of msgpack's 64 a level.
Tree any_tree(Input& input, int levels = 32) {
    Tree tree;
    for (std::size_t left = levels > 1 ? input.below(4) : 0; left > 0; --left) {
        tree.branches.push_back(any_tree(input, levels - 1));
    }
    return tree;
}

Texts any_texts(Input& input) {
    Texts texts(input.below(40));
    std::ranges::generate(texts, [&] { return input.text(); });
    return texts;
}

Table any_table(Input& input) {
    Table table;
    for (std::size_t left = input.below(20); left > 0; --left) {
        const std::string bytes = input.text();
        table[input.text()] = Bytes(bytes.begin(), bytes.end());
    }
    return table;
}

/// The LPUSH of the values, and its payloads.
class Push {
  public:
    template <class T>
    void add(const T& value) {
        const std::string payload = encoded(value);
        if constexpr (!std::same_as<T, Raw>) {
            check(equal(decoded<T>(payload), value), "what is encoded is decoded to the same");
        }
        const auto source = [&](std::string& out) {
            Codec<T>::encode(value, out);
            return true;
        };
        m_chunk.add(source);
        m_payloads.push_back(payload);
    }

    void compare() {
        ReplyReader reader;
        reader.feed(m_chunk.command());
        const Reply* const command = reader.next();
        check(command != nullptr && command->elements.size() == m_payloads.size() + 2,
              "the command is whole");
        for (std::size_t i = 0; i < m_payloads.size(); ++i) {
            check(command->elements[i + 2].text == m_payloads[i], "each message is in the command");
        }
        check(reader.next() == nullptr, "nothing follows the command");
        m_chunk.clear();
        m_payloads.clear();
    }

  private:
    PushChunk m_chunk{"queue"};
    std::vector<std::string> m_payloads;
};

const orizuru::test::Target target("round_trip", [](Input input) {
    Push push;
    while (!input.empty()) {
        switch (input.below(8)) {
        case 0:
            push.add(input.number<std::int64_t>());
            break;
        case 1:
            push.add(input.text());
            break;
        case 2:
            push.add(any_texts(input));
            break;
        case 3:
            push.add(any_table(input));
            break;
        case 4:
            push.add(any_order(input));
            break;
        case 5:
            push.add(any_tree(input));
            break;
        case 6:
            push.add(Raw{input.text()});
            break;
        default:
            push.compare(); // and use the chunk again
            break;
        }
    }
    push.compare();
});

} // namespace round_trip_target
