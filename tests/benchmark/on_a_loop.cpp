// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Jobs and pushes on an event loop of the program's own, beside bare Asio, a worker's threads and a
// BufferedProducer. Prints the median of each figure; every measurement is a process of its own.
//
// usage: on_a_loop [ROUNDS]

#include "benchmark/resident.hpp"
#include "benchmark/server_cost.hpp"
#include "benchmark/slow_link.hpp"
#include "support/posix.hpp"
#include "support/redis_client.hpp"
#include "support/redis_server.hpp"

#include <orizuru/asio.hpp>
#include <orizuru/buffered_producer.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

namespace {

using namespace orizuru;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Figures = std::array<double, 4>;
using benchmark::resident_bytes;

/// Calls it in a child, which has one thread so far, and returns what it has returned.
Figures in_child(const std::function<Figures()>& measure) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
        test::throw_errno("pipe");
    }
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            const Figures figures = measure();
            const bool told = ::write(ends[1], figures.data(), sizeof figures) == sizeof figures;
            ::_exit(told ? EXIT_SUCCESS : EXIT_FAILURE);
        } catch (const std::exception& error) {
            std::cerr << error.what() << std::endl;
            ::_exit(EXIT_FAILURE);
        }
    }
    ::close(ends[1]);
    Figures figures{};
    const bool told = ::read(ends[0], figures.data(), sizeof figures) == sizeof figures;
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    if (!told) {
        throw std::runtime_error("a measurement has failed");
    }
    return figures;
}

double seconds_since(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
}
double threads() {
    return static_cast<double>(
        std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}
asio::awaitable<void> pass(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
}

/// Coroutines that wait 1 s, without a queue: seconds, KB for each.
Figures bare_coroutines(int count) {
    asio::io_context io(1);
    const double before = resident_bytes();
    double most = 0;
    const auto begun = Clock::now();
    for (int i = 0; i < count; ++i) {
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                co_await pass(1s);
                most = most > 0 ? most : resident_bytes();
            },
            asio::detached);
    }
    io.run();
    return {seconds_since(begun), (most - before) / count / 1024};
}

/// A worker that has `count` jobs, until all are acked.
class Jobs {
  public:
    Jobs(const std::string& uri, int count, int payload_of(int))
        : m_redis(uri), m_uri(uri), m_count(count) {
        m_redis.command({"FLUSHALL"});
        std::vector<int> payloads(static_cast<std::size_t>(count));
        std::iota(payloads.begin(), payloads.end(), 0);
        std::ranges::transform(payloads, payloads.begin(), payload_of);
        JobProducer<int>(uri, "q").push_all(payloads);
    }

    /// Returns the seconds that they took. `add(worker, io)` adds the handler.
    double run(const std::function<void(Worker&, asio::io_context&)>& add) {
        asio::io_context io(1);
        const auto work = asio::make_work_guard(io);
        Worker worker(m_uri,
                      {.signal_handling = SignalHandling::none, .on_event = [](const auto&) {}});
        add(worker, io);
        std::thread loop([&] { io.run(); });
        const auto begun = Clock::now();
        std::thread running([&] { worker.run(); });
        while (!acked()) {
            std::this_thread::sleep_for(2ms);
        }
        const double seconds = seconds_since(begun);
        worker.stop();
        running.join();
        io.stop();
        loop.join();
        return seconds;
    }
    [[nodiscard]] test::RedisClient& redis() { return m_redis; }
    [[nodiscard]] double connections() {
        const std::string clients = m_redis.command({"CLIENT", "LIST"}).text;
        return static_cast<double>(std::ranges::count(clients, '\n')) - 1; // without its own
    }
    [[nodiscard]] int count() const { return m_count; }

  private:
    bool acked() {
        if (m_redis.llen("q") > 0) {
            return false;
        }
        for (const std::string& key : m_redis.keys("*processing*")) {
            if (m_redis.llen(key) > 1) { // the header
                return false;
            }
        }
        return true;
    }

    test::RedisClient m_redis;
    std::string m_uri;
    int m_count;
};

