// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Shared by the tests of workers: jobs of plain bytes on the queue `q`, a worker that runs beside
// the test or in a process of its own, and a record of its events.

#pragma once

#include "integration/core/queue_fixture.hpp"
#include "support/child.hpp"
#include "support/eventually.hpp"
#include "support/posix.hpp"

#include <orizuru/jobs/job.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// A WorkerEvent that outlives the call it came with.
struct WorkerTold {
    WorkerEventKind kind;
    std::string queue;
    std::string job_id;
    std::string detail;
    std::string payload;
    std::optional<std::chrono::milliseconds> retry_in;
    std::optional<EventKind> event; ///< of the queue's consumer
};

/// A list to which several threads append. Copies share it.
template <class Entry>
class Record {
  public:
    void add(Entry entry) const {
        const std::lock_guard lock(m_pages->mutex);
        m_pages->entries.push_back(std::move(entry));
    }
    [[nodiscard]] std::vector<Entry> all() const {
        const std::lock_guard lock(m_pages->mutex);
        return m_pages->entries;
    }
    [[nodiscard]] std::size_t size() const { return all().size(); }
    void clear() const {
        const std::lock_guard lock(m_pages->mutex);
        m_pages->entries.clear();
    }

  private:
    struct Pages {
        std::mutex mutex;
        std::vector<Entry> entries;
    };
    std::shared_ptr<Pages> m_pages = std::make_shared<Pages>();
};

/// Records a worker's events.
class WorkerDiary {
  public:
    [[nodiscard]] std::function<void(const WorkerEvent&)> pen() const {
        return [record = m_record](const WorkerEvent& event) {
            record.add({event.kind, std::string(event.queue), std::string(event.job_id),
                        std::string(event.detail), std::string(event.payload), event.retry_in,
                        event.event != nullptr ? std::optional(event.event->kind) : std::nullopt});
        };
    }
    [[nodiscard]] std::vector<WorkerTold> all() const { return m_record.all(); }
    [[nodiscard]] std::vector<WorkerTold> of(WorkerEventKind kind) const {
        std::vector<WorkerTold> found;
        std::ranges::copy_if(m_record.all(), std::back_inserter(found),
                             [=](const WorkerTold& told) { return told.kind == kind; });
        return found;
    }
    [[nodiscard]] std::size_t count(WorkerEventKind kind) const { return of(kind).size(); }
    /// True when a consumer knows that others have its messages; it reports a new connection before
    /// that.
    [[nodiscard]] bool has_lease_lost() const {
        return std::ranges::any_of(m_record.all(), [](const WorkerTold& told) {
            return told.event == EventKind::lease_lost;
        });
    }

  private:
    Record<WorkerTold> m_record;
};

/// Blocks all threads that come, until it is opened. Copies are one gate.
class Gate {
  public:
    void pass() const {
        ++m_state->arrived;
        m_state->open.wait(false);
    }
    void open() const {
        m_state->open = true;
        m_state->open.notify_all();
    }
    [[nodiscard]] int arrived() const { return m_state->arrived; }
    [[nodiscard]] bool reached(int count = 1) const {
        return eventually([&] { return arrived() >= count; });
    }

  private:
    struct State {
        std::atomic<bool> open{false};
        std::atomic<int> arrived{0};
    };
    std::shared_ptr<State> m_state = std::make_shared<State>();
};

/// A worker that runs at most until the end of the scope.
class Running {
  public:
    explicit Running(Worker& worker, std::stop_token token = {})
        : m_worker(worker),
          m_left(std::async(std::launch::async,
                            [&worker, token = std::move(token)] { return worker.run(token); })) {}
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { m_worker.stop(); }

    [[nodiscard]] bool ended(std::chrono::milliseconds time = patience) const {
        return m_left.wait_for(time) == std::future_status::ready;
    }
    /// The result of `run`.
    int left() {
        REQUIRE(ended());
        return m_left.get();
    }
    int stop() {
        m_worker.stop();
        return left();
    }

  private:
    Worker& m_worker;
    std::future<int> m_left;
};

