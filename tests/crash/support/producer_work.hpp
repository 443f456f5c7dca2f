// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A producer that may be killed at any moment, and records its actions in a journal.

#pragma once

#include "crash/support/journal.hpp"
#include "crash/support/work.hpp"
#include "fuzz/simulation/chance.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/error.hpp>
#include <orizuru/producer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace orizuru::test {

class ProducerWork {
  public:
    explicit ProducerWork(const Work& work)
        : m_journal(work.journal),
          m_chance(work.seed),
          m_next(work.first_message()),
          m_rate(work.rate),
          m_rest(work.rest),
          m_producer(connected<Producer<Raw>>(work.endpoint(), work.queue)) {
        if (work.index % 4 == 3) {
            m_buffered = connected<BufferedProducer<Raw>>(
                work.endpoint(), work.queue, BufferedProducerOptions{.size = buffer_size});
        }
    }

    [[noreturn]] void run() {
        while (true) {
            rest();
            const std::size_t count = m_chance.happens(0.9) ? 1 : 1 + m_chance.below(150);
            if (m_buffered) {
                buffer(count);
            } else if (count == 1) {
                push();
            } else {
                push_all(count);
            }
            const auto pause = std::chrono::microseconds(1'000'000 * count / m_rate);
            std::this_thread::sleep_for(m_length < crowded ? pause : pause + long_pause);
        }
    }

  private:
    // Slow consumers must not be flooded.
    static constexpr std::uint64_t crowded = 2000;
    static constexpr std::chrono::milliseconds long_pause{100};
    static constexpr std::chrono::seconds cycle{3};
    static constexpr int buffer_size = 20;

    /// All producers rest at the same time.
    void rest() const {
        const auto into_cycle = std::chrono::steady_clock::now().time_since_epoch() % cycle;
        if (into_cycle < m_rest) {
            std::this_thread::sleep_for(m_rest - into_cycle);
        }
    }

    void push() {
        const std::uint64_t message = m_next++;
        m_journal.write({message, Step::pushing});
        try {
            m_length = m_producer->push(Raw{std::to_string(message)});
            m_journal.write({message, Step::pushed});
        } catch (const ConnectionError& error) {
            if (!error.in_doubt()) {
                m_journal.write({message, Step::not_pushed});
            }
        } catch (const ReplyError&) {
            m_journal.write({message, Step::not_pushed});
        }
    }

    void push_all(std::size_t count) {
        std::vector<Raw> messages;
        std::vector<std::uint64_t> numbers;
        for (std::size_t i = 0; i < count; ++i) {
            numbers.push_back(m_next++);
            messages.push_back({std::to_string(numbers.back())});
        }
        note(numbers, 0, count, Step::pushing);
        try {
            m_length = m_producer->push_all(messages);
            note(numbers, 0, count, Step::pushed);
        } catch (const ConnectionError& error) {
            note(numbers, 0, error.pushed(), Step::pushed);
            if (!error.in_doubt()) {
                note(numbers, error.pushed(), count, Step::not_pushed);
            }
        } catch (const ReplyError& error) {
            note(numbers, 0, error.pushed(), Step::pushed);
        }
    }

    /// Confirms only the messages that were accepted before all were seen to be in Redis.
    void buffer(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t message = m_next++;
            m_journal.write({message, Step::buffering});
            try {
                m_length = m_buffered->push(Raw{std::to_string(message)});
                m_accepted.push_back(message);
            } catch (const Error&) {
                m_journal.write({message, Step::not_pushed});
            }
        }
        try {
            if (m_chance.happens(0.1)) {
                m_buffered->flush();
                note(m_accepted, 0, m_accepted.size(), Step::pushed);
                m_accepted.clear();
            }
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
            // All messages stay in the buffer.
        }
    }

    void note(const std::vector<std::uint64_t>& messages, std::size_t first, std::size_t last,
              Step step) {
        std::vector<Record> records;
        for (std::size_t i = first; i < last; ++i) {
            records.push_back({messages[i], step});
        }
        m_journal.write(records);
    }

    Journal m_journal;
    Chance m_chance;
    std::uint64_t m_next;
    std::size_t m_rate;
    std::chrono::milliseconds m_rest;
    std::unique_ptr<Producer<Raw>> m_producer;
    std::unique_ptr<BufferedProducer<Raw>> m_buffered; ///< in one process of four
    std::uint64_t m_length = 0;
    std::vector<std::uint64_t> m_accepted;
};

} // namespace orizuru::test
