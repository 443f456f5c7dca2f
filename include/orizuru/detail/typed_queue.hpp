// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A worker's queue of one type of jobs: takes them from a Consumer, calls the handler, and has
// happen what is to become of a job then.

#include <orizuru/codec.hpp>
#include <orizuru/consumer.hpp>
#include <orizuru/detail/backoff.hpp>
#include <orizuru/detail/encoding.hpp>
#include <orizuru/detail/schedule.hpp>
#include <orizuru/detail/worker_queue.hpp>
#include <orizuru/error.hpp>
#include <orizuru/job.hpp>
#include <orizuru/job_context.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/message_guard.hpp>
#include <orizuru/retry.hpp>
#include <orizuru/worker_event.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

template <class T>
class TypedQueue final : public WorkerQueue {
  public:
    using Handler = std::function<void(JobContext<T>&)>;

    TypedQueue(std::shared_ptr<WorkerShared> shared, Keys keys, QueueOptions options,
               Handler handler)
        : WorkerQueue(std::move(shared), std::move(keys), std::move(options)),
          m_handler(std::move(handler)) {}

    void open(const Endpoint& endpoint) override;
    std::unique_ptr<Task> take(const std::stop_token& token,
                               std::chrono::milliseconds timeout) override;
    [[nodiscard]] std::size_t in_hand() const noexcept override { return m_consumer->in_hand(); }
    void close() noexcept override { m_consumer.reset(); }

  private:
    class Run;

    std::optional<Consumer<Job<T>>> m_consumer;
    Handler m_handler;
};

/// One job that was taken.
template <class T>
class TypedQueue<T>::Run final : public Task {
  public:
    Run(TypedQueue& queue, MessageGuard<Job<T>>&& guard)
        : m_queue(&queue), m_context(queue, queue.lease_number(), std::move(guard)) {}

    void run() noexcept override;
    void give_back() noexcept override;
    [[nodiscard]] const JobRun& job() const noexcept override { return m_context; }

  private:
    using Guard = MessageGuard<Job<T>>;

    bool begin();
    std::optional<std::string> handle();
    void handle_inside(std::size_t middleware);
    bool fail(Guard& guard, const std::string& reason);
    static bool encoded(const Job<Raw>& job, std::string& body, std::int64_t max_payload);
    bool end(Guard& guard, const std::string& reason);
    template <class Settlement>
    bool settle(Settlement settlement);
    void tell(WorkerEventKind kind, std::string_view detail = {},
              std::optional<std::chrono::milliseconds> retry_in = {}) const;

    TypedQueue* m_queue;
    JobContext<T> m_context;
};

template <class T>
void TypedQueue<T>::open(const Endpoint& endpoint) {
    use(endpoint);
    m_consumer.emplace(endpoint, queue(),
                       ConsumerOptions{.name = shared().options.name,
                                       .lease = options().lease,
                                       .prefetch = options().prefetch,
                                       .ack = options().ack,
                                       .max_payload = options().max_payload,
                                       .on_event = [this](const Event& event) { tell(event); },
                                       .on_beat = [this] { heard(); }});
}

template <class T>
std::unique_ptr<Task> TypedQueue<T>::take(const std::stop_token& token,
                                          std::chrono::milliseconds timeout) {
    try {
        auto guard = m_consumer->next(token, timeout);
        return guard ? std::make_unique<Run>(*this, std::move(*guard)) : nullptr;
    } catch (const DecodeError&) {
        return nullptr; // on_event has been told; the message is on the dead list
    }
}

template <class T>
void TypedQueue<T>::Run::run() noexcept {
    try {
        if (!begin()) {
            return;
        }
        const std::optional<std::string> failure = handle();
        auto& counts = m_queue->shared().counts;
        ++(failure ? counts.failed : counts.succeeded);
        if (m_queue->options().guarantee == Guarantee::at_most_once) {
            if (failure) {
                tell(WorkerEventKind::discarded, *failure);
            }
            return;
        }
        settle([&](Guard& guard) { return failure ? fail(guard, *failure) : guard.ack(); });
    } catch (const std::exception& error) {
        // For want of memory: the guard's destructor rejects what is left.
        tell(WorkerEventKind::unsettled, error.what());
    } catch (...) {
        tell(WorkerEventKind::unsettled, "an exception that is no std::exception");
    }
}

/// Whether the handler is to run.
template <class T>
bool TypedQueue<T>::Run::begin() {
    if (m_context->expires_at && m_context->expired(job_time())) {
        if (settle([](Guard& guard) { return guard.ack(); })) {
            ++m_queue->shared().counts.expired;
            tell(WorkerEventKind::expired);
        }
        return false;
    }
    return m_queue->options().guarantee == Guarantee::at_least_once ||
           settle([](Guard& guard) { return guard.ack(); });
}