/// A child process that lives at most until the end of the scope.
class Child {
  public:
    /// Its exit status is the result of `life`.
    explicit Child(const std::function<int()>& life) : m_pid(::fork()) {
        if (m_pid == 0) {
            reset_signals();
            try {
                ::_exit(life());
            } catch (...) {
                ::_exit(99);
            }
        }
        REQUIRE(m_pid > 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (!m_ended) {
            signal(SIGKILL);
            wait_for(m_pid);
        }
    }

    [[nodiscard]] pid_t pid() const noexcept { return m_pid; }
    void signal(int number) const { ::kill(m_pid, number); }
    [[nodiscard]] bool ended() {
        m_ended = m_ended || ::waitpid(m_pid, &m_status, WNOHANG) == m_pid;
        return m_ended;
    }
    /// -1 = a signal ended it.
    int status() {
        REQUIRE(eventually([this] { return ended(); }));
        return WIFEXITED(m_status) ? WEXITSTATUS(m_status) : -1;
    }

  private:
    pid_t m_pid;
    int m_status = 0;
    bool m_ended = false;
};

/// Jobs whose payloads are plain bytes.
struct WorkerFixture : QueueFixture {
    WorkerDiary diary;
    Record<std::string> handled;

    /// Options without upkeep and without signals.
    [[nodiscard]] WorkerOptions options(int concurrency = 1) const {
        using std::chrono::milliseconds;
        return {.concurrency = concurrency,
                .stop_timeout = milliseconds(10'000),
                .signal_handling = SignalHandling::none,
                .recheck = milliseconds(20),
                .scheduler = std::nullopt,
                .collect_interval = std::nullopt,
                .on_event = diary.pen()};
    }
    [[nodiscard]] WorkerOptions with_scheduler(int concurrency = 1) const {
        WorkerOptions chosen = options(concurrency);
        chosen.scheduler = SchedulerOptions{.poll = std::chrono::milliseconds(100)};
        return chosen;
    }
    /// A failed job waits for longer than any test runs.
    static QueueOptions much_later() {
        return {.retry = {.backoff = backoff::fixed(std::chrono::hours(1))}};
    }
    /// A handler that records each payload.
    [[nodiscard]] auto write_down() const {
        return [record = handled](const Raw& payload) { record.add(payload.bytes); };
    }
    [[nodiscard]] bool has_handled(const Texts& payloads) const {
        return eventually([&] { return handled.all() == payloads; });
    }

    static std::string bytes_of(const Job<Raw>& job) {
        std::string bytes;
        Codec<Job<Raw>>::encode(job, bytes);
        return bytes;
    }
    static Job<Raw> job_of(const std::string& bytes) {
        Scratch scratch;
        return Codec<Job<Raw>>::decode(bytes, scratch);
    }
    static Texts payloads_of(const Texts& jobs) {
        Texts payloads;
        for (const std::string& bytes : jobs) {
            payloads.push_back(job_of(bytes).payload.bytes);
        }
        return payloads;
    }

    /// Returns the id of the last job.
    std::string push_jobs(const Texts& payloads, const std::string& queue = "q") {
        Texts jobs;
        for (const std::string& payload : payloads) {
            jobs.push_back(bytes_of(make_job(Raw{payload})));
        }
        redis.lpush(queue, jobs);
        return job_of(jobs.back()).id;
    }
    /// The jobs that wait in a queue, the next one to be served first.
    Texts jobs(const std::string& queue = "q") { return payloads_of(oldest_first(queue)); }
    /// The jobs that the workers of a queue hold.
    Texts held_jobs(const std::string& queue = "q") {
        Texts found;
        for (const std::string& key : redis.keys("orizuru:{" + queue + "}:processing:*")) {
            for (const Answer& element : redis.try_command({"LRANGE", key, "0", "-2"}).elements) {
                found.insert(found.begin(), job_of(element.text).payload.bytes);
            }
        }
        return found;
    }
    /// The jobs that are put off, the first due first.
    std::vector<Job<Raw>> put_off(const std::string& queue = "q") {
        std::vector<Job<Raw>> found;
        const std::string key = "orizuru:{" + queue + "}:scheduled";
        for (const Answer& element : redis.command({"ZRANGE", key, "0", "-1"}).elements) {
            found.push_back(job_of(element.text.substr(8)));
        }
        return found;
    }
    bool nothing_left() {
        return redis.llen("q") == 0 && held_jobs().empty() && put_off().empty() &&
               redis.llen(unack) == 0 && redis.llen(dead) == 0;
    }
    /// How often Redis has run the command since RESETSTAT.
    std::int64_t runs_of(const std::string& command) {
        const std::string info = redis.command({"INFO", "commandstats"}).text;
        const auto at = info.find("cmdstat_" + command + ":calls=");
        return at == std::string::npos ? 0 : std::stoll(info.substr(info.find('=', at) + 1));
    }
    /// So many wait in Redis for a message.
    bool so_many_wait(int count) {
        return eventually([&] { return info("clients", "blocked_clients") == count; });
    }
};

} // namespace orizuru::test
