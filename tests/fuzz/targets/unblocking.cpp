// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A wait connection on which CLIENT UNBLOCK ends BLMOVEs that wait, and "ends" those that Redis has
// postponed and runs all the same: each message is handed out once, a wait counts as over when it
// is, and when all is answered, nobody waits.
//
// input: what Redis and the client do next.

#include "input.hpp"
#include "target.hpp"

#include <orizuru/detail/consumer/unblocking.hpp>
#include <orizuru/reply.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace unblocking_target {

using orizuru::Reply;
using orizuru::detail::Unblocking;
using orizuru::test::check;
using orizuru::test::Input;
using Meaning = Unblocking::Meaning;
using Type = Reply::Type;

enum class Request { blmove, marker };

Reply error(const std::string& text) { return {Type::error, 0, text, {}}; }

/// Redis' end of the connection.
class Redis {
  public:
    void send(Request request) { m_requests.push_back(request); }
    [[nodiscard]] bool runs_blmove() const {
        return !m_requests.empty() && m_requests.front() == Request::blmove;
    }
    [[nodiscard]] bool idle() const noexcept { return m_requests.empty(); }
    [[nodiscard]] bool done() const noexcept { return idle() && replies.empty(); }

    /// CLIENT UNBLOCK: what waits is over, what is postponed is not.
    void unblock(bool postponed) {
        if (runs_blmove()) {
            if (!postponed) {
                m_requests.pop_front();
            }
            replies.push_back(error("UNBLOCKED client unblocked via CLIENT UNBLOCK"));
        }
    }
    /// The oldest request is answered.
    void answer(const Reply& reply) {
        m_requests.pop_front();
        replies.push_back(reply);
    }

    std::deque<Reply> replies; ///< not read yet

  private:
    std::deque<Request> m_requests;
};

class Driver {
  public:
    explicit Driver(Input& input) : m_input(input) {}

    void run() {
        while (!m_input.empty()) {
            step();
        }
        m_refusing = false;
        while (!m_redis.done()) {
            m_redis.replies.empty() ? answer() : read();
        }
        check(!m_blocked && !m_unblocking.pending(), "when all is answered, nobody waits");
        check(m_taken == m_delivered, "each message is handed out once");
    }

  private:
    void step() {
        switch (m_input.below(8)) {
        case 0:
        case 1:
            if (!m_blocked && !m_unblocking.pending()) {
                m_blocked = true;
                m_redis.send(Request::blmove);
            }
            break;
        case 2:
            m_redis.unblock(false);
            break;
        case 3:
            m_redis.unblock(true);
            break;
        case 4:
        case 5:
            answer();
            break;
        default:
            if (!m_redis.replies.empty()) {
                read();
            }
            break;
        }
    }

    void answer() {
        if (m_redis.idle()) {
            return;
        }
        const std::size_t how = m_input.below(8);
        if (m_refusing && how == 7) {
            m_redis.answer(error("BUSY a script runs"));
        } else if (!m_redis.runs_blmove()) {
            m_redis.answer({Type::integer, 7, {}, {}});
        } else if (how < 2) {
            m_redis.answer({});
        } else {
            m_delivered.push_back(std::to_string(m_delivered.size()));
            m_redis.answer({Type::string, 0, m_delivered.back(), {}});
        }
    }

    void read() {
        const Reply reply = m_redis.replies.front();
        m_redis.replies.pop_front();
        switch (m_unblocking.read(reply, m_blocked)) {
        case Meaning::result:
            check(m_blocked, "nothing is the result of no wait");
            check(!reply.is(Type::integer), "a marker is no result");
            m_blocked = false;
            if (reply.is(Type::string)) {
                m_taken.push_back(reply.text);
            }
            break;
        case Meaning::ended:
            check(m_blocked && m_redis.done(), "what has ended is over");
            m_blocked = false;
            break;
        case Meaning::unblocked:
            m_redis.send(Request::marker);
            break;
        case Meaning::nothing:
            break;
        case Meaning::doubt:
            check(reply.is(Type::error), "only a refusal leaves a doubt");
            recover();
            break;
        }
    }

    /// Another connection, with what the list says.
    void recover() {
        m_redis = {};
        m_unblocking.reset();
        m_blocked = false;
        m_taken = m_delivered;
    }

    Input& m_input;
    Redis m_redis;
    Unblocking m_unblocking;
    bool m_blocked = false;
    bool m_refusing = true; ///< Redis may answer anything by an error
    std::vector<std::string> m_delivered;
    std::vector<std::string> m_taken;
};

const orizuru::test::Target target("unblocking", [](Input input) { Driver(input).run(); });

} // namespace unblocking_target
