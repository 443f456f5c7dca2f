// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Kills a process that runs an effect once before and after each command that it sends, and before
// and after its effect, one after the other. Each time another process goes on. No message may be
// lost; the effect must have run once, and again only when the first process died between it and
// its mark.
//
// usage: once_kills [--size ROUNDS] [--flow all|NAME] [--side all|before|behind] [--at all|N]

#include "support/collect_dead.hpp"
#include "support/eventually.hpp"
#include "support/fault_run.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/once.hpp>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace orizuru::test;
using orizuru::Consumer;
using orizuru::Once;
using orizuru::OnceOutcome;
using orizuru::Raw;
using orizuru::Scheduler;

enum class Side { before, behind };
enum class Step { none, command, effect };

/// Memory that a process shares with its parent.
struct Shared {
    std::atomic<int> effects{0};
    std::atomic<Step> died_at{Step::none};
};

/// Kills this process at one of its steps.
class Death {
  public:
    static void come(Shared& shared, Side side, long before) {
        s_shared = &shared;
        s_side = side;
        s_left = before;
    }
    template <class Action>
    static auto pass(Step step, Action action) {
        const bool now = s_shared != nullptr && s_left.fetch_sub(1) == 0;
        if (now && s_side == Side::before) {
            die(step);
        }
        const auto result = action();
        if (now) {
            die(step);
        }
        return result;
    }

  private:
    static void die(Step step) {
        s_shared->died_at = step;
        ::kill(::getpid(), SIGKILL);
    }

    static inline Shared* s_shared = nullptr;
    static inline Side s_side = Side::before;
    static inline std::atomic<long> s_left{-1};
};

// As short as possible, because the next process waits for it.
constexpr orizuru::OnceOptions options{.lease = 100ms};

class Worker {
  public:
    Worker(std::string uri, Shared& shared) : m_uri(std::move(uri)), m_shared(shared) {}

    [[nodiscard]] auto effect() const {
        return [this] { Death::pass(Step::effect, [this] { return ++m_shared.effects; }); };
    }
    [[nodiscard]] const std::string& uri() const noexcept { return m_uri; }

  private:
    std::string m_uri;
    Shared& m_shared;
};

auto take(Consumer<Raw>& consumer) {
    auto guard = consumer.next(5s);
    if (!guard) {
        throw std::runtime_error("no message");
    }
    return std::move(*guard);
}

void settle_in_one_step(const Worker& worker) {
    Once once(worker.uri(), "q", options);
    Consumer<Raw> consumer(worker.uri(), "q");
    auto guard = take(consumer);
    once.run(guard, "id", worker.effect());
}

void ack_behind(const Worker& worker) {
    Once once(worker.uri(), "q", options);
    Consumer<Raw> consumer(worker.uri(), "q");
    auto guard = take(consumer);
    if (once.run("id", worker.effect()).outcome == OnceOutcome::busy) {
        throw std::runtime_error("nobody else is there");
    }
    guard.ack();
}

void fail_and_reject(const Worker& worker) {
    Once once(worker.uri(), "q", options);
    Consumer<Raw> consumer(worker.uri(), "q");
    auto guard = take(consumer);
    try {
        once.run(guard, "id", [] { throw std::runtime_error("no luck"); });
    } catch (const std::runtime_error&) {
        guard.reject();
    }
}

void claim_renew_complete(const Worker& worker) {
    Once once(worker.uri(), "q", options);
    const auto claim = once.claim("id");
    once.renew();
    worker.effect()();
    once.complete(claim.token);
}

struct Flow {
    std::string_view name;
    void (*live)(const Worker& worker);
    std::string_view record = ""; ///< the state before: claimed or done
    bool message = true;
    bool one_step = false; ///< the mark and the ack are one step
};

constexpr std::array flows = std::to_array<Flow>({
    {.name = "one-step", .live = settle_in_one_step, .one_step = true},
    {.name = "ack-behind", .live = ack_behind},
    {.name = "failure", .live = fail_and_reject, .one_step = true},
    {.name = "busy", .live = settle_in_one_step, .record = "claimed", .one_step = true},
    {.name = "repeated", .live = settle_in_one_step, .record = "done"},
    {.name = "claim", .live = claim_renew_complete, .message = false},
});

class Kills {
  public:
    explicit Kills(const FaultOptions& options)
        : m_options(options), m_report(options), m_shared(share()) {}

    int run() {
        for (std::uint64_t round = 0; round < m_options.number("size"); ++round) {
            for (const Flow& flow : flows) {
                for (const Side side : {Side::before, Side::behind}) {
                    if (chosen("flow", flow.name) && chosen("side", name(side))) {
                        run(flow, side);
                    }
                }
            }
        }
        if (m_options.text("flow") != "all" || m_options.text("side") != "all" ||
            m_options.text("at") != "all") {
            return m_report.finish({});
        }
        return m_report.finish({"before a command", "behind a command", "before an effect",
                                "behind an effect", "effects repeated"});
    }

