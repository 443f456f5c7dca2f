// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer and a collector, whose every command is answered by anything: what they report is what
// the replies say, and a reply that their command cannot have is an error.
//
// input: the replies.

#include "input.hpp"
#include "replies.hpp"
#include "support/fake_server.hpp"
#include "target.hpp"

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/error.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace answers_target {

using namespace orizuru::test;
using orizuru::Collected;
using orizuru::GarbageCollector;
using orizuru::Producer;
using orizuru::Raw;
using orizuru::Reply;
using orizuru::detail::refers_elsewhere;
using Type = Reply::Type;

struct Exchange {
    std::vector<std::string> argv;
    Reply reply;
};

bool is_script(const std::vector<std::string>& argv, const orizuru::detail::CachedScript& script) {
    return (argv[0] == "EVAL" && argv[1] == script.source()) ||
           (argv[0] == "EVALSHA" && argv[1] == std::string_view(script.sha1()));
}

/// An error that a collector or a producer gets over: it sends the script's text, does without, or
/// pushes once more, by a new connection.
bool is_got_over(const std::vector<std::string>& argv, const Reply& reply) {
    const std::string& name = argv[0];
    const bool dispensable = name == "INFO" || name == "MGET" || name == "SCAN" ||
                             name == "LRANGE" || name == "EXISTS" ||
                             is_script(argv, orizuru::detail::return_suspects_script);
    const bool only_tells =
        name == "SET" || name == "PEXPIRE" || is_script(argv, orizuru::detail::visit_script);
    return reply.is(Type::error) && ((name == "EVALSHA" && reply.code() == "NOSCRIPT") ||
                                     (name == "LPUSH" && refers_elsewhere(reply)) ||
                                     (name == "LRANGE" && reply.code() == "WRONGTYPE") ||
                                     (dispensable && reply.code() == "NOPERM") || only_tells);
}

/// A string or nil for each key.
bool is_of_mget(const std::vector<std::string>& argv, const Reply& reply) {
    return reply.is(Type::array) && reply.elements.size() == argv.size() - 1 &&
           std::ranges::all_of(reply.elements, [](const Reply& element) {
               return element.is(Type::string) || element.is(Type::nil);
           });
}

/// {-1}, {-2}, {-3, time, time} or {moved, apart, buried, payload of each buried, payload and count
/// of each apart}.
bool is_of_reap(const Reply& reply) {
    const auto& parts = reply.elements;
    if (!reply.is(Type::array) || parts.empty()) {
        return false;
    }
    if (parts.size() == 1) {
        return is_number(parts[0], INT64_MIN, -1);
    }
    if (parts.size() < 3 || !is_number(parts[1], 0) || !is_number(parts[2], 0)) {
        return false;
    }
    if (is_number(parts[0], -3, -3)) {
        return parts.size() == 3;
    }
    const std::int64_t apart = parts[1].integer;
    const std::int64_t buried = parts[2].integer;
    const auto texts = static_cast<std::int64_t>(parts.size()) - 3;
    if (!is_number(parts[0], apart) || buried > texts || (texts - buried) % 2 != 0 ||
        (texts - buried) / 2 != apart) {
        return false;
    }
    for (std::int64_t i = 0; i < texts; ++i) {
        const Reply& part = parts[static_cast<std::size_t>(3 + i)];
        const bool count = i >= buried && (i - buried) % 2 == 1;
        if (count ? !is_number(part, 0) : !part.is(Type::string)) {
            return false;
        }
    }
    return true;
}

/// The reply can be one to the command.
bool is_of(const Exchange& exchange) {
    const auto& [argv, reply] = exchange;
    const std::string& name = argv[0];
    if (is_got_over(argv, reply)) {
        return true;
    }
    if (name == "MGET") {
        return is_of_mget(argv, reply);
    }
    if (name == "PING") {
        return reply.is(Type::status);
    }
    if (name == "INFO") {
        return reply.is(Type::string);
    }
    if (name == "SMEMBERS" || name == "LRANGE") {
        return all_strings(reply);
    }
    if (name == "SET") {
        return reply.is(Type::status) || reply.is(Type::nil);
    }
    if (name == "EXISTS" || name == "PEXPIRE") {
        return reply.is(Type::integer);
    }
    if (name == "SCAN") {
        return reply.is(Type::array) && reply.elements.size() == 2 &&
               reply.elements[0].is(Type::string) && all_strings(reply.elements[1]);
    }
    if (name == "LLEN") {
        return is_number(reply, 0);
    }
    if (name == "LPUSH") {
        return is_number(reply, 1);
    }
    if (is_script(argv, orizuru::detail::refill_script)) {
        return is_number(reply, 0, std::stoll(argv.back()));
    }
    return is_script(argv, orizuru::detail::reap_script) ? is_of_reap(reply) : is_number(reply, 0);
}

/// Answers from the input and keeps what was said.
class Replies {
  public:
    void begin(Input& input) {
        const std::lock_guard lock(m_mutex);
        m_input = &input;
        m_said.clear();
    }
    /// Since the last call.
    std::vector<Exchange> take_said() {
        const std::lock_guard lock(m_mutex);
        return std::exchange(m_said, {});
    }
    void end() {
        const std::lock_guard lock(m_mutex);
        m_input = nullptr;
    }
    [[nodiscard]] bool left() {
        const std::lock_guard lock(m_mutex);
        return !m_input->empty();
    }

    std::optional<std::string> answer(const std::vector<std::string>& argv) {
        const std::lock_guard lock(m_mutex);
        if (m_input == nullptr || m_input->empty()) {
            return std::nullopt;
        }
        Exchange exchange{argv, reply_to(argv)};
        m_said.push_back(exchange);
        return written(exchange.reply);
    }

  private:
    static std::string text(Input& input) {
        constexpr std::array words{"0",
                                   "a",
                                   "NOSCRIPT",
                                   "NOPERM",
                                   "uptime_in_seconds:9\r\n",
                                   "\r\nuptime_in_seconds:99\r\n",
                                   "\r\nuptime_in_seconds:99\r\nmaxmemory_policy:allkeys-lru\r\n",
                                   "orizuru:{queue}:processing:",
                                   "orizuru:{queue}:processing:l:h:1:0123456789abcdef"};
        const std::size_t word = input.below(words.size() + 1);
        return word < words.size() ? words[word] : input.text();
    }

    /// Half of them are such as the command can have.
    Reply reply_to(const std::vector<std::string>& argv) {
        Reply reply = any_reply(*m_input, text, 2);
        std::erase_if(reply.text, [](char c) { return c == '\r' || c == '\n'; });
        if (argv[0] == "PING" && m_input->below(8) > 0) {
            return {Type::status, 0, "PONG", {}};
        }
        if (argv[0] == "INFO" && m_input->below(4) > 0) {
            return {Type::string, 0, text(*m_input), {}};
        }
        if (argv[0] == "MGET" && m_input->below(2) > 0) {
            return {Type::array, 0, {}, std::vector<Reply>(argv.size() - 1)};
        }
        if (argv[0] == "SCAN" && m_input->below(2) > 0) {
            const Reply cursor{Type::string, 0, "0", {}};
            const Reply key{Type::string, 0, text(*m_input), {}};
            return {Type::array, 0, {}, {cursor, {Type::array, 0, {}, {key}}}};
        }
        if (is_script(argv, orizuru::detail::reap_script) && m_input->below(2) > 0) {
            reply = {Type::array, 0, {}, {}};
            const auto add_number = [&](std::size_t number) {
                reply.elements.push_back(
                    {Type::integer, static_cast<std::int64_t>(number), {}, {}});
            };
            const auto add_payload = [&] {
                reply.elements.push_back({Type::string, 0, "payload", {}});
            };
            add_number(3);
            add_number(m_input->below(3));
            add_number(m_input->below(3));
            for (std::size_t i = m_input->below(3); i > 0; --i) {
                add_payload();
            }
            for (std::size_t i = m_input->below(3); i > 0; --i) {
                add_payload();
                add_number(m_input->below(3));
            }
        }
        return reply;
    }

    std::mutex m_mutex;
    Input* m_input = nullptr;
    std::vector<Exchange> m_said;
};

void check_shapes(const std::vector<Exchange>& said) {
    for (const Exchange& exchange : said) {
        check(is_of(exchange), "a reply that its command cannot have is an error");
    }
}

void check_pass(const Collected& collected, const std::vector<Exchange>& said) {
    check_shapes(said);
    Collected sum;
    for (const auto& [argv, reply] : said) {
        if (is_got_over(argv, reply)) {
            continue;
        }
        if (is_script(argv, orizuru::detail::refill_script)) {
            sum.unacked += static_cast<std::uint64_t>(reply.integer);
        } else if (is_script(argv, orizuru::detail::reap_script) && reply.elements.size() > 1 &&
                   reply.elements[0].integer >= 0) {
            sum.consumers += 1;
            sum.reclaimed += static_cast<std::uint64_t>(reply.elements[0].integer);
            sum.suspects += static_cast<std::uint64_t>(reply.elements[1].integer);
            sum.buried += static_cast<std::uint64_t>(reply.elements[2].integer);
        }
    }
    check(collected == sum, "a pass reports what the replies say");
}

/// More than one pass: what lies in a list of nobody is returned by the second.
void collect(Replies& replies, const orizuru::Endpoint& endpoint) {
    GarbageCollector collector(endpoint, "queue", {.batch = 2});
    do {
        const Collected collected = collector.collect();
        check_pass(collected, replies.take_said());
    } while (replies.left());
}

void push(Replies& replies, const orizuru::Endpoint& endpoint) {
    const std::vector<Raw> messages(3, Raw{"message"});
    Producer<Raw> producer(endpoint, "queue");
    const std::array lengths{producer.push(messages[0]), producer.push_all(messages),
                             producer.size()};
    const std::vector<Exchange> said = replies.take_said();
    check_shapes(said);
    std::vector<std::uint64_t> told;
    for (const auto& [argv, reply] : said) {
        if (argv[0] != "PING" && !is_got_over(argv, reply)) {
            told.push_back(static_cast<std::uint64_t>(reply.integer));
        }
    }
    check(std::ranges::equal(lengths, told), "a push reports what the reply says");
}

const orizuru::test::Target target("answers", [](Input input) {
    static Replies replies;
    static FakeServer server([](const auto& argv) { return replies.answer(argv); });
    static const orizuru::Endpoint endpoint(server.uri());
    const bool pushes = input.below(2) == 0;
    replies.begin(input);
    try {
        pushes ? push(replies, endpoint) : collect(replies, endpoint);
    } catch (const orizuru::Error&) { // NOLINT(bugprone-empty-catch)
        // One that the library names.
    }
    replies.end();
});

} // namespace answers_target
