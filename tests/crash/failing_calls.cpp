// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Plays every scenario with the N-th of its socket calls failing, for every N and every way in
// which the kernel may fail that call. Each time it must end as without a fault, with no message
// lost or doubled, and no descriptor left open.
//
// usage: failing_calls [--seed N] [--size COUNT] [--fault all|NAME] [--scenario all|NAME]
//                      [--way all|unix|tcp] [--at all|N]
// Tries each fault at all points, or at its share of COUNT, drawn by the seed (0 = all).

#include "crash/support/failing_sockets.hpp"
#include "crash/support/scenarios.hpp"
#include "crash/support/stage.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/redis_server.hpp"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace orizuru::test;

// EAGAIN from send and recv means that a poll was wrong, which may happen; from connect, that a
// Unix socket's backlog is full or no port is free. The library uses no fcntl that could fail.
constexpr std::array faults = std::to_array<SocketFault>({
    {Call::socket, "socket EMFILE", EMFILE},
    {Call::connect, "connect EINTR", EINTR},
    {Call::connect, "connect EAGAIN", EAGAIN},
    {Call::connect, "connect ETIMEDOUT", ETIMEDOUT},
    {Call::connect, "connect ECONNRESET", ECONNRESET},
    {Call::connected, "connection ETIMEDOUT", ETIMEDOUT},
    {Call::connected, "connection ECONNRESET", ECONNRESET},
    {Call::setsockopt, "setsockopt ECONNRESET", ECONNRESET},
    {Call::getaddrinfo, "getaddrinfo EAI_AGAIN", EAI_AGAIN},
    {Call::getaddrinfo, "getaddrinfo EMFILE", EAI_SYSTEM},
    {Call::poll, "poll EINTR", EINTR},
    {Call::send, "send EINTR", EINTR},
    {Call::send, "send EAGAIN", EAGAIN},
    {Call::send, "send EPIPE", EPIPE},
    {Call::send, "send ECONNRESET", ECONNRESET},
    {Call::send, "send ETIMEDOUT", ETIMEDOUT},
    {Call::send, "send one byte", 0},
    {Call::recv, "recv EINTR", EINTR},
    {Call::recv, "recv EAGAIN", EAGAIN},
    {Call::recv, "recv ECONNRESET", ECONNRESET},
    {Call::recv, "recv ETIMEDOUT", ETIMEDOUT},
    {Call::recv, "recv one byte", 0},
});

/// The library need not notice.
bool is_harmless(const SocketFault& fault) {
    return (fault.error == EINTR && fault.call != Call::connect) ||
           (fault.error == EAGAIN && fault.call != Call::connect) || fault.error == 0;
}

// Nothing waits in vain here: without a fault that breaks a connection, no time-out may come.
constexpr std::string_view timeouts = "?connect_timeout=3000&command_timeout=3000";

constexpr std::array<std::string_view, 2> ways{"unix", "tcp"};

struct Point {
    const Scenario* scenario;
    std::size_t way;
    long before;
    long connections; ///< without a failing call
};

// A play that never ends is reported before the program is ended.
constexpr unsigned longest_play = 60;
std::array<char, 256> current_play;
extern "C" void tell_current_play(int /*number*/) {
    const std::string_view text(current_play.data());
    std::_Exit(::write(STDERR_FILENO, text.data(), text.size()) < 0 ? 3 : 2);
}

class Loop {
  public:
    explicit Loop(const FaultOptions& options)
        : m_options(options),
          m_report(options),
          m_link(m_folder.path() + "/library.sock"),
          m_uris{"unix://" + m_link, m_server.uri()} {
        // A link, so that the library's connections differ from the test's own.
        std::filesystem::create_symlink(m_server.socket_path(), m_link);
        FailingSockets::take_for_the_library(m_link);
        std::signal(SIGALRM, tell_current_play);
        rehearse();
    }

    int run() {
        std::mt19937_64 random(m_options.number("seed"));
        const std::uint64_t size = m_options.number("size");
        for (const SocketFault& fault : faults) {
            if (!chosen("fault", fault.name)) {
                continue;
            }
            std::vector<Point> points = points_of(fault.call);
            std::ranges::shuffle(points, random);
            points.resize(std::min<std::size_t>(
                points.size(), size == 0 ? points.size() : size / faults.size() + 1));
            for (const Point& point : points) {
                run(fault, point);
            }
            m_report.came(fault.name, 0);
        }
        return m_report.finish({});
    }

  private:
    struct Play {
        FailingSockets::Counts counts;
        std::vector<std::string> wrong;
    };
    struct Rehearsal {
        const Scenario* scenario;
        std::size_t way;
        FailingSockets::Counts counts;
    };

