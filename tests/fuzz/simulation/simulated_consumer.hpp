// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A consumer, of which the mirror is the library's own. What the library does with threads and
// sockets this does step by step: it sends what the mirror composes, on a link that it may share,
// and does what the mirror says after a reply. When the consumer has left, another begins in its
// place.

#pragma once

#include "fuzz/simulation/connection.hpp"
#include "fuzz/simulation/context.hpp"
#include "fuzz/simulation/link.hpp"
#include "fuzz/simulation/network.hpp"
#include "fuzz/simulation/oracle.hpp"
#include "fuzz/simulation/simulated_queue.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

class SimulatedConsumer {
  public:
    using State = detail::Mirror::State;

    /// Begins on any of `links`, to which no other may be added. `share`: in the suspects of its
    /// process.
    SimulatedConsumer(Context& context, Network& network, SimulatedQueue& queue,
                      std::deque<Link>& links, const detail::TrialShare& share)
        : m_context(context),
          m_network(network),
          m_queue(queue),
          m_links(links),
          m_link(&context.chance.pick(links)),
          m_wait(context, network),
          m_share(share) {
        begin_life();
    }
    SimulatedConsumer(const SimulatedConsumer&) = delete;
    SimulatedConsumer& operator=(const SimulatedConsumer&) = delete;

    /// One step of its users, and of its own.
    void step();
    void run_wait() { m_wait.run_one(); }
    void read_wait();
    /// The reply to what the current incarnation sent on the link; says what is to become of the
    /// link.
    detail::Remedy take(Request::Kind kind, Reply&& reply);

    [[nodiscard]] bool uses(const Link& link) const noexcept { return m_link == &link; }
    [[nodiscard]] bool runs() const { return m_mirror->state() == State::running; }
    [[nodiscard]] Asker asker() const { return {m_number, m_mirror->incarnation()}; }
    [[nodiscard]] bool unanswered() const { return runs() && m_mirror->unanswered(); }
    /// It has come to rest: nothing is held and nothing under way.
    [[nodiscard]] bool rests() const {
        return runs() && !m_stopping && holds_nothing() &&
               !(m_mirror->unanswered() || m_mirror->blocked());
    }
    [[nodiscard]] bool holds_nothing() const { return m_mirror->messages().empty(); }
    /// It is alive under this id, was so, or may be about to be.
    [[nodiscard]] bool has_id(const std::string& id) const { return m_ids.contains(id); }
    [[nodiscard]] const SimulatedQueue& queue() const noexcept { return m_queue; }

    // What befalls it.

    void taken_for_dead(const std::string& id) {
        m_reaped_alive = true;
        m_robbed = id;
    }
    /// Its process dies; another begins.
    void crash();
    /// The link broke.
    void lose_link();
    /// The connection of its blocking fetches broke.
    void lose_wait();
    /// More time passes than Redis takes for an answer, or a connection without one lives.
    void wait_long();
    /// Redis was rewound. The connections live on, or were closed by a server that forgot what it
    /// had not run.
    void meet_hidden_rewind();
    void meet_rewind();
    void begin_stop();
    /// The defect: it may send though a refused request of its chain is not the last.
    void lift_barrier();

    // The last stop.

    void stop() noexcept { m_stopping = true; }
    /// It goes on with its stop, and no other begins. True when it has left.
    bool leave();
    /// Throws Violation unless it has left the registry.
    void check_gone();

  private:
    using Held = detail::Delivery::State;

    struct Wish {
        detail::DeliveryPtr message;
        Settling how;
        int mark;
        int recoveries_before; ///< it was asked for
        std::string field;     ///< in which the settlement ends the count of a suspect
    };

    [[nodiscard]] detail::Identity make_identity();
    void begin_life();
    void check_left();
    void check_list();

    // Its users.
    void hand_out();
    void ack_in_bulk();
    void use_guards();
    void drop_lost_guards();
    void settle(const detail::DeliveryPtr& message, Settling how);
    [[nodiscard]] Settling any_settling();
    void look_at_outcomes();
    void look_at_refusal(const Wish& wish);

    // Its driver.
    void start();
    void adopt();
    void look_for_wait();
    void after_adoption();
    void beat();
    void send();
    void send_while_stopping();
    void send_release();
    [[nodiscard]] detail::Remedy follow(const detail::Verdict& verdict);
    [[nodiscard]] bool awaits(Request::Kind kind) const;
    void check_cause(const detail::Verdict& verdict) const;
    void recover();
    void close_wait();
    [[nodiscard]] bool none_handed_out() const;
    [[nodiscard]] bool may_begin_to_wait() const {
        return m_context.phase != Phase::still && !m_mirror->blocked() && !m_mirror->fetching();
    }

    void send_settle(int fetch);
    void try_suspect();
    void look_at_suspect(std::size_t before) const;
    /// A suspect is on its way back to the others.
    [[nodiscard]] bool puts_back() const;
    void send_move() {
        m_mirror->send_move(m_out);
        flush(Request::Kind::move);
    }
    void flush(Request::Kind kind) { m_link->send(std::exchange(m_out, {}), kind, asker()); }
    void pause() { m_hold = m_context.chance.between(1, 5); }
    template <class... Parts>
    void say(const Parts&... parts) const {
        m_context.say("mirror ", m_number, ": ", parts...);
    }

    Context& m_context;
    Network& m_network;
    SimulatedQueue& m_queue;
    std::deque<Link>& m_links;
    Link* m_link;
    Connection m_wait;
    const detail::TrialShare& m_share;
    int m_last_wait = 0; ///< the number of the connection on which the last blocking fetch was sent

