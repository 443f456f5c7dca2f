// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Plays every scenario on a Redis that writes each change to its append-only file before it
// answers. Then a Redis starts from each prefix of that file, as after a crash that lost the rest,
// and must agree with the user's requests and answers up to that length of the file.
//
// usage: aof_prefixes [--seed N] [--size PREFIXES] [--scenario all|NAME] [--prefix all|BYTES]
//                     [--threads N]
// 0 prefixes = all; the long form.

#include "crash/support/fault_program.hpp"
#include "crash/support/scenarios.hpp"
#include "crash/support/tour.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/proxy.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace aof_prefixes_test {

using namespace orizuru::test;
namespace fs = std::filesystem;

const std::string queue = "q";
const fs::path log_folder = "appendonlydir";
const fs::path log_file = log_folder / "appendonly.aof.1.incr.aof";

/// A redis-server with one append-only file, in a given folder or its own.
RedisServer server_with_file(const std::string& fsync, const TempDir* folder = nullptr) {
    std::vector<std::string> arguments{
        "--appendonly",         "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0",
        "--aof-load-truncated", "yes"};
    if (folder != nullptr) {
        arguments.insert(arguments.end(), {"--dir", folder->path()});
    }
    return RedisServer(std::move(arguments));
}

/// The outcome of a scenario: the file, and the user's knowledge at each length of it.
class Recording {
  public:
    explicit Recording(const Scenario& scenario) : m_scenario(scenario) {
        const RedisServer server = server_with_file("always", &m_folder);
        Proxy proxy(server.socket_path());
        Stage stage(proxy.uri(), server.uri(), queue, &proxy,
                    [this](Stage::Word word, const Entry& entry) { note(word, entry); });
        scenario.play(stage);
        if (!eventually([&] { return !proxy.in_use(); })) {
            throw std::runtime_error("a connection was left open");
        }
    }

    [[nodiscard]] const Scenario& scenario() const { return m_scenario; }
    [[nodiscard]] std::uint64_t size() const { return fs::file_size(m_folder.path() / log_file); }

    void copy_to(const fs::path& folder) const {
        fs::remove_all(folder / log_folder);
        fs::copy(m_folder.path() / log_folder, folder / log_folder);
    }

    /// Writes the user's knowledge for a prefix of this many bytes: requests that Redis got when
    /// the file was longer are not in it; answers that Redis gave by then are.
    void tell(Ledger& ledger, std::uint64_t bytes) const {
        for (const Line& line : m_lines) {
            if (line.word == Stage::Word::request ? line.size < bytes : line.size <= bytes) {
                line.entry(ledger);
            }
        }
    }

  private:
    struct Line {
        Stage::Word word;
        std::uint64_t size; ///< of the file, when this was written
        Entry entry;
    };

    void note(Stage::Word word, const Entry& entry) { m_lines.push_back({word, size(), entry}); }

    Scenario m_scenario;
    TempDir m_folder;
    std::vector<Line> m_lines;
};

class Prefixes {
  public:
    explicit Prefixes(const FaultOptions& options)
        : m_size(options.number("size")), m_report(options) {
        std::vector<std::uint64_t> sizes;
        for (const Scenario& scenario : chosen(options.text("scenario"), options.text("prefix"))) {
            const Recording& recording = m_recordings.emplace_back(scenario);
            sizes.push_back(recording.size() + 1);
        }
        m_tour.emplace(sizes, options.number("seed"));
        std::cout << "of " << m_tour->size() << " prefixes" << std::endl;
    }

    int run_all(std::uint64_t threads) {
        for (const Recording& recording : m_recordings) {
            m_report.came("of " + std::string(recording.scenario().name), 0); // each must have come
        }
        in_threads(threads, [this] { work(); });
        if (m_judged <
            (m_size == 0 ? m_tour->size() : std::min<std::uint64_t>(m_size, m_tour->size()))) {
            m_report.violation("only " + std::to_string(m_judged) + " prefixes came");
        }
        return m_report.finish({"prefixes"});
    }

    int run_one(std::uint64_t bytes) {
        Restarted().run(m_report, m_recordings.front(), bytes);
        return m_report.finish({"prefixes"});
    }

  private:
    /// A Redis that starts from one prefix after the other.
    class Restarted {
      public:
        void run(FaultReport& report, const Recording& recording, std::uint64_t bytes) {
            m_server.kill();
            const fs::path folder = fs::path(m_server.socket_path()).parent_path();
            recording.copy_to(folder);
            fs::resize_file(folder / log_file, bytes);
            m_server.restart();
            // A second crash: nothing that the first one cut in half may run at the next start.
            RedisClient(m_server.uri())
                .command({"EVAL", "redis.call('SET', 'x', 1) redis.call('DEL', 'x')", "0"});
            m_server.restart();

            Ledger ledger(queue, queue + "-other");
            recording.tell(ledger, bytes);
            const std::string name(recording.scenario().name);
            for (const std::string& what : judge(ledger, m_server.uri(), queue)) {
                report.violation(name + ", " + std::to_string(bytes) + " bytes: " + what,
                                 {{"scenario", name}, {"prefix", std::to_string(bytes)}});
            }
            report.came("prefixes");
            report.came("of " + name);
        }

      private:
        RedisServer m_server = server_with_file("no");
    };

    void work() {
        Restarted redis;
        while ((m_size == 0 || m_begun++ < m_size) && !m_report.is_full()) {
            const std::optional<Tour::Stop> stop = m_tour->next();
            if (!stop) {
                return;
            }
            redis.run(m_report, m_recordings[stop->part], stop->number);
            ++m_judged;
        }
    }

    std::uint64_t m_size;
    FaultReport m_report;
    std::deque<Recording> m_recordings;
    std::optional<Tour> m_tour;
    std::atomic<std::uint64_t> m_begun = 0;
    std::atomic<std::uint64_t> m_judged = 0;
};

const FaultProgram program("aof_prefixes", [](int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"seed", "1"},
                                    {"size", "500"},
                                    {"scenario", "all"},
                                    {"prefix", "all"},
                                    {"threads", "4"}});
        Prefixes prefixes(options);
        return options.text("prefix") == "all" ? prefixes.run_all(options.number("threads"))
                                               : prefixes.run_one(options.number("prefix"));
    });
});

} // namespace aof_prefixes_test
