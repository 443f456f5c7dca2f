// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Shared by the C++ programs of the comparison: their side of the dialogue with `run`, which
// README.md describes, a message of the size that all peers send, and the count of handled
// messages.

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace peers {

using Clock = std::chrono::steady_clock;

/// The request of `run`: produce|consume MODE ADDRESS QUEUE COUNT RATE.
struct Task {
    std::string mode;
    std::string address;
    std::string queue;
    std::uint64_t count = 0;
    std::uint64_t rate = 0; ///< messages per second, one by one; 0 = as fast as the mode can
};

/// A name of 16 characters: the time at which it was made, in hexadecimal nanoseconds.
inline std::array<char, 16> name_now() {
    static_assert(sizeof(long) == 8);
    std::array<char, 17> text{};
    std::snprintf(
        text.data(), text.size(), "%016lx",
        static_cast<unsigned long>(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1)));
    std::array<char, 16> name{};
    std::copy_n(text.begin(), name.size(), name.begin());
    return name;
}

/// The payload for peers that carry bytes as they are.
struct Message {
    std::uint64_t id = 0;
    std::array<char, 16> name{'n', 'a', 'm', 'e'};

    [[nodiscard]] std::string_view bytes() const {
        return {reinterpret_cast<const char*>(this), sizeof *this};
    }
    static Message from(std::string_view bytes) {
        Message message;
        if (bytes.size() != sizeof message) {
            throw std::runtime_error("a message of another size came back");
        }
        std::memcpy(&message, bytes.data(), sizeof message);
        return message;
    }
};

/// Tells `run` that this program is connected.
inline void ready() { std::cout << "ready" << std::endl; }

/// The producer's side: waits for the word to begin, counts, and reports when all messages are
/// confirmed.
class Production {
  public:
    explicit Production(const Task& task) : m_task(task) {
        ready();
        std::string go;
        std::getline(std::cin, go);
        m_begin = Clock::now();
    }

    /// Sleeps until message number `id` is due.
    void wait_for_turn(std::uint64_t id) const {
        std::this_thread::sleep_until(m_begin +
                                      std::chrono::nanoseconds(1'000'000'000) * id / m_task.rate);
    }

    void done() const {
        const std::chrono::duration<double> seconds = Clock::now() - m_begin;
        const auto count = m_task.count;
        std::cout << "done " << count << ' ' << count * (count - 1) / 2 << ' ' << seconds.count()
                  << " 0 0" << std::endl;
    }

  private:
    const Task& m_task;
    Clock::time_point m_begin;
};

/// The consumer's side: counts the handled messages, from the first one on.
class Tally {
  public:
    explicit Tally(const Task& task) : m_task(task) {}

    /// The handler of all peers: it does nothing but count.
    void handle(std::uint64_t id, std::string_view name) {
        if (m_count == 0) {
            m_begin = Clock::now();
        }
        ++m_count;
        m_sum += id;
        if (m_task.rate > 0) {
            std::int64_t sent = 0;
            std::from_chars(name.data(), name.data() + name.size(), sent, 16);
            const auto age = Clock::now().time_since_epoch() - std::chrono::nanoseconds(sent);
            m_microseconds.push_back(std::chrono::duration<double, std::micro>(age).count());
        }
    }
    void handle(const Message& message) {
        handle(message.id, {message.name.data(), message.name.size()});
    }

    [[nodiscard]] std::uint64_t missing() const { return m_task.count - m_count; }

    /// Call it when the server has every acknowledgement.
    void done() {
        const std::chrono::duration<double> seconds = Clock::now() - m_begin;
        std::sort(m_microseconds.begin(), m_microseconds.end());
        std::cout << "done " << m_count << ' ' << m_sum << ' ' << seconds.count() << ' '
                  << percentile(50) << ' ' << percentile(99) << std::endl;
    }

  private:
    [[nodiscard]] double percentile(std::size_t percent) const {
        return m_microseconds.empty() ? 0 : m_microseconds[m_microseconds.size() * percent / 100];
    }

    const Task& m_task;
    std::uint64_t m_count = 0;
    std::uint64_t m_sum = 0;
    Clock::time_point m_begin;
    std::vector<double> m_microseconds;
};

/// The main function of a peer's program.
inline int run(int argc, char** argv, void (*produce)(const Task&), void (*consume)(const Task&)) {
    try {
        if (argc != 7) {
            throw std::invalid_argument("produce|consume MODE ADDRESS QUEUE COUNT RATE");
        }
        const Task task{argv[2], argv[3], argv[4], std::stoull(argv[5]), std::stoull(argv[6])};
        (std::string_view(argv[1]) == "produce" ? produce : consume)(task);
        // Until `run` has read how much memory this process took.
        std::string end;
        std::getline(std::cin, end);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << argv[0] << ": " << error.what() << '\n';
        return 1;
    }
}

} // namespace peers
