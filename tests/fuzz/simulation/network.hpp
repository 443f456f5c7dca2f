// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The way to Redis: runs commands, refuses some, and keeps those of which the sender has given up
// but which may still run at any time later (ghosts).

#pragma once

#include "fuzz/simulation/context.hpp"
#include "fuzz/simulation/violation.hpp"

#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

struct Request {
    enum class Kind { start, adopt, settle, move, suspect, release, fetch };
    Words words;
    Kind kind;
    bool blocked = false; ///< it has run, found nothing and waits
};

class Network {
  public:
    explicit Network(Context& context) : m_context(context) {}

    /// Runs a command at once, with the sabotage.
    Reply run(Words words) { return run(std::move(words), m_context.users.all_rights); }
    /// What Redis, a replica or a proxy may answer instead of running a request, or after running
    /// it.
    Reply refuse(const Request& request);

    /// The sender gave up on commands that are still on their way on this connection.
    void add_ghosts(std::deque<Words> commands, int connection) {
        if (!commands.empty()) {
            m_ghosts.push_back({std::move(commands), connection});
        }
    }
    [[nodiscard]] bool has_ghosts() const noexcept { return !m_ghosts.empty(); }
    /// Whether Redis has the connection of which the sender has given up. It may notice late that
    /// one is gone that brings nothing more.
    [[nodiscard]] bool knows(int connection) {
        return m_context.strikes(0.2) ||
               std::ranges::find(m_ghosts, connection, &Ghost::connection) != m_ghosts.end();
    }
    void run_ghost();
    /// The fence with this key and text has ended: nothing that was sent before it may still come.
    void end_fence(const std::string& key, const std::string& text) {
        constexpr std::string_view adopted = "adopted ";
        m_ended_fences[key] =
            text.starts_with(adopted) ? number_of(text.substr(adopted.size())) : 0;
    }
    [[nodiscard]] bool has_ended(const std::string& fence) const {
        return m_ended_fences.contains(fence);
    }

    void say(std::string_view what, const Words& words) const;
    void say(std::string_view what, const Reply& reply) const;
    static Reply error(std::string_view text) {
        return Reply{Reply::Type::error, 0, std::string(text), {}};
    }

  private:
    struct Ghost {
        std::deque<Words> commands;
        int connection;
    };

    Reply run(Words words, Server& redis);
    void check_fences(const Words& words) const;
    /// An identity's, which is greater than those of all that were made before.
    static int number_of(const std::string& id) { return std::stoi(id.substr(id.find(':') + 1)); }
    void spoil(Words& words);
    Reply refuse_registration(const Request& request);
    static void show(const Reply& reply);

    Context& m_context;
    std::vector<Ghost> m_ghosts;
    std::map<std::string, int> m_ended_fences; ///< with the number of the heir, or 0
};