/// Jobs that wait 1 s: seconds, KB for each, threads and connections of the worker.
Figures waiting_jobs(const std::string& uri, int count) {
    Jobs jobs(uri, count, [](int) { return 0; });
    const double before = resident_bytes();
    const double threads_before = threads() + 2; // the loop's own, and the one in Worker::run
    Figures figures{};
    figures[0] = jobs.run([&](Worker& worker, asio::io_context& io) {
        worker.handle<int>("q",
                           on(io.get_executor(),
                              [&](const int&) -> asio::awaitable<void> {
                                  co_await pass(1s);
                                  if (figures[1] == 0) {
                                      figures[1] = (resident_bytes() - before) / count / 1024;
                                      figures[2] = threads() - threads_before;
                                      figures[3] = jobs.connections();
                                  }
                              }),
                           {.concurrency = 10'000});
    });
    return figures;
}

Figures empty_coroutines(const std::string& uri, int count) {
    Jobs jobs(uri, count, [](int) { return 0; });
    return {count / jobs.run([](Worker& worker, asio::io_context& io) {
        worker.handle<int>(
            "q", on(io.get_executor(), [](const int&) -> asio::awaitable<void> { co_return; }),
            {.concurrency = 10'000});
    })};
}
Figures empty_callbacks(const std::string& uri, int count) {
    Jobs jobs(uri, count, [](int) { return 0; });
    return {count / jobs.run([](Worker& worker, asio::io_context&) {
        worker.handle<int>("q", [](const int&, JobDone done) { done(); }, {.concurrency = 10'000});
    })};
}
Figures empty_on_threads(const std::string& uri, int count) {
    Jobs jobs(uri, count, [](int) { return 0; });
    return {count / jobs.run([](Worker& worker, asio::io_context&) {
        worker.handle<int>("q", [](const int&) {}, {.prefetch = 100, .ack = AckMode::deferred});
    })};
}
/// Jobs of random 0 to 1 s: Redis' microseconds for each.
Figures random_times(const std::string& uri, int count) {
    Jobs jobs(uri, count, [](int i) { return static_cast<int>(i * 7919L % 1000); });
    benchmark::ServerCost cost(jobs.redis());
    jobs.run([](Worker& worker, asio::io_context& io) {
        worker.handle<int>("q",
                           on(io.get_executor(),
                              [](const int& time) -> asio::awaitable<void> {
                                  co_await pass(std::chrono::milliseconds(time));
                              }),
                           {.concurrency = 10'000});
    });
    return {cost.percent_of_core() / 100 * cost.seconds() * 1e6 / count};
}

const Raw message{std::string(100, 'x')};

Figures awaited_pushes(const std::string& uri, int count) {
    constexpr int coroutines = 1000;
    AsyncProducer<Raw> producer(uri, "p");
    asio::io_context io(1);
    for (int i = 0; i < coroutines; ++i) {
        asio::co_spawn(
            io,
            [&, count]() -> asio::awaitable<void> {
                for (int k = 0; k < count / coroutines; ++k) {
                    co_await async_push(producer, message);
                }
            },
            asio::detached);
    }
    const auto begun = Clock::now();
    io.run();
    return {count / seconds_since(begun)};
}
Figures buffered_pushes(const std::string& uri, int count) {
    BufferedProducer<Raw> producer(uri, "p");
    const auto begun = Clock::now();
    for (int i = 0; i < count; ++i) {
        producer.push(message);
    }
    producer.flush();
    return {count / seconds_since(begun)};
}

/// Messages that 100 coroutines take and ack, each confirmed.
Figures awaited_messages(const std::string& uri, int count) {
    constexpr int coroutines = 100;
    {
        BufferedProducer<Raw> producer(uri, "m");
        for (int i = 0; i < count; ++i) {
            producer.push(message);
        }
        producer.flush();
    }
    AsyncConsumer<Raw> consumer(uri, "m", {.prefetch = 100});
    asio::io_context io(1);
    int acked = 0;
    const auto begun = Clock::now();
    for (int i = 0; i < coroutines; ++i) {
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                while (auto guard = co_await async_next(consumer)) {
                    acked += co_await async_ack(*guard) ? 1 : 0;
                    if (acked == count) {
                        consumer.stop();
                    }
                }
            },
            asio::detached);
    }
    io.run();
    return {count / seconds_since(begun)};
}

/// Jobs that fail at the same time, over a network of 2 ms there and back: the seconds until all
/// are put off.
Figures failing_jobs(const std::string& socket, const std::string& uri, int count) {
    Jobs jobs(uri, count, [](int) { return 0; });
    const benchmark::SlowLink link(socket, 1ms);
    asio::io_context io(1);
    const auto work = asio::make_work_guard(io);
    Worker worker(link.uri(),
                  {.signal_handling = SignalHandling::none, .on_event = [](const auto&) {}});
    std::atomic<int> begun{0};
    std::atomic<Clock::duration> failed{};
    worker.handle<int>(
        "q",
        on(io.get_executor(),
           [&](const int&) -> asio::awaitable<void> {
               ++begun;
               while (begun < count) {
                   co_await pass(20ms);
               }
               if (failed.load() == Clock::duration()) {
                   failed = Clock::now().time_since_epoch();
               }
               throw std::runtime_error("declined");
           }),
        {.concurrency = count, .retry = {.backoff = [](int, std::uint64_t) { return 1h; }}});
    std::thread loop([&] { io.run(); });
    std::thread running([&] { worker.run(); });
    while (jobs.redis().command({"ZCARD", "orizuru:{q}:scheduled"}).integer < count) {
        std::this_thread::sleep_for(2ms);
    }
    const double seconds = seconds_since(Clock::time_point(failed.load()));
    worker.stop();
    running.join();
    io.stop();
    loop.join();
    return {seconds};
}

class Rounds {
  public:
    void measure(const std::string& what, const std::function<Figures()>& action) {
        const Figures figures = in_child(action);
        for (std::size_t i = 0; i < figures.size(); ++i) {
            m_all[what][i].push_back(figures[i]);
        }
    }
    [[nodiscard]] double median(const std::string& what, std::size_t figure = 0) {
        std::vector<double>& all = m_all[what][figure];
        std::ranges::sort(all);
        return all[all.size() / 2];
    }

  private:
    std::map<std::string, std::array<std::vector<double>, 4>> m_all;
};

void run(int rounds) {
    const test::RedisServer server;
    const std::string uri = server.uri();
    test::RedisClient redis(uri);
    Rounds all;
    for (int i = 0; i < rounds; ++i) {
        all.measure("bare", [] { return bare_coroutines(10'000); });
        all.measure("waiting", [&] { return waiting_jobs(uri, 10'000); });
        all.measure("coroutines", [&] { return empty_coroutines(uri, 100'000); });
        all.measure("callbacks", [&] { return empty_callbacks(uri, 100'000); });
        all.measure("threads", [&] { return empty_on_threads(uri, 200'000); });
        all.measure("random", [&] { return random_times(uri, 100'000); });
        redis.command({"FLUSHALL"});
        all.measure("awaited", [&] { return awaited_pushes(uri, 500'000); });
        redis.command({"FLUSHALL"});
        all.measure("buffered", [&] { return buffered_pushes(uri, 500'000); });
        redis.command({"FLUSHALL"});
        all.measure("messages", [&] { return awaited_messages(uri, 300'000); });
        all.measure("failing", [&] { return failing_jobs(server.socket_path(), uri, 10'000); });
    }
    std::printf("medians of %d\n", rounds);
    std::printf("10,000 jobs that wait 1 s: %.3f s, bare Asio %.3f s, ratio %.2f\n",
                all.median("waiting"), all.median("bare"),
                all.median("waiting") / all.median("bare"));
    std::printf("  %.1f KB each, bare Asio %.1f KB; %.0f threads and %.0f connections\n",
                all.median("waiting", 1), all.median("bare", 1), all.median("waiting", 2),
                all.median("waiting", 3));
    const double threads = all.median("threads");
    std::printf("empty jobs, acked at once: coroutines %.0f/s, %.2f of a thread worker's %.0f/s in "
                "batches\n  JobDone %.0f/s, %.2f\n",
                all.median("coroutines"), all.median("coroutines") / threads, threads,
                all.median("callbacks"), all.median("callbacks") / threads);
    std::printf("100,000 jobs of 0 to 1 s, 10,000 at once: %.1f us of Redis for each\n",
                all.median("random"));
    std::printf("async_push by 1000 coroutines: %.0f/s, each confirmed; BufferedProducer %.0f/s, "
                "ratio %.2f\n",
                all.median("awaited"), all.median("buffered"),
                all.median("awaited") / all.median("buffered"));
    std::printf("async_next and async_ack by 100 coroutines: %.0f/s, each confirmed\n",
                all.median("messages"));
    std::printf("10,000 jobs that fail at once, 2 ms from Redis: put off within %.2f s\n",
                all.median("failing"));
}

} // namespace

int main(int argc, char** argv) {
    try {
        run(argc > 1 ? std::atoi(argv[1]) : 5);
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return EXIT_FAILURE;
    }
}
