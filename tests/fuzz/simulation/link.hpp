// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// One control connection that any number of mirrors share. Replies come in the order of the
// requests; each that is owed is tagged with the mirror and the incarnation that asked.

#pragma once

#include "fuzz/simulation/connection.hpp"
#include "fuzz/simulation/violation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::test {

struct Asker {
    int mirror; ///< each has a number of its own
    std::uint64_t incarnation;
    bool operator==(const Asker&) const = default;
};

class Link {
  public:
    struct Owed {
        Asker asker;
        Request::Kind kind;
    };
    struct Received {
        Owed owed;
        Reply reply;
    };

    /// How many mirrors may adopt their lists at a time.
    static constexpr std::ptrdiff_t most_adoptions = 8;

    Link(Context& context, Network& network) : m_context(context), m_connection(context, network) {}

    void send(const std::string& command, Request::Kind kind, const Asker& asker) {
        m_connection.send(command, kind);
        m_owed.push_back({asker, kind});
    }
    [[nodiscard]] bool owes(const Asker& asker, Request::Kind kind) const {
        return std::ranges::any_of(
            m_owed, [&](const Owed& owed) { return owed.asker == asker && owed.kind == kind; });
    }
    [[nodiscard]] bool owes_others(int mirror) const {
        return std::ranges::any_of(m_owed,
                                   [&](const Owed& owed) { return owed.asker.mirror != mirror; });
    }
    [[nodiscard]] bool may_adopt() const {
        return std::ranges::count(m_owed, Request::Kind::adopt, &Owed::kind) < most_adoptions;
    }

    [[nodiscard]] bool idle() const noexcept { return m_connection.idle(); }
    [[nodiscard]] std::optional<Request::Kind> next() const { return m_connection.next(); }
    void run_one() { m_connection.run_one(); }
    [[nodiscard]] std::optional<Received> receive();

    /// For all that share it: it broke.
    void close();
    /// The same, by a server that forgets what it has not run.
    void drop() {
        m_connection.drop();
        m_owed.clear();
    }
    /// Nothing is sent for so many steps.
    void hold(int steps) noexcept { m_hold = steps; }
    void pass_step() noexcept { m_hold = m_context.quiet() ? 0 : std::max(0, m_hold - 1); }
    [[nodiscard]] bool held() const noexcept { return m_hold > 0; }

    /// The defect: replies that are owed to the mirror are no longer known of.
    void forget(int mirror) {
        std::erase_if(m_owed, [&](const Owed& owed) { return owed.asker.mirror == mirror; });
    }

  private:
    Context& m_context;
    Connection m_connection;
    std::deque<Owed> m_owed;
    int m_hold = 0;
};

inline std::optional<Link::Received> Link::receive() {
    std::optional<Reply> reply = m_connection.receive();
    if (!reply) {
        return std::nullopt;
    }
    if (m_owed.empty()) {
        if (m_context.exact()) {
            throw Violation("a reply that is owed to nobody");
        }
        return std::nullopt;
    }
    Received received{m_owed.front(), std::move(*reply)};
    m_owed.pop_front();
    return received;
}

inline void Link::close() {
    const std::size_t answered = std::min(m_connection.unread(), m_owed.size());
    for (std::size_t i = 0; i < answered; ++i) {
        const Owed& owed = m_owed[i];
        if (owed.kind == Request::Kind::start) {
            m_context.faults.came("START reply lost");
        } else if (owed.kind == Request::Kind::adopt) {
            m_context.faults.came("ADOPT reply lost");
        }
    }
    m_connection.close();
    m_owed.clear();
}

} // namespace orizuru::test