    [[nodiscard]] bool chosen(std::string_view option, std::string_view name) const {
        return m_options.text(option) == "all" || m_options.text(option) == name;
    }

    /// How many calls there are without a fault.
    void rehearse() {
        for (const Scenario& scenario : scenarios) {
            for (std::size_t way = 0; way < ways.size(); ++way) {
                if (chosen("scenario", scenario.name) && chosen("way", ways.at(way))) {
                    const Play played = play(scenario, way, [] { FailingSockets::begin(); });
                    if (!played.wrong.empty()) {
                        throw std::runtime_error(std::string(scenario.name) +
                                                 " without a fault: " + played.wrong.front());
                    }
                    m_rehearsals.push_back({&scenario, way, played.counts});
                }
            }
        }
    }

    [[nodiscard]] std::vector<Point> points_of(Call call) const {
        std::vector<Point> points;
        const std::string& at = m_options.text("at");
        for (const auto& [scenario, way, counts] : m_rehearsals) {
            const bool only_one = at != "all";
            const long first = only_one ? static_cast<long>(m_options.number("at")) : 0;
            const long end = only_one ? first + 1 : count_of(counts, call);
            for (long i = first; i < end; ++i) {
                points.push_back({scenario, way, i, count_of(counts, Call::connect)});
            }
        }
        return points;
    }

    void run(const SocketFault& fault, const Point& point) {
        const std::string name(point.scenario->name);
        const std::string what = std::string(fault.name) + " behind " +
                                 std::to_string(point.before) + " in " + name + " by " +
                                 std::string(ways.at(point.way));
        current_play.fill('\0');
        ("no end: " + what + '\n').copy(current_play.data(), current_play.size() - 1);
        Play played =
            play(*point.scenario, point.way, [&] { FailingSockets::begin(fault, point.before); });
        // A beat, and a call of 20 ms, may have less time than a busy machine needs to connect.
        const bool is_hasty = name == "beat" || name == "fetch_waiting";
        if (is_harmless(fault) && !is_hasty &&
            count_of(played.counts, Call::connect) > point.connections) {
            played.wrong.emplace_back("a connection was given up for nothing");
        }
        for (const std::string& wrong : played.wrong) {
            m_report.violation(what + ": " + wrong,
                               {{"fault", '\'' + std::string(fault.name) + '\''},
                                {"scenario", name},
                                {"way", std::string(ways.at(point.way))},
                                {"at", std::to_string(point.before)}});
        }
        m_report.came(count_of(played.counts, fault.call) > point.before ? fault.name
                                                                         : "points not reached");
    }

    template <class Begin>
    Play play(const Scenario& scenario, std::size_t way, Begin begin) {
        const std::string undisturbed = "unix://" + m_server.socket_path();
        const std::string queue = "q" + std::to_string(1'000'000 + m_plays++);
        const std::size_t descriptors = open_descriptors();
        Play played;
        ::alarm(longest_play);
        {
            Stage stage(m_uris.at(way) + std::string(timeouts), undisturbed, queue);
            stage.redis.command({"PING"}); // connects
            begin();
            try {
                scenario.play(stage);
            } catch (const std::exception& error) {
                played.wrong.emplace_back(error.what());
            }
            played.counts = FailingSockets::end();
            const std::vector<std::string> found = judge(stage.ledger, undisturbed, queue);
            played.wrong.insert(played.wrong.end(), found.begin(), found.end());
        }
        ::alarm(0);
        // What else this process runs for the play may end a moment later.
        if (!orizuru::test::eventually([&] { return open_descriptors() == descriptors; })) {
            played.wrong.emplace_back("a descriptor was left open");
        }
        return played;
    }

    static long count_of(const FailingSockets::Counts& counts, Call call) {
        return counts.at(static_cast<std::size_t>(call));
    }
    static std::size_t open_descriptors() {
        const std::filesystem::directory_iterator all("/proc/self/fd");
        return static_cast<std::size_t>(std::distance(begin(all), end(all)));
    }

    const FaultOptions& m_options;
    FaultReport m_report;
    RedisServer m_server{{}, RedisServer::Listen::tcp};
    TempDir m_folder;
    std::string m_link;
    std::array<std::string, ways.size()> m_uris;
    std::vector<Rehearsal> m_rehearsals;
    std::uint64_t m_plays = 0;
};

} // namespace

int main(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"seed", "1"},
                                    {"size", "800"},
                                    {"fault", "all"},
                                    {"scenario", "all"},
                                    {"way", "all"},
                                    {"at", "all"}});
        return Loop(options).run();
    });
}
