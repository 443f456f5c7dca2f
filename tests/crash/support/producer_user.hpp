// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer whose user does everything that the library can do with it, as often as asked.

#pragma once

#include "crash/support/library_call.hpp"
#include "crash/support/queue_users.hpp"
#include "support/eventually.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/bounded_push.hpp>
#include <orizuru/jobs/scheduler.hpp>
#include <orizuru/producer.hpp>

#include <chrono>
#include <optional>

namespace orizuru::test {

class ProducerUser : public QueueUsers {
  public:
    using QueueUsers::QueueUsers;

    void make_producer() {
        in_library([&] { Producer<Raw>(uri(), "q"); });
    }
    void push_one() {
        pushing({new_message()}, [&](const auto& messages) { producer().push(messages.front()); });
    }
    void push_some() {
        pushing({new_message(), new_message(), new_message()},
                [&](const auto& messages) { producer().push_all(messages); });
    }
    void push_scheduled() {
        pushing({new_message()}, [&](const auto& messages) {
            push_after(producer(), std::chrono::milliseconds(0), messages.front());
        });
    }
    void push_within_a_bound() {
        pushing({new_message()}, [&](const auto& messages) {
            require(push_bounded(producer(), messages.front(), {1'000'000}).pushed, "it was full");
        });
    }
    void look_at_length() {
        in_library([&] { static_cast<void>(producer().size()); });
    }
    /// Notices the end of the connection when the length is not available.
    void push_anew() {
        try {
            look_at_length();
        } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
            // The next call connects.
        }
        push_one();
    }
    void make_buffer() {
        in_library([&] { BufferedProducer<Raw>(uri(), "q", buffering()); });
    }
    void buffer_and_flush() {
        buffer_two();
        in_library([&] { buffered().flush(); });
    }
    void buffer_and_wait() {
        buffer_two();
        require(eventually([&] { return buffered().unconfirmed() == 0; }, patience),
                "the buffer was never sent");
    }

  protected:
    void end_producing() {
        m_producer.reset();
        m_buffered.reset();
    }

  private:
    static BufferedProducerOptions buffering() {
        return {.size = 100, .time = std::chrono::milliseconds(1)};
    }
    Producer<Raw>& producer() { return m_producer ? *m_producer : m_producer.emplace(uri(), "q"); }
    BufferedProducer<Raw>& buffered() {
        return m_buffered ? *m_buffered : m_buffered.emplace(uri(), "q", buffering());
    }
    void buffer_two() {
        for (int i = 0; i < 2; ++i) {
            pushing({new_message()},
                    [&](const auto& messages) { buffered().push(messages.front()); });
        }
    }

    std::optional<Producer<Raw>> m_producer;
    std::optional<BufferedProducer<Raw>> m_buffered;
};

} // namespace orizuru::test
