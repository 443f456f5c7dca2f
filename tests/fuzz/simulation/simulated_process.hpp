// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A process with a few consumers that share one link, or are spread over two.

#pragma once

#include "fuzz/simulation/context.hpp"
#include "fuzz/simulation/link.hpp"
#include "fuzz/simulation/network.hpp"
#include "fuzz/simulation/simulated_consumer.hpp"
#include "fuzz/simulation/simulated_queue.hpp"
#include "fuzz/simulation/violation.hpp"

#include <orizuru/detail/mirror/trial.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace orizuru::test {

class SimulatedProcess {
  public:
    SimulatedProcess(Context& context, Network& network, int links)
        : m_context(context), m_network(network) {
        for (int i = 0; i < links; ++i) {
            m_links.emplace_back(context, network);
        }
    }
    SimulatedProcess(const SimulatedProcess&) = delete;
    SimulatedProcess& operator=(const SimulatedProcess&) = delete;

    void add_consumer(SimulatedQueue& queue) {
        m_consumers.emplace_back(m_context, m_network, queue, m_links, m_share);
    }
    [[nodiscard]] std::deque<SimulatedConsumer>& consumers() noexcept { return m_consumers; }

    /// Throws Violation if it still counts suspects that none of its consumers holds.
    void check_trials() const {
        if (m_share.trials->held().count > 0) {
            throw Violation("a suspect is counted that no consumer holds");
        }
    }

    /// A step of each consumer and each connection, in any order.
    void step();
    /// Everything that was sent runs and is answered.
    void answer_all();

    void crash();
    /// More time passes than a request may be unanswered: each was answered, or its link broke.
    void wait_long();
    void meet_hidden_rewind() {
        std::ranges::for_each(m_consumers, &SimulatedConsumer::meet_hidden_rewind);
    }
    void meet_rewind() {
        std::ranges::for_each(m_links, &Link::drop);
        std::ranges::for_each(m_consumers, &SimulatedConsumer::meet_rewind);
    }

  private:
    void step_consumer(SimulatedConsumer& consumer);
    void step_link(Link& link);
    void run_one(Link& link);
    void read(Link& link);
    void deliver(Link& link, Link::Received received);
    void break_link(Link& link);
    [[nodiscard]] std::ptrdiff_t users_of(const Link& link) const {
        return std::ranges::count_if(
            m_consumers, [&](const SimulatedConsumer& consumer) { return consumer.uses(link); });
    }

    Context& m_context;
    Network& m_network;
    const detail::TrialShare m_share{std::make_shared<detail::Trials>(),
                                     detail::TrialLimits::of(3, 3)};
    std::deque<Link> m_links;
    std::deque<SimulatedConsumer> m_consumers; // which stay where they are
};

inline void SimulatedProcess::step() {
    std::ranges::for_each(m_links, &Link::pass_step);
    const std::size_t first = m_context.chance.below(m_consumers.size());
    const std::size_t link_before = m_context.chance.below(m_consumers.size() + 1);
    for (std::size_t i = 0; i <= m_consumers.size(); ++i) {
        if (i == link_before) {
            for (Link& link : m_links) {
                step_link(link);
            }
        }
        if (i < m_consumers.size()) {
            step_consumer(m_consumers[(first + i) % m_consumers.size()]);
        }
    }
}

inline void SimulatedProcess::step_consumer(SimulatedConsumer& consumer) {
    consumer.step();
    if (m_context.chance.happens(0.6)) {
        consumer.run_wait();
    }
    if (m_context.chance.happens(0.6)) {
        consumer.read_wait();
    }
    if (m_context.strikes(m_context.scenario.cut / 2)) {
        consumer.lose_wait();
    }
}

// As much as one link for each consumer would do.
inline void SimulatedProcess::step_link(Link& link) {
    for (auto i = users_of(link); i > 0; --i) {
        if (m_context.chance.happens(0.6)) {
            run_one(link);
        }
        if (m_context.chance.happens(0.6)) {
            read(link);
        }
    }
    if (m_context.strikes(m_context.scenario.cut / 2)) {
        break_link(link);
    }
}

