// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Plays every scenario with its connections cut after each byte, in either direction and in four
// ways. Each time the clients must recover by themselves, and Redis' own lists must agree with the
// user's answers.
//
// usage: byte_cuts [--seed N] [--size CUTS] [--cuts 1|2] [--scenario all|NAME] [--point all|POINT]
//                  [--threads N] [--over plain|tls]
// A point belongs to one scenario, which has to be named with it. As many points are tried as
// needed for `size` cuts (0 = all points), spread evenly over scenarios and bytes. With two cuts,
// the second hits the connection that is opened next. The long form: --size 100000 --threads 64,
// and with --cuts 2.

#include "crash/support/cut_points.hpp"
#include "crash/support/fault_program.hpp"
#include "crash/support/scenarios.hpp"
#include "crash/support/tour.hpp"
#include "crash/support/transport.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/proxy.hpp"
#include "support/redis_server.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace byte_cuts_test {

using namespace orizuru::test;

/// Plays scenarios through a proxy of its own, one after the other.
class Player {
  public:
    Player(const RedisServer& server, const Transport& transport, std::atomic<std::uint64_t>& plays)
        : m_server(server),
          m_transport(transport),
          m_plays(plays),
          m_proxy(transport.backend(server)) {}

    /// Returns the connections of a play without a cut; throws when that fails.
    std::vector<Lengths> rehearse(const Scenario& scenario) {
        const std::vector<std::string> wrong = play(scenario);
        if (!wrong.empty()) {
            throw std::runtime_error(std::string(scenario.name) + " without a cut: " + wrong[0]);
        }
        if (m_left_behind) {
            throw std::runtime_error(std::string(scenario.name) + " left a consumer registered");
        }
        std::vector<Lengths> connections;
        for (std::size_t i = 0; i < m_proxy.accepted(); ++i) {
            connections.push_back(
                {m_proxy.bytes(i, directions[0]), m_proxy.bytes(i, directions[1])});
        }
        return connections;
    }

    /// Returns the violations.
    std::vector<std::string> play(const Scenario& scenario, const CutPoint& point) {
        const std::size_t connection = m_proxy.accepted() + point.connection;
        const std::size_t cuts_before = m_proxy.cuts();
        m_proxy.cut_after(directions[point.cut.direction], point.cut.bytes, ways[point.cut.way],
                          connection);
        if (point.next) {
            m_proxy.then_cut_next_after(directions[point.next->direction], point.next->bytes,
                                        ways[point.next->way]);
        }
        std::vector<std::string> wrong = play(scenario);
        m_reached = m_proxy.was_cut(connection, directions[point.cut.direction]) &&
                    (!point.next || m_proxy.cuts() - cuts_before >= 2);
        return wrong;
    }
    /// Whether the cuts of the last point have come.
    [[nodiscard]] bool reached() const { return m_reached; }
    /// The proxy remembers all its connections.
    [[nodiscard]] bool tired() const { return m_proxy.accepted() > 200; }

  private:
    std::vector<std::string> play(const Scenario& scenario) {
        const std::string queue = "q" + std::to_string(1'000'000 + m_plays++);
        Stage stage(with_query(m_transport.complete(m_proxy.uri()), m_transport.impatience()),
                    m_server.plain_uri(), queue, &m_proxy);
        std::vector<std::string> wrong;
        try {
            scenario.play(stage);
        } catch (const std::exception& error) {
            wrong.emplace_back(error.what());
        }
        // Delayed commands reach Redis even when no client waits for them any more.
        if (!eventually([&] { return !m_proxy.in_use(); })) {
            wrong.emplace_back("a connection was left open");
        }
        m_proxy.cancel_cuts();
        m_proxy.break_all();
        m_left_behind = stage.redis.exists(stage.key("consumers"));
        for (std::string& what : judge(stage.ledger, m_server.plain_uri(), queue)) {
            wrong.push_back(std::move(what));
        }
        return wrong;
    }

    const RedisServer& m_server;
    const Transport& m_transport;
    std::atomic<std::uint64_t>& m_plays;
    Proxy m_proxy;
    bool m_reached = false;
    bool m_left_behind = false; ///< a consumer that only a collector removes
};

class Cuts {
  public:
    explicit Cuts(const FaultOptions& options)
        : m_size(options.number("size")),
          m_report(options),
          m_transport(options.text("over")),
          m_server(m_transport.server()) {
        std::vector<std::uint64_t> sizes;
        for (const Scenario& scenario : chosen(options.text("scenario"), options.text("point"))) {
            const CutPoints points(Player(m_server, m_transport, m_plays).rehearse(scenario),
                                   options.number("cuts"));
            m_parts.push_back({scenario, points});
            sizes.push_back(points.size());
        }
        m_tour.emplace(sizes, options.number("seed"));
        std::cout << "of " << m_tour->size() << " points" << std::endl;
    }

    int run_all(std::uint64_t threads) {
        for (const Part& part : m_parts) {
            m_report.came("in " + std::string(part.scenario.name), 0); // each kind must have come
        }
        in_threads(threads, [this] { work(); });
        if (m_reached < m_size) {
            m_report.violation("only " + std::to_string(m_reached) + " cuts came");
        }
        return m_report.finish({"fin", "rst", "silence", "delay"});
    }

    int run_one(const CutPoint& point) {
        Player player(m_server, m_transport, m_plays);
        run(player, m_parts.front().scenario, point);
        return m_report.finish({way_names[point.cut.way]});
    }

  private:
    struct Part {
        Scenario scenario;
        CutPoints points;
    };

    void work() {
        auto player = std::make_unique<Player>(m_server, m_transport, m_plays);
        // Other points replace those that were not reached.
        while ((m_size == 0 || m_reached < m_size) && !m_report.is_full()) {
            const std::optional<Tour::Stop> stop = m_tour->next();
            if (!stop) {
                return;
            }
            const auto& [scenario, points] = m_parts[stop->part];
            run(*player, scenario, points.at(stop->number));
            if (player->tired()) {
                player = std::make_unique<Player>(m_server, m_transport, m_plays);
            }
        }
    }

    void run(Player& player, const Scenario& scenario, const CutPoint& point) {
        const std::string name(scenario.name);
        for (const std::string& what : player.play(scenario, point)) {
            m_report.violation(name + ' ' + to_text(point) + ": " + what,
                               {{"scenario", name}, {"point", to_text(point)}});
        }
        if (player.reached()) {
            ++m_reached;
            m_report.came(way_names[point.cut.way]);
            if (point.next) {
                m_report.came("then " + std::string(way_names[point.next->way]));
            }
            m_report.came("in " + name);
        } else {
            m_report.came("points not reached");
        }
    }

    std::uint64_t m_size;
    FaultReport m_report;
    Transport m_transport;
    RedisServer m_server;
    std::atomic<std::uint64_t> m_plays = 0;
    std::vector<Part> m_parts;
    std::optional<Tour> m_tour;
    std::atomic<std::uint64_t> m_reached = 0;
};

const FaultProgram program("byte_cuts", [](int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"seed", "1"},
                                    {"size", "3000"},
                                    {"cuts", "1"},
                                    {"scenario", "all"},
                                    {"point", "all"},
                                    {"threads", "32"},
                                    {"over", "plain"}});
        Cuts cuts(options);
        const std::string& point = options.text("point");
        return point == "all" ? cuts.run_all(options.number("threads"))
                              : cuts.run_one(to_cut_point(point));
    });
});

} // namespace byte_cuts_test
