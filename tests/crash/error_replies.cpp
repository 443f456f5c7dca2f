// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Every error reply of Redis to every command of the library: tries each cell of the table on a
// real Redis behind a server that refuses. In each cell nothing is lost or doubled, no command is
// repeated without pauses, and every wait ends.
//
// usage: error_replies [--seed N] [--size ROUNDS] [--row CODE|end] [--command NAME]
//   The seed decides the order, and so which cells run at the same time.

#include "crash/support/command_users.hpp"
#include "crash/support/error_table.hpp"
#include "crash/support/fault_program.hpp"
#include "crash/support/library_commands.hpp"
#include "crash/support/refusing_server.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"
#include "support/redis_server.hpp"

#include <orizuru/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace error_replies_test {

using namespace std::chrono_literals;
using orizuru::test::Column;
using orizuru::test::Command;
using orizuru::test::CommandUsers;
using orizuru::test::FaultOptions;
using orizuru::test::FaultReport;
using orizuru::test::Outcome;
using orizuru::test::RedisServer;
using orizuru::test::Refusals;
using orizuru::test::RefuseFor;
using orizuru::test::RefusingServer;
using orizuru::test::Row;
using orizuru::test::Stopwatch;
namespace error_table = orizuru::test::error_table;

/// One cell of the table.
class Cell {
  public:
    Cell(const RedisServer& real, RefusingServer& front, const Row& row, const Command& command)
        : m_front(front), m_row(row), m_command(command), m_users(real.uri(), front.socket_path()) {
        if (command.logs_in) {
            m_users.log_in();
        }
        if (row.text.empty()) {
            m_users.expect_repeats();
        }
    }

    /// Returns the violations.
    std::vector<std::string> run(Outcome outcome) {
        act(); // the state without a refusal
        judge(outcome);
        act_after_refusals();
        std::vector<std::string> wrong = m_users.finish();
        wrong.insert(wrong.end(), m_wrong.begin(), m_wrong.end());
        return wrong;
    }

  private:
    // The longest pause between two attempts, with a margin for a loaded machine.
    static constexpr auto longest = RefusingServer::window + 5s + 3s;
    // Three connections that back off, each from 50 ms, come to a dozen in the window.
    static constexpr std::size_t most_attempts = 30;

    struct Seen {
        std::string thrown; ///< an error's code, "broken" for a ConnectionError
        Refusals refusals;
    };

    void act() { (m_users.*m_command.act)(); }
    /// On a machine that is late, what waits for no caller may be refused once more before the
    /// refusals end; the next call tells of that.
    void act_after_refusals() {
        try {
            act();
        } catch (const orizuru::ReplyError& error) {
            if (m_refused_in_vain < 2 || error.code() != m_row.code()) {
                throw;
            }
            act();
        }
    }

    void expect(bool holds, const std::string& otherwise) {
        if (!holds) {
            m_wrong.push_back(otherwise);
        }
    }

    Seen attempt(RefuseFor time) {
        if (m_command.lead) {
            m_front.lead(m_command.lead->matches, m_command.lead->answer);
        }
        m_front.refuse(m_command.matches, m_row.reply(), time);
        const auto begun = std::chrono::steady_clock::now();
        Seen seen;
        try {
            act();
        } catch (const orizuru::ReplyError& error) {
            seen.thrown = error.code();
        } catch (const orizuru::ConnectionError&) {
            seen.thrown = "broken";
        }
        const auto took = std::chrono::steady_clock::now() - begun;
        // A heartbeat's thread may end the consumer later, and tries then once more.
        m_registered = m_users.registered();
        seen.refusals = m_front.stop();
        expect(took < longest, "it took too long");
        expect(seen.refusals.refused > 0, "the command was never sent");
        expect(seen.refusals.refused <= most_attempts,
               "it was sent " + std::to_string(seen.refusals.refused) + " times");
        return seen;
    }
    Refusals attempt_in_peace(RefuseFor time) {
        const Seen seen = attempt(time);
        expect(seen.thrown.empty(), "the user got " + seen.thrown);
        return seen.refusals;
    }
    void attempt_in_vain(const std::string& error) {
        const Seen seen = attempt(RefuseFor::ever);
        m_refused_in_vain = seen.refusals.refused;
        expect(seen.thrown == error,
               "the user got " + (seen.thrown.empty() ? "no error" : seen.thrown));
    }

