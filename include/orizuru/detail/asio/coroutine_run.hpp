// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A job in flight whose handler is a coroutine: begins it on its loop, cancels it there, and calls
// JobDone with its outcome.

#include <orizuru/detail/asio/loop.hpp>
#include <orizuru/worker/job_done.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace orizuru::detail {

/// Make it with std::make_shared. For the thread of the loop, except cancel_by.
template <class Library>
class CoroutineRun : public std::enable_shared_from_this<CoroutineRun<Library>> {
  public:
    CoroutineRun(Loop<Library> loop, JobDone done)
        : m_loop(std::move(loop)), m_done(std::move(done)) {}
    CoroutineRun(const CoroutineRun&) = delete;
    CoroutineRun& operator=(const CoroutineRun&) = delete;
    /// Requeues its job if that has not ended: the loop was destroyed.
    ~CoroutineRun() {
        m_stop.reset();
        if (m_done) {
            m_done.requeue();
        }
    }

    /// Any thread, before `begin` is posted.
    void cancel_by(std::stop_token token) {
        m_stop.emplace(std::move(token), Cancel{m_loop, this->weak_from_this()});
    }
    /// `call` returns what to await. It lives until that has ended.
    template <class Call>
    void begin(Call call) {
        try {
            Library::spawn(m_loop.executor(), call(), m_signal,
                           [own = this->shared_from_this(), call](const std::exception_ptr& error) {
                               own->end(error);
                           });
            m_begun = true;
            if (m_cancelled) {
                Library::cancel(m_signal);
            }
        } catch (...) {
            end(std::current_exception());
        }
    }

  private:
    struct Cancel {
        Loop<Library> loop;
        std::weak_ptr<CoroutineRun> run;

        void operator()() const noexcept {
            try {
                if (auto own = run.lock()) {
                    loop.post([own = std::move(own)] { own->cancel(); });
                }
            } catch (...) { // NOLINT(bugprone-empty-catch)
                // It goes on until it ends by itself, or the worker requeues its job.
            }
        }
    };

    void cancel() {
        m_cancelled = true;
        if (m_begun) {
            Library::cancel(m_signal);
        }
    }
    void end(std::exception_ptr error) {
        if (m_done) {
            m_stop.reset();
            m_done(std::move(error));
        }
    }

    const Loop<Library> m_loop;
    JobDone m_done;
    typename Library::Signal m_signal;
    bool m_begun = false;
    bool m_cancelled = false;
    std::optional<std::stop_callback<Cancel>> m_stop;
};

} // namespace orizuru::detail