    int m_number = 0; ///< of the mirror
    std::optional<detail::Mirror> m_mirror;
    std::string m_out;
    std::set<std::string> m_ids;               ///< of the identities made in this life
    std::vector<detail::DeliveryPtr> m_guards; ///< handed out and not being settled
    std::vector<Wish> m_wishes;
    bool m_stopping = false;
    bool m_forsaken = false;      ///< no guard is left: what is refused has no owner
    bool m_hidden_rewind = false; ///< Redis was rewound and no connection broke
    bool m_wait_broken = false;   ///< with nothing unanswered: the next blocking fetch finds out
    bool m_reaped_alive = false;  ///< a collector took it for dead, in this life
    std::string m_robbed;         ///< under this id, and it does not know: others may have its list
    bool m_forgot = false;        ///< a blocking fetch may run of which the mirror does not know
    bool m_releasing = false;     ///< a release may be unanswered
    std::string m_leaving;        ///< whose list the last release was for
    int m_hold = 0;               ///< steps to wait before anything is sent
    int m_recoveries = 0;

    // A request that was cut off again and again is given back: after a failure of its own and
    // three cuts at the earliest.
    static constexpr int fewest_recoveries_to_blame = 4;
};

inline detail::Identity SimulatedConsumer::make_identity() {
    const std::string number = std::to_string(++m_context.made);
    detail::Identity identity{"c:" + number, "0123456789abcdef"};
    identity.nonce.replace(16 - number.size(), number.size(), number);
    if (m_context.counts_writes) { // its lease, as a Session adds it
        identity.nonce += 'l' + std::to_string(SeriesAccount::lease);
    }
    m_queue.oracle().issued(identity);
    m_ids.insert(identity.id);
    return identity;
}

inline void SimulatedConsumer::begin_life() {
    if (m_context.exact() && !m_wait.idle()) {
        throw Violation("a blocking fetch of an earlier consumer is under way");
    }
    m_number = ++m_context.made;
    m_ids.clear();
    m_mirror.emplace(m_queue.keys(), std::chrono::seconds(60), [this] { return make_identity(); });
    m_stopping = m_forsaken = m_forgot = m_releasing = m_hidden_rewind = false;
    m_wait_broken = m_reaped_alive = false;
    m_robbed.clear();
    m_hold = 0;
}

inline void SimulatedConsumer::crash() {
    m_wait.close();
    for (const Wish& wish : m_wishes) {
        if (wish.message->state == Held::sent) {
            m_queue.oracle().unknown(wish.message->payload, wish.how, wish.mark);
        }
    }
    m_wishes.clear();
    m_guards.clear();
    begin_life();
}

inline void SimulatedConsumer::step() {
    use_guards();
    m_hold = m_context.quiet() ? 0 : std::max(0, m_hold - 1);
    const bool held = m_hold > 0 || m_link->held();
    switch (m_mirror->state()) {
    case State::unregistered:
        if (m_stopping) {
            begin_life(); // nothing is held and nothing registered: it has left
        } else if (!held) {
            start();
        }
        return;
    case State::recovering:
        if (!held) {
            adopt();
        }
        return;
    case State::left:
        check_left();
        begin_life();
        return;
    case State::running:
        break;
    }
    if (!held) {
        m_stopping ? send_while_stopping() : send();
    }
    if (runs() && m_context.chance.happens(0.1)) {
        beat();
    }
    if (!m_stopping && m_context.strikes(m_context.scenario.stop)) {
        begin_stop();
    }
    check_list();
}

inline void SimulatedConsumer::check_list() {
    if (m_context.exact() && runs() && !m_mirror->unanswered() && m_wait.idle() &&
        !m_network.has_ghosts() && !m_forgot) {
        m_queue.oracle().check_list(m_context.redis, m_mirror->identity(), m_mirror->messages());
    }
}

inline bool SimulatedConsumer::leave() {
    if (runs()) {
        send_while_stopping();
    } else if (m_mirror->state() == State::recovering) {
        adopt();
    }
    return m_mirror->state() == State::left || m_mirror->state() == State::unregistered;
}

// A collector may have taken it for dead unnoticed, or Redis forgotten it: after that it is nowhere
// registered.
inline void SimulatedConsumer::check_gone() {
    if (m_mirror->state() == State::left) {
        check_left();
    } else if (m_mirror->state() != State::unregistered ||
               !(m_reaped_alive || m_context.scenario.rewind > 0)) {
        throw Violation("a consumer that holds nothing does not leave");
    }
}

inline void SimulatedConsumer::check_left() {
    m_context.faults.came("left");
    drop_lost_guards(); // whose message Redis has forgotten since the user looked
    if (!m_guards.empty() || !m_wishes.empty() || !m_mirror->messages().empty()) {
        throw Violation("a consumer left that still holds messages");
    }
    if (!m_context.exact()) {
        return;
    }
    Server& redis = m_context.redis;
    const Keys& keys = m_queue.keys();
    const std::string key = keys.processing(m_leaving);
    const bool fenced = redis.type(key) == "string" &&
                        redis.command({"GET", key}).text.starts_with("released orz:");
    if (fenced == m_network.has_ended(key) || redis.exists(keys.heartbeat(m_leaving)) ||
        redis.command({"SISMEMBER", keys.consumers(), m_leaving}).integer != 0) {
        throw Violation("a consumer that left has not left the registry or no fence");
    }
}

} // namespace orizuru::test

#include "fuzz/simulation/consumer_driver.hpp"
#include "fuzz/simulation/consumer_users.hpp"