inline void Network::run_ghost() {
    if (m_ghosts.empty()) {
        return;
    }
    const std::size_t chosen = m_context.chance.below(m_ghosts.size());
    std::deque<Words>& ghost = m_ghosts[chosen].commands;
    check_fences(ghost.front());
    const bool waits = ghost.front().front() == "BLMOVE";
    if (run(ghost.front()).is(Reply::Type::nil) && waits && m_context.strikes(0.8)) {
        return; // a half-open connection: Redis holds it to be waiting
    }
    m_context.faults.came("ran after the client gave up");
    ghost.pop_front();
    if (ghost.empty()) {
        m_ghosts.erase(m_ghosts.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
}

// An ADOPT that was sent after the fence brings an heir with an empty list, which a collector
// takes.
inline void Network::check_fences(const Words& words) const {
    const bool adopts = words.front() == "EVAL" && words[1] == detail::adopt_script();
    const bool shown = m_context.exact() || m_context.has(Defect::beats_while_leaving);
    for (const std::string& word : words) {
        const auto ended = m_ended_fences.find(word);
        if (!shown || ended == m_ended_fences.end()) {
            continue;
        }
        if (!adopts || number_of(words.at(9)) < ended->second) {
            throw Violation("a late request came after the end of its fence: " + words.front() +
                            " for " + word);
        }
    }
}

inline Reply Network::refuse(const Request& request) {
    using namespace std::string_view_literals;
    using Kind = Request::Kind;
    static constexpr std::array any{"BUSY a script runs"sv,     "LOADING the data"sv,
                                    "TRYAGAIN later"sv,         "MISCONF on disk"sv,
                                    "NOREPLICAS enough"sv,      "OOM no memory"sv,
                                    "READONLY a replica"sv,     "MASTERDOWN no master"sv,
                                    "CLUSTERDOWN no cluster"sv, "NOPERM not this user"sv};
    constexpr std::size_t passing = 6; // the first ones
    Chance& chance = m_context.chance;
    Faults& faults = m_context.faults;
    if (m_context.scenario.only_refusals_that_pass) {
        return error(any[chance.below(passing)]);
    }
    if (request.kind == Kind::start || request.kind == Kind::adopt) {
        return refuse_registration(request);
    }
    if (request.kind == Kind::fetch) {
        faults.came("fetch refused");
        return error(chance.happens(0.1) ? "UNBLOCKED by force"sv : chance.pick(any));
    }
    const std::size_t chosen = chance.below(any.size() + 5);
    if (request.kind == Kind::release) {
        faults.came("release refused");
    }
    if (chosen < any.size()) {
        faults.came("refused " + std::string(any[chosen].substr(0, any[chosen].find(' '))));
        return error(any[chosen]);
    }
    if (chosen == any.size()) {
        faults.came("refused NOSCRIPT");
        return error("NOSCRIPT forgotten");
    }
    if (chosen == any.size() + 1) {
        faults.came("refused ERR");
        return error("ERR nobody knows why");
    }
    if (chosen == any.size() + 2 && (request.kind == Kind::move || request.kind == Kind::suspect)) {
        faults.came(request.kind == Kind::move ? "MOVE without rights" : "TRY without rights");
        return run(request.words, m_context.users.may_not_settle);
    }
    if (chosen == any.size() + 3 && request.kind == Kind::settle) {
        faults.came("SETTLE without rights");
        return run(request.words, m_context.users.may_not_put);
    }
    faults.came("a reply of the wrong type");
    if (chance.happens(0.5)) {
        run(request.words);
    }
    return Reply{Reply::Type::status, 0, "ODD", {}};
}

inline Reply Network::refuse_registration(const Request& request) {
    using namespace std::string_view_literals;
    const bool start = request.kind == Request::Kind::start;
    if (start && m_context.chance.happens(0.5)) {
        const std::string& heartbeat = request.words.at(3);
        const bool before = m_context.redis.exists(heartbeat);
        Reply reply = run(request.words, m_context.users.may_not_settle);
        if (reply.code() == "NOPERM") {
            m_context.faults.came("START without rights");
            if (before != m_context.redis.exists(heartbeat)) {
                throw Violation("START wrote before it was refused");
            }
        }
        return reply;
    }
    m_context.faults.came(start ? "START refused" : "ADOPT refused");
    const std::string_view passing = start ? "LOADING the data"sv : "BUSY a script runs"sv;
    return error(m_context.chance.happens(0.5) ? passing : "READONLY a replica"sv);
}

inline Reply Network::run(Words words, Server& redis) {
    say("runs", words);
    const bool adopts = words.front() == "EVAL" && words[1] == detail::adopt_script();
    const bool beats = words.front() == "EVAL" && words[1] == detail::beat_script();
    if (words.front() == "BLMOVE") {
        words.front() = "LMOVE"; // to wait or not is the simulation's
        words.pop_back();
    }
    spoil(words);
    Reply reply = redis.run(words);
    say("  ->", reply);
    if (beats && reply.is(Reply::Type::integer) && reply.integer != 0) { // 0: fenced
        m_context.series[words.at(6)].write();
    }
    if (adopts && m_context.has(Defect::hidden_header) && reply.is(Reply::Type::array)) {
        reply.elements.at(0).text.clear();
    }
    return reply;
}

inline void Network::spoil(Words& words) {
    const Sabotage* sabotage = m_context.sabotage;
    if (sabotage == nullptr || sabotage->from.empty() || !words.front().starts_with("EVAL")) {
        return;
    }
    if (words.front() == "EVALSHA") {
        for (const std::string_view source : std::initializer_list<std::string_view>{
                 detail::settle_script.source(), detail::try_suspect_script.source(),
                 detail::release_script.source(), detail::ack_body().source(),
                 detail::push_body().source()}) {
            const detail::Sha1Hex sha1 = detail::sha1_hex(source);
            if (words[1] == std::string_view(sha1)) {
                words[0] = "EVAL";
                words[1] = source;
            }
        }
    }
    std::string text = spoiled(words[1], *sabotage);
    if (text != words[1]) {
        words[1] = std::move(text);
        m_context.faults.came("sabotaged script");
    }
}

inline void Network::say(std::string_view what, const Words& words) const {
    if (!m_context.trace) {
        return;
    }
    std::cout << "  " << what;
    for (const std::string& word : words) {
        // Of a script its end: the body of a move stands there.
        std::cout << ' '
                  << (word.find('\n') == std::string::npos
                          ? word
                          : "script:" + std::string(detail::sha1_hex(word).characters.data(), 6));
    }
    std::cout << '\n';
}

inline void Network::say(std::string_view what, const Reply& reply) const {
    if (m_context.trace) {
        std::cout << "  " << what << ' ';
        show(reply);
        std::cout << '\n';
    }
}

inline void Network::show(const Reply& reply) {
    switch (reply.type) {
    case Reply::Type::nil:
        std::cout << "nil";
        break;
    case Reply::Type::integer:
        std::cout << reply.integer;
        break;
    case Reply::Type::array:
        std::cout << '[';
        for (const Reply& element : reply.elements) {
            show(element);
            std::cout << ' ';
        }
        std::cout << ']';
        break;
    default:
        std::cout << reply.text;
    }
}

} // namespace orizuru::test
