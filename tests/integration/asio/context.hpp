// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A loop of the Asio that the including program calls `net`.

#pragma once

#include <memory>
#include <optional>
#include <thread>

namespace orizuru::test {

/// A context of its own thread, until it is ended.
class Context {
  public:
    Context() : m_thread([this] { m_io->run(); }) {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { end(); }

    [[nodiscard]] net::any_io_executor executor() const { return m_io->get_executor(); }
    [[nodiscard]] std::thread::id thread() const { return m_thread.get_id(); }
    /// Runs nothing more; what was begun stays.
    void stop() {
        m_io->stop();
        if (m_thread.joinable()) {
            m_thread.join();
        }
    }
    /// Destroys the context.
    void end() {
        if (m_io) {
            stop();
            m_work.reset();
            m_io.reset();
        }
    }

  private:
    std::unique_ptr<net::io_context> m_io = std::make_unique<net::io_context>(1);
    std::optional<net::executor_work_guard<net::io_context::executor_type>> m_work{
        m_io->get_executor()};
    std::thread m_thread;
};

} // namespace orizuru::test
