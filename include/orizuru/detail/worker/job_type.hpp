// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All that a worker knows of the type of its jobs: how to decode one, and how to call the handler.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/worker/job_task.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/worker/job_context.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace orizuru::detail {

template <class T>
struct DecodedJob {
    JobContext<T> context;
};

/// A `Base` with the job that it needs: one object, so that a job costs one allocation. Its guard
/// has nothing to settle yet. Throws what the Codec throws.
template <class T, class Base>
class JobOf final : private DecodedJob<T>, public Base {
  public:
    template <class... Arguments>
    JobOf(ServedQueue& queue, std::string_view payload, Scratch& scratch, Arguments&&... arguments)
        : DecodedJob<T>{{queue, payload, scratch}},
          Base(queue, DecodedJob<T>::context, std::forward<Arguments>(arguments)...) {}
};

using JobTaskMaker = std::shared_ptr<JobTask> (*)(ServedQueue& queue, std::string_view payload,
                                                  Scratch& scratch,
                                                  const HandledJob::Handler& handler);
template <class T>
[[nodiscard]] std::shared_ptr<JobTask> make_job_task(ServedQueue& queue, std::string_view payload,
                                                     Scratch& scratch,
                                                     const HandledJob::Handler& handler) {
    return std::make_shared<JobOf<T, HandledJob>>(queue, payload, scratch, handler);
}

class BatchedJob;
using BatchedJobMaker = std::unique_ptr<BatchedJob> (*)(ServedQueue& queue,
                                                        std::string_view payload, Scratch& scratch);

[[noreturn]] [[gnu::cold]] inline void throw_empty_handler(const std::string& queue) {
    throw std::invalid_argument("queue '" + queue + "': the handler is empty");
}
template <class F>
concept Nullable = std::constructible_from<F, std::nullptr_t> && requires(const F& handler) {
    { handler == nullptr } -> std::convertible_to<bool>;
};
/// Throws for a null pointer and an empty std::function.
template <class F>
void check_handler(const F& handler, const std::string& queue) {
    if constexpr (Nullable<F>) {
        if (handler == nullptr) {
            throw_empty_handler(queue);
        }
    }
}

template <class F>
inline constexpr bool is_handler = false; // it depends on F, so that only a use of it fails

template <class F>
struct NoHandler {
    static_assert(is_handler<F>, "a handler must return void, be copyable, and take const T&, "
                                 "JobContext<T>& or const Job<T>& (JobHandler)");
};
/// Does not compile as an object, and says why in one sentence.
template <class T, class F>
using Refusal =
    std::conditional_t<MessageDecodable<Job<T>>, NoHandler<F>, NoCodec<T, Coding::decode>>;

/// Calls the handler in the first form that it accepts.
template <class T, JobHandler<T> F>
void call_handler(F& handler, JobContext<T>& context) {
    if constexpr (HandlerOf<F, const T&, JobContext<T>&>) {
        handler(context->payload, context);
    } else if constexpr (HandlerOf<F, const Job<T>&, JobContext<T>&>) {
        handler(*context, context);
    } else if constexpr (HandlerOf<F, const T&>) {
        handler(context->payload);
    } else if constexpr (HandlerOf<F, JobContext<T>&>) {
        handler(context);
    } else {
        handler(*context);
    }
}

/// The handler, for jobs whatever their type; each must be a T.
template <class T, JobHandler<T> F>
[[nodiscard]] std::function<void(JobRun&)> job_call(F handler) {
    return [handler = std::move(handler)](JobRun& run) mutable {
        call_handler(handler, static_cast<JobContext<T>&>(run));
    };
}

} // namespace orizuru::detail
