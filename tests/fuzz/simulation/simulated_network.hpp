// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The way between a consumer and Redis: two connections without mutual order. A request runs when
// the simulation says so, its reply is read when it says so, and what was sent on a connection that
// was closed may still run at any time later.

#pragma once

#include "fuzz/model/server.hpp"
#include "fuzz/simulation/chance.hpp"
#include "fuzz/simulation/scenario.hpp"

#include <orizuru/detail/base/sha1.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/reply.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

enum class Line : std::size_t { control, wait };

enum class RequestKind { settle, move, release, fetch };

class Network {
  public:
    Network(Server& redis, Server& redis_without_rights, Chance& chance, Faults& faults,
            const Scenario& scenario, const Sabotage* sabotage, bool trace)
        : m_redis(redis),
          m_without_rights(redis_without_rights),
          m_chance(chance),
          m_faults(faults),
          m_scenario(scenario),
          m_sabotage(sabotage),
          m_trace(trace) {}

    /// `command`: the bytes of one command.
    void send(Line line, std::string command, RequestKind kind) {
        link(line).requests.push_back({words_of(command), kind, false});
        say("sent", link(line).requests.back().words);
    }
    /// The oldest request that has not run, if any, runs; `quiet`: nothing goes wrong, and a
    /// blocking fetch ends.
    void run_one(Line line, bool quiet);
    std::optional<Reply> receive(Line line);
    [[nodiscard]] bool idle(Line line) {
        return link(line).requests.empty() && link(line).replies.empty();
    }

    /// Some of what was sent may still run, later; no reply is read any more.
    void close(Line line);
    /// As `close`, by a server that forgets what it has not run.
    void drop_requests(Line line) { link(line).requests.clear(); }
    /// The connections survive a change of the server's role: of what waits in Redis it lets go.
    void let_go();
    /// As CLIENT UNBLOCK on the wait connection.
    void unblock();

    /// The client gave up on a command that is still on its way.
    void add_ghost(std::string command) { m_ghosts.push_back({words_of(command)}); }
    [[nodiscard]] bool has_ghosts() const noexcept { return !m_ghosts.empty(); }
    void run_ghost(bool quiet);

    /// Runs a command at once, with the sabotage.
    Reply run(Words words);
    /// The same for a user who may not settle.
    Reply run_without_rights(Words words) { return run(std::move(words), m_without_rights); }

  private:
    struct Request {
        Words words;
        RequestKind kind;
        bool blocked; ///< it has run, found nothing and waits
    };
    struct Link {
        std::deque<Request> requests;
        std::deque<Reply> replies;
    };

    static Reply error(std::string_view text) {
        return Reply{Reply::Type::error, 0, std::string(text), {}};
    }
    Link& link(Line line) { return m_links[static_cast<std::size_t>(line)]; }
    Reply run(Words words, Server& redis);
    Reply refuse(const Request& request);
    void say(std::string_view what, const Words& words) const;
    static void show(const Reply& reply);

    Server& m_redis;
    Server& m_without_rights;
    Chance& m_chance;
    Faults& m_faults;
    const Scenario& m_scenario;
    const Sabotage* m_sabotage;
    bool m_trace;
    std::array<Link, 2> m_links;
    std::vector<std::deque<Words>> m_ghosts;
};

inline void Network::run_one(Line line, bool quiet) {
    Link& on = link(line);
    if (on.requests.empty()) {
        return;
    }
    Request& request = on.requests.front();
    Reply reply;
    if (!quiet && !request.blocked && m_chance.happens(m_scenario.refuse)) {
        reply = refuse(request);
    } else {
        reply = run(request.words);
        if (request.kind == RequestKind::fetch && reply.is(Reply::Type::nil) && !quiet &&
            m_chance.happens(0.7)) {
            request.blocked = true;
            return;
        }
    }
    on.requests.pop_front();
    on.replies.push_back(std::move(reply));
}

inline std::optional<Reply> Network::receive(Line line) {
    std::deque<Reply>& replies = link(line).replies;
    if (replies.empty()) {
        return std::nullopt;
    }
    Reply reply = std::move(replies.front());
    replies.pop_front();
    if (m_trace) {
        std::cout << "  read ";
        show(reply);
        std::cout << '\n';
    }
    return reply;
}

inline void Network::close(Line line) {
    Link& on = link(line);
    const std::size_t arrive = m_chance.below(on.requests.size() + 1);
    std::deque<Words> ghosts;
    for (std::size_t i = 0; i < arrive; ++i) {
        ghosts.push_back(std::move(on.requests[i].words));
    }
    if (!ghosts.empty()) {
        m_ghosts.push_back(std::move(ghosts));
    }
    on.requests.clear();
    if (m_sabotage == nullptr || !m_sabotage->late_replies || line == Line::control) {
        on.replies.clear();
    }
}