    void judge(Outcome outcome) {
        const std::string code(m_row.code());
        switch (outcome) {
        case Outcome::waits:
            expect(attempt_in_peace(RefuseFor::some_time).adoptions == 0 || m_command.lead,
                   "it adopted its list");
            break;
        case Outcome::connects:
            expect(attempt_in_peace(RefuseFor::some_time).connections > 0,
                   "it kept the connection");
            break;
        case Outcome::adopts:
            adopt(m_row.outcomes == error_table::role ? RefuseFor::some_time : RefuseFor::once);
            break;
        case Outcome::insists:
            adopt(RefuseFor::once);
            attempt_in_vain(code);
            break;
        case Outcome::drains:
            attempt_in_peace(RefuseFor::ever);
            break;
        case Outcome::sends:
            expect(attempt_in_peace(RefuseFor::once).first_served == "EVAL",
                   "it did not send the body");
            // No Redis answers the body so, but the library must still pause before it asks again.
            attempt_in_peace(RefuseFor::some_time);
            break;
        case Outcome::throws:
            attempt_in_vain(code);
            break;
        case Outcome::leaves:
            attempt_in_vain(code);
            act_after_refusals();
            expect(m_front.stop().connections > 0, "it kept the connection");
            break;
        case Outcome::breaks:
            attempt_in_vain("broken");
            break;
        case Outcome::ignores:
            // No Redis answers NOSCRIPT to the body itself.
            attempt_in_peace(m_row.outcomes == error_table::script ? RefuseFor::once
                                                                   : RefuseFor::some_time);
            break;
        case Outcome::resigns:
            attempt_in_peace(RefuseFor::ever);
            expect(m_registered, "it has left the registry");
            return;
        }
        if (m_command.column == Column::release) {
            expect(!m_users.registered(), "it has not left the registry");
        }
    }
    void adopt(RefuseFor time) {
        expect(attempt_in_peace(time).adoptions > 0, "it did not adopt its list");
    }

    RefusingServer& m_front;
    const Row& m_row;
    const Command& m_command;
    CommandUsers m_users;
    std::size_t m_refused_in_vain = 0;
    bool m_registered = false; ///< before the last refusals ended
    std::vector<std::string> m_wrong;
};

/// Runs cells one after the other, until there is none left, on a Redis of its own. Runs one again
/// that went wrong while the machine let threads run late: a Redis that gets no time answers
/// nobody.
void work(const std::vector<std::pair<Row, Command>>& cells, std::atomic<std::size_t>& next,
          FaultReport& report) {
    constexpr int most_tries = 3;
    const RedisServer real;
    RefusingServer front(real);
    for (std::size_t i = next++; i < cells.size(); i = next++) {
        const auto& [row, command] = cells[i];
        const Outcome outcome = error_table::outcome(row, command);
        const auto violation = [&, &row = row, &command = command](const std::string& what) {
            report.violation(
                std::string(row.name()) + " to " + command.name + ": " + what,
                {{"row", std::string(row.name())}, {"command", '\'' + command.name + '\''}});
        };
        std::vector<std::string> wrong;
        for (int tries = 0; tries < most_tries; ++tries) {
            const Stopwatch stopwatch;
            try {
                wrong = Cell(real, front, row, command).run(outcome);
            } catch (const std::exception& error) {
                wrong = {error.what()};
            }
            front.stop();
            if (wrong.empty() || !stopwatch.elapsed().on_a_busy_machine()) {
                break;
            }
            report.came("cell in which the machine was late, and that went wrong");
        }
        std::ranges::for_each(wrong, violation);
        report.came(orizuru::test::outcome_names.at(static_cast<std::size_t>(outcome)));
    }
}

int run(const FaultOptions& options) {
    std::vector<std::pair<Row, Command>> cells;
    const std::string& only_row = options.text("row");
    const std::string& only_command = options.text("command");
    for (std::uint64_t round = 0; round < options.number("size"); ++round) {
        for (const Row& row : error_table::rows) {
            for (const Command& command : orizuru::test::library_commands()) {
                if ((only_row == "all" || row.name() == only_row) &&
                    (only_command == "all" || command.name == only_command)) {
                    cells.emplace_back(row, command);
                }
            }
        }
    }
    std::shuffle(cells.begin(), cells.end(), std::mt19937_64(options.number("seed")));
    FaultReport report(options);
    std::atomic<std::size_t> next{0};
    {
        // They wait most of the time.
        std::vector<std::jthread> workers;
        for (std::size_t i = 0; i < std::min<std::size_t>(16, cells.size()); ++i) {
            workers.emplace_back([&] { work(cells, next, report); });
        }
    }
    std::cout << cells.size() << " cells\n";
    if (only_row == "all" && only_command == "all") {
        for (const std::string_view name : orizuru::test::outcome_names) {
            report.came(name, 0); // each kind must have come
        }
    }
    return report.finish({});
}

const orizuru::test::FaultProgram program("error_replies", [](int count, char** arguments) {
    return orizuru::test::run_fault_program([&] {
        return run(
            {count, arguments, {{"seed", "1"}, {"size", "1"}, {"row", "all"}, {"command", "all"}}});
    });
});

} // namespace error_replies_test
