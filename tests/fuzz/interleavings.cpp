// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Every order in which a producer, two consumers, any number of collectors and the requests of
// those that have given up can act on a few messages, with up to a few faults; the consumers have
// links of their own or share one. The search is breadth first, on the model of Redis that
// commands.cpp checks, with the library's own mirror and scripts. In each state no message is
// missing or doubled, and each course ends with every message where it should be.
//
// usage: interleavings [--messages aa] [--faults 1] [--odd 1] [--links own|shared]
//                      [--blamed go_back|wait_apart] [--sabotage NAME]

#include "fuzz/search/search_steps.hpp"
#include "support/fault_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace {

using orizuru::test::Blamed;
using orizuru::test::FaultOptions;
using orizuru::test::FaultReport;
using orizuru::test::Links;
using orizuru::test::Sabotage;
using orizuru::test::SearchSteps;
using orizuru::test::Step;
using orizuru::test::Violation;
using orizuru::test::World;

class Search {
  public:
    Search(const SearchSteps::Size& size, const Sabotage* sabotage, FaultReport& report)
        : m_steps(size, sabotage), m_report(report) {}

    void run() {
        add(m_steps.first(), 0);
        for (std::size_t at = 0; at < m_found.size() && m_report.violations() == 0; ++at) {
            try {
                go_on_from(at);
            } catch (const Violation& violation) {
                m_report.violation(violation.what() + std::string("; how it came to that:") +
                                   way_to(at));
            }
        }
        for (const auto& [name, times] : m_came) {
            m_report.came(name, times);
        }
        std::cout << m_found.size() << " states, " << m_transitions << " transitions, " << m_ends
                  << " ends, at most " << m_longest << " steps; " << m_steps.tables().sizes()
                  << '\n';
    }

  private:
    struct Found {
        const std::string* world;
        std::uint32_t from;
        std::uint32_t steps;
    };

    bool add(const World& world, std::size_t from) {
        const auto [key, is_new] = m_seen.insert(world.key());
        if (is_new) {
            const std::uint32_t steps = m_found.empty() ? 0 : m_found[from].steps + 1;
            m_longest = std::max(m_longest, steps);
            m_found.push_back({&*key, static_cast<std::uint32_t>(from), steps});
        }
        return is_new;
    }

    void go_on_from(std::size_t at) {
        const World world = World::of(*m_found[at].world);
        bool ends = true;
        m_steps.each(world, [&](const Step& step, const World& next) {
            ++m_transitions;
            ++m_came[step.name];
            ends &= step.kind != Step::Kind::sure;
            if (add(next, at)) {
                m_steps.check(next);
            }
        });
        if (ends) {
            ++m_ends;
            m_steps.check_end(world);
        }
    }

    /// The steps to the state, and the first from there that went wrong.
    std::string way_to(std::size_t at);

    SearchSteps m_steps;
    FaultReport& m_report;
    std::unordered_set<std::string> m_seen; // its elements stay where they are
    std::vector<Found> m_found;             // in the order of their distance
    std::map<std::string_view, std::uint64_t> m_came;
    std::uint64_t m_transitions = 0;
    std::uint64_t m_ends = 0;
    std::uint32_t m_longest = 0;
};

std::string Search::way_to(std::size_t at) {
    std::string way;
    for (; at != 0; at = m_found[at].from) {
        const std::string& reached = *m_found[at].world;
        std::string_view name;
        int who = -1;
        m_steps.each(World::of(*m_found[m_found[at].from].world),
                     [&](const Step& step, const World& next) {
                         if (next.key() == reached) {
                             name = step.name;
                             who = step.who;
                         }
                     });
        way = "\n    " + (who < 0 ? "" : "consumer " + std::to_string(who + 1) + " ") +
              std::string(name) + way;
    }
    return way;
}

const Sabotage* sabotage_named(const std::string& name) {
    for (const Sabotage& sabotage : orizuru::test::sabotages) {
        if (sabotage.name == name) {
            return &sabotage;
        }
    }
    if (!name.empty()) {
        throw std::invalid_argument("there is no sabotage " + name);
    }
    return nullptr;
}

} // namespace

int main(int count, char** arguments) {
    return orizuru::test::run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"messages", "aa"},
                                    {"faults", "1"},
                                    {"odd", "1"},
                                    {"links", "own"},
                                    {"blamed", "go_back"},
                                    {"sabotage", ""}});
        FaultReport report(options);
        const Sabotage* sabotage = sabotage_named(options.text("sabotage"));
        const Links links = options.text("links") == "shared" ? Links::shared : Links::own;
        const Blamed blamed =
            options.text("blamed") == "wait_apart" ? Blamed::wait_apart : Blamed::go_back;
        Search({options.text("messages"), static_cast<int>(options.number("faults")),
                static_cast<int>(options.number("odd")), links, blamed},
               sabotage, report)
            .run();
        if (sabotage != nullptr) {
            std::cout << "sabotage " << sabotage->name
                      << (report.violations() > 0 ? " was found\n" : " was NOT found\n");
            return report.violations() > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        }
        if (options.number("odd") > 0) {
            report.came("a collector refills", 0); // it must have
        }
        if (links == Links::own) {
            report.came("dies", 0);
        }
        if (blamed == Blamed::wait_apart) {
            report.came("asks for a suspect", 0);
            report.came("has its BLMOVE ended for a suspect", 0);
            report.came("a collector returns suspects", 0);
        }
        return report.finish({"is cut off", "has its wait cut off", "a lease ends",
                              "a collector reaps", "a ghost runs", "has an old request run",
                              "has its request refused", "has its BLMOVE refused"});
    });
}
