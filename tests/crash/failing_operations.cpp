// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Runs every operation of the library with its N-th operator new failing, for N = 1, 2, ... until
// it needs no more: that one alone, and that one with all after it. Afterwards the same operation
// must work, and nothing may be lost or doubled.
//
// usage: failing_operations [--seed N] [--step STEP] [--operation all|NAME] [--at all|N]
//   Every STEP-th allocation fails, from the seed on.

#include "crash/support/command_users.hpp"
#include "crash/support/failing_memory.hpp"
#include "crash/support/library_call.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"
#include "support/redis_server.hpp"

#include <orizuru/error.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace orizuru::test;
using Kind = FailingMemory::Kind;

struct Operation {
    std::string_view name;
    void (CommandUsers::*act)();
    bool warm = true; ///< its connections and scripts are there already
};

const std::vector<Operation> operations{
    {"a producer is made", &CommandUsers::make_producer},
    {"a buffer is made", &CommandUsers::make_buffer},
    {"a consumer is made", &CommandUsers::make_consumer},
    {"a collector is made", &CommandUsers::make_collector},
    {"push", &CommandUsers::push_one},
    {"push, connecting", &CommandUsers::push_one, false},
    {"push_all", &CommandUsers::push_some},
    {"a buffer is flushed", &CommandUsers::buffer_and_flush},
    {"a buffer is sent", &CommandUsers::buffer_and_wait},
    {"the length of a producer", &CommandUsers::look_at_length},
    {"a message is acked", &CommandUsers::take_one},
    {"a message is acked, connecting", &CommandUsers::take_one, false},
    {"a message of a batch is acked", &CommandUsers::take_of_batch},
    {"a message is acked later", &CommandUsers::ack_later},
    {"a message is rejected", &CommandUsers::reject_one},
    {"a message is released", &CommandUsers::release_one},
    {"a message is pushed on", &CommandUsers::push_on},
    {"a message is replaced", &CommandUsers::push_on_replaced},
    {"a message is buried", &CommandUsers::bury_one},
    {"a message is settled by a script", &CommandUsers::settle_by_script},
    {"a guard is let go", &CommandUsers::let_go},
    {"next ends in vain", &CommandUsers::look_in_vain},
    {"the length of a consumer", &CommandUsers::look_at_source},
    {"a consumer is stopped", &CommandUsers::stop_consuming},
    {"a consumer is stopped under a guard", &CommandUsers::stop_under_a_guard},
    {"collect", &CommandUsers::collect_once},
    {"run", &CommandUsers::collect_until_done},
};

class Loop {
  public:
    explicit Loop(const FaultOptions& options) : m_options(options), m_report(options) {}

    int run() {
        for (const Operation& operation : operations) {
            const std::string& only = m_options.text("operation");
            for (const Kind kind : {Kind::once, Kind::lasting}) {
                if (only == "all" || only == operation.name) {
                    run(operation, kind);
                }
            }
        }
        return m_report.finish({"allocations that failed", "allocations behind which all failed",
                                "calls that threw std::bad_alloc", "calls that did without"});
    }

  private:
    void run(const Operation& operation, Kind kind) {
        const std::string& at = m_options.text("at");
        if (at != "all") {
            run(operation, kind, static_cast<long>(m_options.number("at")));
            return;
        }
        const auto step = static_cast<long>(m_options.number("step"));
        long n = static_cast<long>(m_options.number("seed")) % step;
        while (run(operation, kind, n)) {
            n += step;
        }
        std::cout << operation.name << ": " << n << " allocations" << std::endl;
    }

    /// False when the operation needed fewer.
    bool run(const Operation& operation, Kind kind, long n) {
        std::vector<std::string> wrong;
        bool failed = false;
        try {
            CommandUsers users(m_server.uri(), m_server.socket_path());
            users.expect_repeats();
            if (operation.warm) {
                (users.*operation.act)();
            }
            const Stopwatch stopwatch;
            FailingMemory::begin(n, kind);
            bear([&] { (users.*operation.act)(); });
            failed = FailingMemory::end();
            if (!(stopwatch.elapsed() <= longest)) {
                wrong.emplace_back("it took too long");
            }
            (users.*operation.act)();
            const std::vector<std::string> found = users.finish();
            wrong.insert(wrong.end(), found.begin(), found.end());
        } catch (const std::exception& error) {
            FailingMemory::end();
            wrong.emplace_back(error.what());
        }
        for (const std::string& what : wrong) {
            m_report.violation(std::string(operation.name) + ", allocation " + std::to_string(n) +
                                   ": " + what,
                               {{"operation", '\'' + std::string(operation.name) + '\''},
                                {"at", std::to_string(n)}});
        }
        if (failed) {
            m_report.came(kind == Kind::once ? "allocations that failed"
                                             : "allocations behind which all failed");
        }
        return failed;
    }

    template <class Action>
    void bear(Action action) {
        try {
            action();
            m_report.came("calls that did without");
        } catch (const std::bad_alloc&) {
            m_report.came("calls that threw std::bad_alloc");
        } catch (const orizuru::Error&) {
            m_report.came("calls that threw for what broke without memory");
        }
    }

    static constexpr std::chrono::seconds longest{8};

    const FaultOptions& m_options;
    FaultReport m_report;
    RedisServer m_server;
};

} // namespace

int main(int count, char** arguments) {
    LibraryCall::outside = true;
    return run_fault_program([&] {
        const FaultOptions options(
            count, arguments, {{"seed", "0"}, {"step", "1"}, {"operation", "all"}, {"at", "all"}});
        return Loop(options).run();
    });
}