  private:
    static Shared& share() {
        void* const page = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            throw_errno("mmap");
        }
        return *new (page) Shared;
    }
    static std::string_view name(Side side) { return side == Side::before ? "before" : "behind"; }
    [[nodiscard]] bool chosen(std::string_view option, std::string_view value) const {
        return m_options.text(option) == "all" || m_options.text(option) == value;
    }

    /// Dies at each step, until there are no more.
    void run(const Flow& flow, Side side) {
        const std::string& at = m_options.text("at");
        long step = at == "all" ? 0 : static_cast<long>(m_options.number("at"));
        while (!m_report.is_full() && die_at(flow, side, step) && at == "all") {
            ++step;
        }
    }

    /// False when there is no such step.
    bool die_at(const Flow& flow, Side side, long step) {
        const auto violation = [&](const std::string& what) {
            m_report.violation(std::string(flow.name) + ", killed " + std::string(name(side)) +
                                   " step " + std::to_string(step) + ": " + what,
                               {{"flow", std::string(flow.name)},
                                {"side", std::string(name(side))},
                                {"at", std::to_string(step)}});
        };
        prepare(flow);
        const int status = live_and_die(flow, side, step);
        if (m_shared.died_at == Step::none && status != 0) {
            violation("it has ended by itself, with status " + std::to_string(status));
            return false;
        }
        m_report.came(std::string(name(side)) +
                          (m_shared.died_at == Step::effect ? " an effect" : " a command"),
                      m_shared.died_at == Step::none ? 0 : 1);
        try {
            judge(flow, violation);
        } catch (const std::exception& error) {
            violation(error.what());
        }
        return m_shared.died_at != Step::none;
    }

    void prepare(const Flow& flow) {
        m_redis.flushall();
        m_shared.effects = 0;
        m_shared.died_at = Step::none;
        if (flow.message) {
            m_redis.lpush("q", "message");
        }
        if (!flow.record.empty()) {
            Once once(m_server.uri(), "q", options);
            const auto claim = once.claim("id");
            if (flow.record == "done") {
                ++m_shared.effects;
                once.complete(claim.token);
            }
        }
    }

    /// Runs in a process of its own. When it has ended, Redis has seen its connections end, too.
    int live_and_die(const Flow& flow, Side side, long step) {
        const pid_t child = ::fork();
        if (child < 0) {
            throw_errno("fork");
        }
        if (child == 0) {
            Death::come(m_shared, side, step);
            try {
                flow.live(Worker(m_server.uri(), m_shared));
                ::_exit(0);
            } catch (...) {
                ::_exit(1);
            }
        }
        int status = 0;
        wait_for(child, 0, &status);
        if (!eventually([this] {
                return m_redis.command({"CLIENT", "LIST"}).text.find('\n') ==
                       m_redis.command({"CLIENT", "LIST"}).text.size() - 1;
            })) {
            throw std::runtime_error("a connection is left of a process that is gone");
        }
        return status;
    }

    [[nodiscard]] bool is_done() {
        return m_redis.command({"HGET", "orizuru:{q}:once:id", "state"}).text == "done";
    }
    /// Whether the message is in any list.
    [[nodiscard]] bool is_there() {
        std::int64_t found = m_redis.llen("q") + m_redis.llen("orizuru:{q}:unack") +
                             m_redis.command({"ZCARD", "orizuru:{q}:scheduled"}).integer;
        for (const std::string& key : m_redis.keys("orizuru:{q}:processing:*")) {
            if (m_redis.type(key) == "list") {
                found += m_redis.llen(key) - 1;
            }
        }
        if (found > 1) {
            throw std::runtime_error("the message is there twice");
        }
        return found == 1;
    }

    template <class Violation>
    void judge(const Flow& flow, Violation violation) {
        const bool done = is_done();
        const int effects = m_shared.effects;
        if (done && effects != 1) {
            violation("its id is done, and the effect has run " + std::to_string(effects) +
                      " times");
        }
        if (flow.message && !done && !is_there()) {
            violation("the message is gone, and its id is not done");
        }
        if (flow.one_step && done && is_there()) {
            violation("its id is done, and the message is still there");
        }
        m_report.came("effects repeated", effects == 1 && !done ? 1 : 0);
        if (!eventually([&] { return go_on(flow); })) {
            violation("nobody could go on");
        }
        if (m_shared.effects != effects + (done ? 0 : 1)) {
            violation("the effect has run " + std::to_string(m_shared.effects) + " times, " +
                      std::to_string(effects) + " of them in the process that was killed");
        }
    }

    /// The work of the next process; true when nothing is left to do.
    bool go_on(const Flow& flow) {
        Once once(m_server.uri(), "q", options);
        const auto effect = [this] { ++m_shared.effects; };
        if (!flow.message) {
            return once.run("id", effect).outcome != OnceOutcome::busy;
        }
        collect_dead(m_redis, m_server.uri(), "q");
        Scheduler(m_server.uri(), "q").move_due();
        Consumer<Raw> consumer(m_server.uri(), "q");
        if (auto guard = consumer.next(0ms)) {
            once.run(*guard, "id", effect);
        }
        return is_done() && !is_there();
    }

    const FaultOptions& m_options;
    FaultReport m_report;
    RedisServer m_server;
    RedisClient m_redis{m_server.uri()};
    Shared& m_shared;
};

} // namespace

extern "C" ssize_t send(int fd, const void* bytes, size_t size, int flags) {
    using Function = ssize_t(int, const void*, size_t, int);
    static auto* const real = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, "send"));
    return Death::pass(Step::command, [&] { return real(fd, bytes, size, flags); });
}

int main(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(
            count, arguments, {{"size", "1"}, {"flow", "all"}, {"side", "all"}, {"at", "all"}});
        return Kills(options).run();
    });
}