inline void Network::let_go() {
    Link& on = link(Line::wait);
    for (; !on.requests.empty(); on.requests.pop_front()) {
        on.replies.push_back(error("UNBLOCKED instance state changed"));
    }
}

inline void Network::unblock() {
    Link& on = link(Line::wait);
    // A fetch that has not reached Redis yet is not woken.
    if (!on.requests.empty() && on.requests.front().blocked) {
        on.requests.pop_front();
        on.replies.emplace_back();
    }
}

inline void Network::run_ghost(bool quiet) {
    if (m_ghosts.empty()) {
        return;
    }
    const std::size_t chosen = m_chance.below(m_ghosts.size());
    std::deque<Words>& ghost = m_ghosts[chosen];
    const bool waits = ghost.front().front() == "BLMOVE";
    if (run(ghost.front()).is(Reply::Type::nil) && waits && !quiet && m_chance.happens(0.8)) {
        return; // a half-open connection: Redis holds it to be waiting
    }
    m_faults.came("ran after the client gave up");
    ghost.pop_front();
    if (ghost.empty()) {
        m_ghosts.erase(m_ghosts.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
}

// What Redis, a replica or a proxy may answer instead of running a request, or after running it.
inline Reply Network::refuse(const Request& request) {
    using namespace std::string_view_literals;
    static constexpr std::array any{"BUSY a script runs"sv,     "LOADING the data"sv,
                                    "TRYAGAIN later"sv,         "MISCONF on disk"sv,
                                    "NOREPLICAS enough"sv,      "OOM no memory"sv,
                                    "READONLY a replica"sv,     "MASTERDOWN no master"sv,
                                    "CLUSTERDOWN no cluster"sv, "NOPERM not this user"sv};
    if (request.kind == RequestKind::fetch) {
        m_faults.came("fetch refused");
        return error(m_chance.happens(0.1) ? "UNBLOCKED by force"sv : m_chance.pick(any));
    }
    const std::size_t chosen = m_chance.below(any.size() + 5);
    if (request.kind == RequestKind::release) {
        m_faults.came("release refused");
    }
    if (chosen < any.size()) {
        m_faults.came("refused " + std::string(any[chosen].substr(0, any[chosen].find(' '))));
        return error(any[chosen]);
    }
    if (chosen == any.size()) {
        m_faults.came("refused NOSCRIPT");
        return error("NOSCRIPT forgotten");
    }
    if (chosen == any.size() + 1) {
        m_faults.came("refused ERR");
        return error("ERR nobody knows why");
    }
    if (chosen == any.size() + 2 && request.kind == RequestKind::move) {
        m_faults.came("MOVE without rights");
        return run(request.words, m_without_rights);
    }
    if (chosen == any.size() + 3 && request.kind == RequestKind::settle) {
        m_faults.came("SETTLE without rights");
        return run(request.words, m_without_rights);
    }
    m_faults.came("a reply of the wrong type");
    if (m_chance.happens(0.5)) {
        run(request.words);
    }
    return Reply{Reply::Type::status, 0, "ODD", {}};
}

inline Reply Network::run(Words words) { return run(std::move(words), m_redis); }

inline Reply Network::run(Words words, Server& redis) {
    say("runs", words);
    const Words before = words;
    if (words.front() == "BLMOVE") {
        words.front() = "LMOVE"; // to wait or not is the simulation's
        words.pop_back();
    }
    if (m_sabotage != nullptr && !m_sabotage->from.empty() && words.front().starts_with("EVAL")) {
        if (words.front() == "EVALSHA") {
            for (const std::string_view source : std::initializer_list<std::string_view>{
                     detail::settle_script, detail::release_script(),
                     detail::push_body().source()}) {
                const detail::Sha1Hex sha1 = detail::sha1_hex(source);
                if (words[1] == std::string_view(sha1.data(), sha1.size())) {
                    words[0] = "EVAL";
                    words[1] = source;
                }
            }
        }
        std::string text = spoiled(words[1], *m_sabotage);
        if (text != words[1]) {
            words[1] = std::move(text);
            m_faults.came("sabotaged script");
        }
    }
    Reply reply = redis.run(words);
    if (m_trace) {
        std::cout << "    -> ";
        show(reply);
        std::cout << '\n';
    }
    if (m_sabotage != nullptr && m_sabotage->hide_header && before.front() == "EVAL" &&
        before[1] == detail::adopt_script() && reply.is(Reply::Type::array)) {
        reply.elements.at(0).text.clear();
    }
    return reply;
}

inline void Network::say(std::string_view what, const Words& words) const {
    if (!m_trace) {
        return;
    }
    std::cout << "  " << what;
    for (const std::string& word : words) {
        // Of a script its end: the body of a move stands there.
        std::cout << ' '
                  << (word.find('\n') == std::string::npos
                          ? word
                          : "script:" + std::string(detail::sha1_hex(word).data(), 6));
    }
    std::cout << '\n';
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
