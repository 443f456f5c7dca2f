// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills a process before and after each of its sends, one after the other, until it reaches its
// end. After each death others go on.

#pragma once

#include "crash/support/dying_sends.hpp"
#include "support/child.hpp"
#include "support/fault_run.hpp"

#include <span>
#include <string>
#include <string_view>

namespace orizuru::test {

/// The work of the process that dies, and the work of others before it.
template <class World>
struct Flow {
    std::string name;
    void (*before)(World&);
    void (*dies)(World&);
};

/// A World can clear(), which it is at first, and go_on() when a process has died in it; wrong()
/// returns the violations after that, in words.
template <class World>
class SendKills {
    using When = DyingSends::When;

  public:
    /// The options of such a program.
    static inline const FaultOptions::Values options{
        {"flow", "all"}, {"when", "all"}, {"at", "all"}};

    explicit SendKills(const FaultOptions& options) : m_options(options), m_report(options) {}

    int run(std::span<const Flow<World>> flows) {
        for (const Flow<World>& flow : flows) {
            for (const When when : {When::before, When::after}) {
                if (chosen("flow", flow.name) && chosen("when", std::string(to_string(when)))) {
                    run(flow, when);
                }
            }
        }
        return m_report.finish({});
    }

  private:
    static constexpr long few = 8; ///< one greeting and one commit take this many sends

    [[nodiscard]] bool chosen(std::string_view option, const std::string& value) const {
        const std::string& chosen = m_options.text(option);
        return chosen == "all" || chosen == value;
    }

    /// Dies at each send, until a process reaches its end.
    void run(const Flow<World>& flow, When when) {
        if (m_options.text("at") != "all") {
            run(flow, when, static_cast<long>(m_options.number("at")));
            return;
        }
        long n = 1;
        while (!m_report.is_full() && run(flow, when, n)) {
            ++n;
        }
        if (n <= few) {
            m_report.violation(flow.name + " has sent next to nothing");
        }
    }
    /// Whether it died.
    bool run(const Flow<World>& flow, When when, long n) {
        const FaultOptions::Values again{
            {"flow", flow.name}, {"when", std::string(to_string(when))}, {"at", std::to_string(n)}};
        m_world.clear();
        flow.before(m_world);
        const int status = status_of_child([&] {
            DyingSends::die_at(n, when);
            flow.dies(m_world);
            return as_expected;
        });
        const bool died = status == -1;
        if (died) {
            m_report.came(flow.name + " died " + std::string(to_string(when)) + " a send");
        } else if (status != as_expected) {
            m_report.violation(flow.name + " failed with " + std::to_string(status), again);
        }
        m_world.go_on();
        for (const std::string& wrong : m_world.wrong(died ? flow.name : std::string_view())) {
            m_report.violation(wrong, again);
        }
        return died;
    }

    const FaultOptions& m_options;
    FaultReport m_report;
    World m_world;
};

} // namespace orizuru::test
