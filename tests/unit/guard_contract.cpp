// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What the types of the API can and cannot do, as far as a compiler can tell.

#include <orizuru/orizuru.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace guard_contract_test {

using namespace orizuru;
using std::chrono::milliseconds;

struct Plain {};

/// Can be read, not written.
struct ReadOnly {};

/// Moves with leave to throw, and does not copy.
struct Jumpy {
    Jumpy() = default;
    Jumpy(Jumpy&&) noexcept(false) {}
};

} // namespace guard_contract_test

template <>
struct orizuru::Codec<guard_contract_test::ReadOnly> {
    static guard_contract_test::ReadOnly decode(std::string_view) { return {}; }
};
template <>
struct orizuru::Codec<guard_contract_test::Jumpy> {
    static guard_contract_test::Jumpy decode(std::string_view) { return {}; }
};

namespace guard_contract_test {

// A guard: one owner, moved without an exception whatever T is.
template <class T>
constexpr bool is_move_only =
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
    std::is_nothrow_destructible_v<T> && std::is_nothrow_swappable_v<T>;

static_assert(is_move_only<MessageGuard<Raw>>);
static_assert(is_move_only<MessageGuard<std::vector<int>>>);
static_assert(is_move_only<MessageGuard<Jumpy>>);
static_assert(!std::is_nothrow_move_constructible_v<Jumpy>);
static_assert(!std::is_default_constructible_v<MessageGuard<Raw>>);

template <class T>
using Guard = MessageGuard<T>;

static_assert(std::same_as<decltype(*std::declval<const Guard<Raw>&>()), const Raw&>);
static_assert(std::same_as<decltype(std::declval<const Guard<Raw>&>().operator->()), const Raw*>);
static_assert(
    std::same_as<decltype(std::declval<const Guard<Raw>&>().payload()), std::string_view>);
static_assert(std::same_as<decltype(std::declval<Guard<Raw>&>().ack()), bool>);
static_assert(std::same_as<decltype(std::declval<Guard<Raw>&>().reject()), bool>);
static_assert(std::same_as<decltype(std::declval<Guard<Raw>&>().release()), bool>);
static_assert(std::same_as<decltype(std::declval<Guard<Raw>&>().push("q")), bool>);
static_assert(std::same_as<decltype(std::declval<Guard<Raw>&>().push("q", Raw())), bool>);
static_assert(std::same_as<decltype(std::declval<Guard<Raw>&>().bury()), bool>);
static_assert(std::same_as<decltype(std::declval<Guard<Raw>&>().bury("why")), bool>);
static_assert(std::same_as<decltype(std::declval<Guard<Raw>&>().settle(
                               std::declval<const Script&>(), {"key"}, {"arg"})),
                           bool>);
static_assert(noexcept(std::declval<const Guard<Raw>&>().settled()));

template <class G, class T>
concept replaces = requires(G& guard, const T& value) {
    guard.push("q", value);
};
static_assert(replaces<Guard<Raw>, Raw>);
static_assert(!replaces<Guard<ReadOnly>, ReadOnly>, "what cannot be written cannot replace");

// A guard is settled by whoever owns it, not by a reader of it.
template <class G>
concept acks = requires(G& guard) {
    guard.ack();
};
static_assert(acks<Guard<Raw>>);
static_assert(!acks<const Guard<Raw>>);

// A consumer, a producer, a collector.
static_assert(!std::is_copy_constructible_v<Consumer<Raw>>);
static_assert(!std::is_move_constructible_v<Consumer<Raw>>);
static_assert(std::is_nothrow_destructible_v<Consumer<Raw>>);
static_assert(!std::is_copy_constructible_v<Producer<Raw>>);
static_assert(std::is_constructible_v<Consumer<Raw>, const char*, const char*>);
static_assert(std::is_constructible_v<Consumer<Raw>, std::string_view, std::string>);
static_assert(
    std::is_constructible_v<Consumer<Raw>, Endpoint, std::string, const ConsumerOptions&>);
static_assert(std::is_constructible_v<Producer<Raw>, Endpoint, std::string, ProducerOptions>);
static_assert(std::is_constructible_v<GarbageCollector, Endpoint, std::string>);
static_assert(
    std::is_constructible_v<GarbageCollector, Endpoint, std::string, GarbageCollectorOptions>);

using Next = std::optional<MessageGuard<Raw>>;
static_assert(std::same_as<decltype(std::declval<Consumer<Raw>&>().next()), Next>);
static_assert(std::same_as<decltype(std::declval<Consumer<Raw>&>().next(milliseconds(1))), Next>);
static_assert(
    std::same_as<decltype(std::declval<Consumer<Raw>&>().next(std::chrono::seconds(1))), Next>);
static_assert(std::same_as<decltype(std::declval<Consumer<Raw>&>().next(std::stop_token())), Next>);
static_assert(
    std::same_as<decltype(std::declval<Consumer<Raw>&>().next(std::stop_token(), milliseconds(1))),
                 Next>);
static_assert(std::same_as<decltype(std::declval<Consumer<Raw>&>().flush()), std::size_t>);
static_assert(std::same_as<decltype(std::declval<Consumer<Raw>&>().size()), std::uint64_t>);
static_assert(std::same_as<decltype(std::declval<const Consumer<Raw>&>().name()), std::string>);
static_assert(noexcept(std::declval<Consumer<Raw>&>().stop()));
static_assert(noexcept(std::declval<const Consumer<Raw>&>().stopped()));
static_assert(std::ranges::input_range<Consumer<Raw>>);

static_assert(std::same_as<decltype(std::declval<Producer<Raw>&>().push(Raw())), std::uint64_t>);
static_assert(std::same_as<decltype(std::declval<Producer<Raw>&>().size()), std::uint64_t>);
template <class P, class R>
concept pushes_all = requires(P& producer, R&& range) {
    { producer.push_all(std::forward<R>(range)) } -> std::same_as<std::uint64_t>;
};
static_assert(pushes_all<Producer<Raw>, std::vector<Raw>&>);
static_assert(pushes_all<Producer<Raw>, const std::vector<Raw>&>);
static_assert(pushes_all<Producer<Raw>, std::vector<Raw>>);
static_assert(pushes_all<Producer<Raw>, std::initializer_list<Raw>>);
static_assert(pushes_all<Producer<std::string>, std::vector<const char*>>);
static_assert(!pushes_all<Producer<Raw>, std::vector<int>>);
static_assert(!pushes_all<Producer<Raw>, int>);

static_assert(std::same_as<decltype(std::declval<GarbageCollector&>().collect()), Collected>);
static_assert(std::is_void_v<decltype(std::declval<GarbageCollector&>().run(std::stop_token(),
                                                                            milliseconds(1)))>);

// Codecs.
static_assert(!MessageEncodable<Plain> && !MessageDecodable<Plain>);
static_assert(!MessageEncodable<ReadOnly> && MessageDecodable<ReadOnly>);
static_assert(MessageEncodable<Raw> && MessageDecodable<Raw>);
static_assert(MessageEncodable<std::string> && MessageDecodable<std::string>);

// Options are aggregates, every member with a default, in the order that users write them.
static_assert(std::is_aggregate_v<ConsumerOptions> && std::is_aggregate_v<GarbageCollectorOptions>);
static_assert(std::is_aggregate_v<ProducerOptions>);
const ConsumerOptions every_consumer_option{.name = "n",
                                            .lease = milliseconds(1),
                                            .prefetch = 1,
                                            .ack = AckMode::deferred,
                                            .max_payload = 1,
                                            .on_event = [](const Event&) {},
                                            .on_beat = [] {}};
const GarbageCollectorOptions every_collector_option{.max_recoveries = 1,
                                                     .batch = 1,
                                                     .grace = milliseconds(1),
                                                     .dead_limit = 1,
                                                     .on_event = [](const Event&) {},
                                                     .blamed = 10};

TEST_CASE("the options that nobody chose are those of the design") {
    const ConsumerOptions consumer;
    CHECK(consumer.name == "consumer");
    CHECK(consumer.lease == std::chrono::seconds(30));
    CHECK(consumer.prefetch == 1);
    CHECK(consumer.ack == AckMode::immediate);
    CHECK(consumer.max_payload == 16 * 1024 * 1024);
    CHECK(consumer.on_event);
    CHECK_FALSE(consumer.on_beat);
    const GarbageCollectorOptions collector;
    CHECK(collector.max_recoveries == 3);
    CHECK(collector.batch == 1000);
    CHECK(collector.grace == std::chrono::seconds(10));
    CHECK(collector.dead_limit == 0);
    CHECK(collector.on_event);
    CHECK(collector.blamed == 1);
    CHECK(every_consumer_option.prefetch == 1);
    CHECK(every_collector_option.batch == 1);
}

} // namespace guard_contract_test