// START, ADOPT and requests for a suspect lose their link more often than others.
inline void SimulatedProcess::run_one(Link& link) {
    const std::optional<Request::Kind> kind = link.next();
    double before = 0;
    double behind = 0;
    if (kind == Request::Kind::start && m_context.scenario.lost_start > 0) {
        before = 0.2;
        behind = m_context.scenario.lost_start;
    } else if (kind == Request::Kind::adopt) {
        before = 0.25;
        behind = 0.15;
    } else if (kind == Request::Kind::suspect) {
        before = 0.02;
        behind = 0.1;
    }
    const auto users = static_cast<double>(std::max<std::ptrdiff_t>(1, users_of(link)));
    if (before > 0 && m_context.strikes(before / users)) {
        break_link(link);
        return;
    }
    link.run_one();
    if (behind > 0 && m_context.strikes(behind / users)) {
        break_link(link);
    }
}

inline void SimulatedProcess::read(Link& link) {
    if (std::optional<Link::Received> received = link.receive()) {
        deliver(link, std::move(*received));
    }
}

inline void SimulatedProcess::deliver(Link& link, Link::Received received) {
    const Asker& asker = received.owed.asker;
    const auto mirror = std::ranges::find(
        m_consumers, asker.mirror, [](const auto& consumer) { return consumer.asker().mirror; });
    if (mirror == m_consumers.end() ||
        (mirror->asker() != asker && !m_context.has(Defect::old_replies))) {
        m_context.faults.came("a discarded reply");
        return;
    }
    if (m_context.has(Defect::lifted)) {
        for (SimulatedConsumer& other : m_consumers) {
            if (&other != &*mirror && other.uses(link)) {
                other.lift_barrier();
            }
        }
    }
    switch (mirror->take(received.owed.kind, std::move(received.reply))) {
    case detail::Remedy::back_off:
        link.hold(m_context.chance.between(1, 5));
        return;
    case detail::Remedy::reconnect:
        link.hold(m_context.chance.between(1, 5));
        break_link(link);
        return;
    default:
        return;
    }
}

inline void SimulatedProcess::break_link(Link& link) {
    m_context.say("a link breaks");
    Faults& faults = m_context.faults;
    std::ptrdiff_t unanswered = 0;
    std::ptrdiff_t idle = 0;
    for (const SimulatedConsumer& consumer : m_consumers) {
        if (consumer.uses(link) && consumer.runs()) {
            consumer.unanswered() ? ++unanswered : ++idle;
        }
    }
    faults.came("cut");
    if (unanswered == 0) {
        faults.came("cut with nothing unanswered");
    } else if (idle > 0) {
        faults.came("a mirror idle while the link broke");
    }
    if (unanswered > 1) {
        faults.came("link broken with several unanswered");
    }
    link.close();
    for (SimulatedConsumer& consumer : m_consumers) {
        const bool concerned = consumer.uses(link) && consumer.unanswered();
        if (concerned) {
            consumer.lose_link();
            if (m_context.has(Defect::one_recovers)) {
                return;
            }
        }
    }
}

inline void SimulatedProcess::answer_all() {
    for (Link& link : m_links) {
        while (link.next()) {
            link.run_one();
        }
        while (std::optional<Link::Received> received = link.receive()) {
            deliver(link, std::move(*received));
        }
    }
}

inline void SimulatedProcess::wait_long() {
    std::ranges::for_each(m_consumers, &SimulatedConsumer::wait_long);
    if (m_context.chance.happens(0.5)) {
        answer_all();
    }
    for (Link& link : m_links) {
        if (!link.idle()) {
            break_link(link);
        }
    }
}

inline void SimulatedProcess::crash() {
    m_context.faults.came("crashed");
    m_context.say("a process dies");
    std::ranges::for_each(m_links, &Link::close);
    std::ranges::for_each(m_consumers, &SimulatedConsumer::crash);
}

} // namespace orizuru::test
