// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// One connection to Redis. A request runs when the simulation says so, its reply is read when it
// says so, and what was sent on a connection that was closed may still run at any time later.

#pragma once

#include "fuzz/simulation/network.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::test {

class Connection {
  public:
    Connection(Context& context, Network& network)
        : m_context(context), m_network(network), m_number(++context.made) {}

    /// Another one after each end.
    [[nodiscard]] int number() const noexcept { return m_number; }

    /// `command`: the bytes of one command.
    void send(const std::string& command, Request::Kind kind) {
        m_requests.push_back({words_of(command), kind});
        m_network.say("sent", m_requests.back().words);
    }
    /// Of the oldest request that has not run.
    [[nodiscard]] std::optional<Request::Kind> next() const {
        return m_requests.empty() ? std::nullopt : std::optional(m_requests.front().kind);
    }
    /// It runs, if any, or waits.
    void run_one();
    std::optional<Reply> receive();
    [[nodiscard]] std::size_t unread() const noexcept { return m_replies.size(); }
    [[nodiscard]] bool idle() const noexcept { return m_requests.empty() && m_replies.empty(); }

    /// Some of what was sent may still run, later; no reply is read any more.
    void close() {
        leave_requests();
        m_replies.clear();
    }
    /// As `close`, but what Redis has answered is still read.
    void leave_requests();
    /// As `close`, by a server that forgets what it has not run.
    void drop() {
        m_requests.clear();
        m_replies.clear();
        m_number = ++m_context.made;
    }
    /// It survives a change of the server's role: of what waits in Redis it lets go.
    void let_go() {
        for (; !m_requests.empty(); m_requests.pop_front()) {
            m_replies.push_back(Network::error("UNBLOCKED instance state changed"));
        }
    }
    /// As CLIENT UNBLOCK. A request that has not reached Redis yet is not woken.
    void unblock() {
        if (!m_requests.empty() && m_requests.front().blocked) {
            m_requests.pop_front();
            m_replies.emplace_back();
        }
    }

  private:
    [[nodiscard]] double refusal_rate(Request::Kind kind) const {
        const bool registers = kind == Request::Kind::start || kind == Request::Kind::adopt;
        return registers ? std::max(0.07, m_context.scenario.refuse) : m_context.scenario.refuse;
    }

    Context& m_context;
    Network& m_network;
    int m_number;
    std::deque<Request> m_requests;
    std::deque<Reply> m_replies;
};

inline void Connection::run_one() {
    if (m_requests.empty()) {
        return;
    }
    Request& request = m_requests.front();
    Reply reply;
    if (!request.blocked && m_context.strikes(refusal_rate(request.kind))) {
        reply = m_network.refuse(request);
    } else {
        reply = m_network.run(request.words);
        if (request.kind == Request::Kind::fetch && reply.is(Reply::Type::nil) &&
            m_context.strikes(0.7)) {
            request.blocked = true;
            return;
        }
    }
    m_requests.pop_front();
    m_replies.push_back(std::move(reply));
}

inline std::optional<Reply> Connection::receive() {
    if (m_replies.empty()) {
        return std::nullopt;
    }
    Reply reply = std::move(m_replies.front());
    m_replies.pop_front();
    m_network.say("read", reply);
    return reply;
}

inline void Connection::leave_requests() {
    const std::size_t arrive = m_context.chance.below(m_requests.size() + 1);
    std::deque<Words> ghosts;
    for (std::size_t i = 0; i < m_requests.size(); ++i) {
        const Request::Kind kind = m_requests[i].kind;
        if (kind == Request::Kind::start) {
            m_context.faults.came(i < arrive ? "START later" : "START never came");
        } else if (kind == Request::Kind::adopt) {
            m_context.faults.came(i < arrive ? "ADOPT later" : "ADOPT never came");
        }
        if (i < arrive) {
            ghosts.push_back(std::move(m_requests[i].words));
        }
    }
    m_network.add_ghosts(std::move(ghosts), m_number);
    m_requests.clear();
    m_number = ++m_context.made;
}

} // namespace orizuru::test
