// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A handler that runs a coroutine on the loops of the user.

#include <orizuru/detail/asio/coroutine_run.hpp>
#include <orizuru/detail/asio/loop.hpp>
#include <orizuru/detail/asio/loop_probe.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/worker/job_context.hpp>
#include <orizuru/worker/job_done.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace orizuru::detail {

template <class Library>
using AwaitableOf = typename Library::template Awaitable<void>;

/// A coroutine of Library, called with these.
template <class F, class Library, class... Arguments>
concept CoroutineOf = requires(const F& coroutine, Arguments... arguments) {
    { coroutine(static_cast<Arguments>(arguments)...) } -> std::same_as<AwaitableOf<Library>>;
};

// clang-format 14 takes what follows for comparisons.
// clang-format off
template <class F, class Library, class T>
concept JobCoroutine =
    CoroutineOf<F, Library, const T&, JobContext<T>&> ||
    CoroutineOf<F, Library, const Job<T>&, JobContext<T>&> ||
    CoroutineOf<F, Library, const T&> ||
    CoroutineOf<F, Library, JobContext<T>&> ||
    CoroutineOf<F, Library, const Job<T>&>;
// clang-format on

/// Calls it in the first form that it accepts.
template <class Library, class T, JobCoroutine<Library, T> F>
AwaitableOf<Library> call_coroutine(const F& coroutine, JobContext<T>& context) {
    if constexpr (CoroutineOf<F, Library, const T&, JobContext<T>&>) {
        return coroutine(context->payload, context);
    } else if constexpr (CoroutineOf<F, Library, const Job<T>&, JobContext<T>&>) {
        return coroutine(*context, context);
    } else if constexpr (CoroutineOf<F, Library, const T&>) {
        return coroutine(context->payload);
    } else if constexpr (CoroutineOf<F, Library, JobContext<T>&>) {
        return coroutine(context);
    } else {
        return coroutine(*context);
    }
}

/// Copies are one.
template <class Library, class F>
class CoroutineHandler {
  public:
    CoroutineHandler(const std::vector<typename Library::Executor>& executors, F coroutine)
        : m_shared(std::make_shared<Shared>(executors, std::move(coroutine))) {}

    template <class T>
    void operator()(JobContext<T>& job, JobDone done) const requires(JobCoroutine<F, Library, T>) {
        const Loop<Library>& loop = m_shared->next();
        const auto run = std::make_shared<CoroutineRun<Library>>(loop, std::move(done));
        const auto call = [shared = m_shared, &job] {
            return call_coroutine<Library>(shared->coroutine, job);
        };
        run->cancel_by(job.stop_token());
        if (!loop.post([run, call] { run->begin(call); })) {
            throw std::runtime_error("the context of its executor is gone");
        }
    }

    /// See PostingHandler.
    [[nodiscard]] Clock::duration loop_delay() const {
        Clock::duration longest{};
        for (LoopProbe<Library>& probe : m_shared->probes) {
            longest = std::max(longest, probe.delay());
        }
        return longest;
    }

  private:
    struct Shared {
        Shared(const std::vector<typename Library::Executor>& executors, F chosen)
            : coroutine(std::move(chosen)) {
            if (executors.empty()) {
                throw std::invalid_argument("a coroutine needs an executor");
            }
            std::ranges::transform(executors, std::back_inserter(loops),
                                   [](const auto& executor) { return Loop<Library>(executor); });
            std::ranges::transform(loops, std::back_inserter(probes),
                                   [](const auto& loop) { return LoopProbe<Library>(loop); });
        }
        [[nodiscard]] const Loop<Library>& next() noexcept {
            return loops[turn.fetch_add(1, std::memory_order_relaxed) % loops.size()];
        }

        const F coroutine;
        std::vector<Loop<Library>> loops;
        std::vector<LoopProbe<Library>> probes;
        std::atomic<std::size_t> turn{0};
    };

    std::shared_ptr<Shared> m_shared;
};

} // namespace orizuru::detail