/// Why the job failed; nothing when it did not.
template <class T>
std::optional<std::string> TypedQueue<T>::Run::handle() {
    try {
        handle_inside(0);
        return m_context.failure();
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

template <class T>
void TypedQueue<T>::Run::handle_inside(std::size_t middleware) {
    const auto& around = m_queue->shared().options.handle_middleware;
    if (middleware == around.size()) {
        m_queue->m_handler(m_context);
    } else {
        around[middleware](m_context, [&] { handle_inside(middleware + 1); });
    }
}

/// Has a failed job come again, or ends it. The payload's bytes stay what they are.
template <class T>
bool TypedQueue<T>::Run::fail(Guard& guard, const std::string& reason) {
    const RetryPolicy& policy = m_queue->options().retry;
    Scratch scratch;
    Job<Raw> next = decode<Job<Raw>>(guard.payload(), scratch);
    // A crash counts as an attempt.
    const int crashes = m_queue->recoveries(guard.payload());
    next.attempt += std::min(crashes, std::numeric_limits<int>::max() - 1 - next.attempt);
    const JobTime now = job_time();
    const auto delay = next_try(policy, next.attempt, next.first_enqueued_at, now,
                                std::hash<std::string>{}(next.id));
    if (!delay) {
        return end(guard, reason);
    }
    ++next.attempt;
    next.enqueued_at = now;
    next.last_error = reason;
    std::vector<std::string> arguments = due_after(*delay);
    std::string& body = arguments.emplace_back();
    if (!encoded(next, body, guard.max_payload())) {
        next.last_error.clear();
        if (!encoded(next, body, guard.max_payload())) {
            return end(guard, reason);
        }
    }
    const Keys target = policy.retry_queue.empty() ? guard.keys() : Keys(policy.retry_queue);
    if (!guard.settle(schedule_body(), schedule_keys(target), std::move(arguments))) {
        return false;
    }
    tell(WorkerEventKind::failed, reason, *delay);
    return true;
}

/// False when it has become too large.
template <class T>
bool TypedQueue<T>::Run::encoded(const Job<Raw>& job, std::string& body,
                                 std::int64_t max_payload) {
    try {
        body.clear();
        encode(job, body, max_payload);
        return true;
    } catch (const EncodeError&) {
        return false;
    }
}

/// The end of a job that has failed often enough.
template <class T>
bool TypedQueue<T>::Run::end(Guard& guard, const std::string& reason) {
    if (m_queue->options().retry.exhausted == Exhausted::discard) {
        const bool done = guard.ack();
        if (done) {
            tell(WorkerEventKind::discarded, reason);
        }
        return done;
    }
    const bool done = guard.bury(cut_text(reason, longest_last_error));
    if (done) {
        ++m_queue->shared().counts.died;
        m_queue->dead_grew();
        tell(WorkerEventKind::died, reason);
    }
    return done;
}

/// False when the job was not settled by this. What Redis refuses is tried again: the message stays
/// where it is until then.
template <class T>
template <class Settlement>
bool TypedQueue<T>::Run::settle(Settlement settlement) {
    std::optional<Backoff> backoff;
    while (true) {
        std::string problem;
        {
            const auto guard = m_context.guard();
            if (guard->settled()) {
                return false; // by the handler, or given back
            }
            try {
                const bool done = settlement(*guard);
                if (!done) {
                    tell(WorkerEventKind::lost);
                }
                return done;
            } catch (const Error& error) {
                if (guard->settled()) {
                    tell(WorkerEventKind::unsettled, error.what());
                    return false; // in doubt, it goes on in the background
                }
                problem = error.what();
            }
        }
        if (!backoff) {
            backoff.emplace();
        }
        const auto pause = backoff->next();
        tell(WorkerEventKind::unsettled, problem, pause);
        m_queue->pause(pause);
    }
}

template <class T>
void TypedQueue<T>::Run::give_back() noexcept {
    try {
        const auto guard = m_context.guard_within(std::chrono::seconds(1));
        if (guard && !(*guard)->settled() && (*guard)->release()) {
            ++m_queue->shared().counts.given_back;
            tell(WorkerEventKind::given_back);
        }
    } catch (const std::exception& error) {
        tell(WorkerEventKind::unsettled, error.what());
    }
}

template <class T>
void TypedQueue<T>::Run::tell(WorkerEventKind kind, std::string_view detail,
                              std::optional<std::chrono::milliseconds> retry_in) const {
    m_queue->tell(WorkerEvent{.kind = kind,
                              .job_id = m_context.id(),
                              .detail = detail,
                              .retry_in = retry_in});
}

} // namespace orizuru::detail
