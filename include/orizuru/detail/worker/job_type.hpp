// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// All that a worker knows of the type of its jobs: how to decode one, and how to call the handler.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/worker/async/async_job_task.hpp>
#include <orizuru/detail/worker/job_task.hpp>
#include <orizuru/detail/worker/served_queue.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_done.hpp>

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
                                                  Scratch& scratch, const KindHandler& handler);
template <class T, class Base>
[[nodiscard]] std::shared_ptr<JobTask> make_job_task(ServedQueue& queue, std::string_view payload,
                                                     Scratch& scratch, const KindHandler& handler) {
    return std::make_shared<JobOf<T, Base>>(queue, payload, scratch, handler);
}

/// Only gives its job to a loop of the user's: a few threads do that for all. `loop_delay` is
/// ServedQueue's; copies share it.
template <class F>
concept PostingHandler = requires(const F& handler) {
    { handler.loop_delay() } -> std::same_as<Clock::duration>;
};

/// A handler for jobs of a T, as a queue gets it.
struct JobHandling {
    enum class End {
        by_return,
        later,          ///< JobDone
        later_by_a_loop ///< and the handler only posts
    };

    JobTaskMaker make;
    JobCall call;
    End end;
    std::function<Clock::duration()> loop_delay = {}; ///< if it only posts
};

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
                                 "JobContext<T>& or const Job<T>&, and behind it a JobDone if it "
                                 "ends later (JobHandler)");
};
/// Does not compile as an object, and says why in one sentence.
template <class T, class F>
using Refusal =
    std::conditional_t<MessageDecodable<Job<T>>, NoHandler<F>, NoCodec<T, Coding::decode>>;

// A call without the header that defines the function says which one it is; a linker would not.
template <class T>
constexpr auto can_handle_batch() {
    static_assert(included<Part::handle_batch, T>,
                  "Worker::handle_batch needs the header <orizuru/worker/handle_batch.hpp>");
}
template <class T>
constexpr auto can_handle_keyed() {
    static_assert(included<Part::handle_keyed, T>,
                  "Worker::handle_keyed needs the header <orizuru/keyed.hpp>");
}
template <class T>
constexpr auto can_handle_shards() {
    static_assert(included<Part::handle_shards, T>,
                  "Worker::handle_shards needs the header <orizuru/worker/handle_shards.hpp>");
}
template <class T>
constexpr auto can_limit() {
    static_assert(included<Part::limit, T>,
                  "Worker::limit needs the header <orizuru/worker/limit.hpp>");
}
template <class T>
constexpr auto can_recur() {
    static_assert(included<Part::recur, T>,
                  "Worker::recur needs the header <orizuru/worker/recur.hpp>");
}

/// Calls the handler in the first form that it accepts; `done` is empty or a JobDone.
template <class T, class F, class... Done>
void call_handler(F& handler, JobContext<T>& context, Done... done) {
    if constexpr (HandlerOf<F, const T&, JobContext<T>&, Done...>) {
        handler(context->payload, context, std::move(done)...);
    } else if constexpr (HandlerOf<F, const Job<T>&, JobContext<T>&, Done...>) {
        handler(*context, context, std::move(done)...);
    } else if constexpr (HandlerOf<F, const T&, Done...>) {
        handler(context->payload, std::move(done)...);
    } else if constexpr (HandlerOf<F, JobContext<T>&, Done...>) {
        handler(context, std::move(done)...);
    } else {
        handler(*context, std::move(done)...);
    }
}

/// The handler, for jobs whatever their type; each must be a T.
template <class T, JobHandler<T> F>
[[nodiscard]] JobHandling handling_by(F handler) {
    if constexpr (BlockingJobHandler<F, T>) {
        return {&make_job_task<T, HandledJob>,
                [handler = std::move(handler)](JobRun& run, const JobDone&) mutable {
                    call_handler(handler, static_cast<JobContext<T>&>(run));
                },
                JobHandling::End::by_return};
    } else {
        JobHandling handling{&make_job_task<T, AsyncJobTask>, {}, JobHandling::End::later};
        if constexpr (PostingHandler<F>) {
            handling.end = JobHandling::End::later_by_a_loop;
            handling.loop_delay = [handler] { return handler.loop_delay(); };
        }
        handling.call = [handler = std::move(handler)](JobRun& run, JobDone done) mutable {
            call_handler(handler, static_cast<JobContext<T>&>(run), std::move(done));
        };
        return handling;
    }
}

} // namespace orizuru::detail
