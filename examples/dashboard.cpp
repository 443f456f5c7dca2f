// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The web page on all queues of a Redis, for browsers on this machine, until Ctrl-C.
//
//     dashboard redis://127.0.0.1 [127.0.0.1:8080]           prints the link to open
//     dashboard redis://127.0.0.1 [127.0.0.1:8080] --load    works on queues of its own meanwhile
//
// The load is for looking at the page: four queues whose jobs take a while, fail now and then, or
// are due later.

#include <orizuru/jobs.hpp>
#include <orizuru/ops/dashboard.hpp>
#include <orizuru/ops/serve.hpp>
#include <orizuru/worker.hpp>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <functional>
#include <iostream>
#include <list>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;

/// False when it was stopped meanwhile.
bool sleep(const std::stop_token& stop, std::chrono::milliseconds time) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    return !wake.wait_for(lock, stop, time, [] { return false; }) && !stop.stop_requested();
}

/// More and fewer jobs, in waves of two minutes.
void push(const std::string& uri, const std::stop_token& stop) {
    orizuru::JobProducer<std::string> orders(uri, "orders");
    orizuru::JobProducer<std::string> emails(uri, "emails");
    orizuru::JobProducer<std::string> thumbnails(uri, "thumbnails");
    orizuru::JobProducer<std::string> invoices(uri, "invoices");
    for (int i = 1; sleep(stop, 20ms); ++i) {
        const std::string number = std::to_string(i);
        if (std::sin(i / 950.0) > -0.5) {
            orders.push("order " + number);
        }
        emails.push("to customer " + number);
        if (i % 20 == 0) {
            thumbnails.push("picture " + number + ".png");
        }
        if (i % 50 == 0) {
            invoices.push("invoice " + number, {.delay = 30s});
        }
    }
}

void work(const std::string& uri, const std::stop_token& stop) {
    orizuru::Worker worker(uri, {.name = "example",
                                 .concurrency = 8,
                                 .order = orizuru::QueueOrder::random,
                                 .stop_timeout = 1s, // handlers heed the stop at once
                                 .signal_handling = orizuru::SignalHandling::none,
                                 .on_event = [](const orizuru::WorkerEvent&) {}});
    std::mutex mutex;
    std::mt19937 random(1);
    const auto handler = [&](int least, int most, double failures) {
        return [&, least, most, failures](const std::string& text,
                                          orizuru::JobContext<std::string>& job) {
            std::unique_lock lock(mutex);
            const bool fails = std::bernoulli_distribution(failures)(random);
            const auto time = std::uniform_int_distribution(least, most)(random);
            lock.unlock();
            sleep(job.stop_token(), std::chrono::milliseconds(time));
            if (fails) {
                throw std::runtime_error("no answer about " + text);
            }
        };
    };
    orizuru::RetryPolicy twice{.max_attempts = 2,
                               .backoff = orizuru::backoff::exponential(2s, 1min)};
    worker.handle<std::string>("orders", handler(10, 90, 0.002), {.retry = twice});
    worker.handle<std::string>("emails", handler(20, 160, 0.02), {.retry = twice});
    worker.handle<std::string>("thumbnails", handler(100, 900, 0.01), {.retry = twice});
    worker.handle<std::string>("invoices", handler(100, 300, 0.1), {.retry = twice});
    worker.run(stop);
}

/// Runs in a thread. When it fails, the whole program ends.
class Part {
  public:
    explicit Part(std::function<void(const std::stop_token& stop)> run)
        : m_thread([this, run = std::move(run)](const std::stop_token& stop) {
              try {
                  run(stop);
              } catch (...) {
                  m_failure = std::current_exception();
                  ::kill(::getpid(), SIGTERM);
              }
          }) {}

    void request_stop() { m_thread.request_stop(); }
    /// Waits for its end, and throws what it has thrown.
    void join() {
        m_thread.join();
        if (m_failure) {
            std::rethrow_exception(m_failure);
        }
    }

  private:
    std::exception_ptr m_failure;
    std::jthread m_thread;
};

} // namespace

int main(int argc, char** argv) {
    try {
        const bool loaded = argc > 2 && argv[argc - 1] == std::string("--load");
        const int words = loaded ? argc - 1 : argc;
        if (words != 2 && words != 3) {
            throw std::invalid_argument("usage: dashboard <redis-uri> [address] [--load]");
        }
        const std::string uri = argv[1];
        // For the main thread to wait for; threads inherit the mask.
        sigset_t ends;
        ::sigemptyset(&ends);
        ::sigaddset(&ends, SIGINT);
        ::sigaddset(&ends, SIGTERM);
        ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);

        orizuru::DashboardOptions options;
        if (loaded) {
            options.history_step = 5s; // there is no hour to wait for
        }
        orizuru::Dashboard dashboard(uri, options);
        std::list<Part> parts;
        parts.emplace_back([&](const std::stop_token& stop) {
            orizuru::serve(dashboard, words == 3 ? argv[2] : "127.0.0.1:8080", stop,
                           {.on_listening = [&](const std::string& origin) {
                               std::cout << dashboard.link(origin) << std::endl;
                           }});
        });
        if (loaded) {
            parts.emplace_back([&](const std::stop_token& stop) { push(uri, stop); });
            parts.emplace_back([&](const std::stop_token& stop) { work(uri, stop); });
        }
        int signal = 0;
        ::sigwait(&ends, &signal);
        for (Part& part : parts) {
            part.request_stop();
        }
        for (Part& part : parts) {
            part.join();
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "dashboard: " << error.what() << '\n';
        return 1;
    }
}
