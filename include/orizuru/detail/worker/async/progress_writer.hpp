// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Writes the progress of jobs whose handlers do not wait for that, on a thread that the first of
// them starts.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/fork_mark.hpp>
#include <orizuru/detail/base/own_thread.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/worker/job_queries.hpp>
#include <orizuru/error.hpp>
#include <orizuru/keys.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace orizuru::detail {

class ProgressWriter {
  public:
    struct Progress {
        Keys keys;
        std::string job_id;
        double fraction;
        std::string note;
        std::function<void(const std::exception*)> told; ///< on the thread; null: it is written
    };

    explicit ProgressWriter(std::shared_ptr<JobQueries> queries)
        : m_queue(std::make_shared<Queue>(std::move(queries))) {}
    ProgressWriter(const ProgressWriter&) = delete;
    ProgressWriter& operator=(const ProgressWriter&) = delete;
    /// Writes the rest, or tells why it cannot. It may be called by what is told.
    ~ProgressWriter() {
        if (!m_process.forked()) { // else another thread may have left the lock taken
            m_queue->end();
        }
        m_thread.end();
    }

    /// Throws std::system_error when the process can have no more threads.
    void write(std::unique_ptr<Progress> progress) {
        const std::lock_guard lock(m_starting);
        if (!m_thread.started()) {
            m_thread.start([queue = m_queue] { queue->run(); });
        }
        m_queue->add(std::move(progress));
    }

  private:
    using All = Fifo<std::unique_ptr<Progress>>;

    /// Shared with the thread, which may outlive the writer.
    class Queue {
      public:
        explicit Queue(std::shared_ptr<JobQueries> queries) : m_queries(std::move(queries)) {}

        void add(std::unique_ptr<Progress> progress) {
            const std::lock_guard lock(m_mutex);
            m_waiting.push_back(std::move(progress));
            m_came.notify_one();
        }
        void end() noexcept {
            const std::lock_guard lock(m_mutex);
            m_ending = true;
            m_came.notify_one();
        }
        void run() {
            std::unique_lock lock(m_mutex);
            while (true) {
                m_came.wait(lock, [this] { return m_ending || !m_waiting.empty(); });
                if (m_waiting.empty()) {
                    return;
                }
                const All all = std::move(m_waiting);
                const Unlocked open(lock);
                write(all);
            }
        }

      private:
        /// All that waits behind a connection that has failed fails, too: nobody waits for its time
        /// again and again.
        void write(const All& all) const {
            std::optional<ConnectionError> lost;
            for (const auto& progress : all) {
                try {
                    if (!lost) {
                        m_queries->set_progress(progress->keys, progress->job_id,
                                                progress->fraction, progress->note);
                    }
                } catch (const ConnectionError& error) {
                    lost.emplace(error);
                } catch (const std::exception& error) {
                    progress->told(&error);
                    continue;
                }
                progress->told(lost ? &*lost : nullptr);
            }
        }

        const std::shared_ptr<JobQueries> m_queries;
        std::mutex m_mutex; ///< guards what follows
        std::condition_variable m_came;
        All m_waiting;
        bool m_ending = false;
    };

    const ForkMark m_process;
    const std::shared_ptr<Queue> m_queue;
    std::mutex m_starting; ///< guards the thread
    OwnThread m_thread;
};

} // namespace orizuru::detail
