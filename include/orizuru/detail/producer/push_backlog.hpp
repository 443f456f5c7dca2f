// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Accepted messages in their order, kept until Redis confirms them. One chunk is being filled; up
// to two chunks before it are in flight or wait to be sent, for the first time or again.
//
//     refused    in flight    waiting    being filled    spare
//     └────────── unconfirmed ─────────┘
//
// The backlog sends refused chunks again once nothing is in flight, so that only the one LPUSH that
// was already in flight can overtake them. A chunk that too few replicas have is kept like a
// refused one, but only WAITs again while its connection lives: a second LPUSH would duplicate it.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/unlocked.hpp>
#include <orizuru/detail/producer/payload_source.hpp>
#include <orizuru/detail/producer/push_chunk.hpp>
#include <orizuru/detail/producer/push_pipeline.hpp>
#include <orizuru/detail/producer/replica_wait.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class PushBacklog {
  public:
    using Lock = std::unique_lock<std::mutex>;

    /// Connects. A chunk with `most` messages is full.
    [[gnu::cold]] PushBacklog(const Endpoint& endpoint, const std::string& key, std::size_t most,
                              ReplicaWait wait = {})
        : m_pipeline(endpoint, key, std::move(wait)),
          m_most(most),
          m_chunks{PushChunk(key), PushChunk(key), PushChunk(key)} {}
    PushBacklog(const PushBacklog&) = delete;
    PushBacklog& operator=(const PushBacklog&) = delete;
    ~PushBacklog() = default;

    [[nodiscard]] PushPipeline& pipeline() noexcept { return m_pipeline; }
    [[nodiscard]] const PushPipeline& pipeline() const noexcept { return m_pipeline; }

    /// Takes the next message of `payload`. Not when full().
    void add(PayloadSource payload) { filling().add(payload); }
    /// True if the chunk being filled is full.
    [[nodiscard]] bool full() const noexcept { return filling().full(m_most); }
    [[nodiscard]] bool filled() const noexcept { return !filling().empty(); }

    /// The number of the chunk being filled; the next chunk's is greater by one.
    [[nodiscard]] std::uint64_t number() const noexcept { return m_number; }
    /// True if Redis has confirmed all messages of the chunks up to this number.
    [[nodiscard]] bool confirmed(std::uint64_t number) const noexcept;

    /// Returns how many messages Redis has not confirmed.
    [[nodiscard]] std::size_t size() const noexcept;
    /// The queue's length as Redis last reported it.
    [[nodiscard]] std::uint64_t length() const noexcept { return m_length; }

    /// True if two chunks are unconfirmed already.
    [[nodiscard]] bool blocked() const noexcept { return m_unconfirmed == PushPipeline::most; }
    /// True if chunks wait to be sent.
    [[nodiscard]] bool waiting() const noexcept {
        return m_unconfirmed > m_refused + m_pipeline.in_flight();
    }
    /// Returns when the buffer's thread retries after a failure; long past when all is well.
    [[nodiscard]] TimePoint retry_at() const noexcept { return m_retry_at; }
    [[nodiscard]] bool failed() const noexcept { return m_retry_at != TimePoint(); }

    /// Returns the size of the messages that Redis refused for their length.
    [[nodiscard]] std::size_t refused_bytes() const noexcept { return m_refused_bytes; }
    /// Throws RefusedError for the oldest of them, which is then no longer kept, if there is one.
    void give_back() {
        if (!m_too_long.empty()) {
            throw_refused();
        }
    }

    /// Hands the chunk being filled over to be sent and begins another. Not when `blocked`.
    void close_chunk() noexcept {
        m_numbers[m_order[m_unconfirmed]] = m_number;
        ++m_unconfirmed;
        ++m_number;
    }

    /// Begins to send the waiting chunks. Throws as PushPipeline::start; connects when nothing is
    /// in flight and the connection is lost.
    void send(TimePoint limit = TimePoint::max());
    /// Takes an answer of Redis that has been read; false when there is none. Throws as
    /// PushPipeline::next. Throws ReplyError for a refusal, and ConnectionError for too few
    /// replicas, once no answer is owed: all unconfirmed chunks then wait. Releases the lock while
    /// another node is asked.
    bool take_answer(Lock& lock);
    /// Takes the result of `PushPipeline::await`. Throws as PushPipeline::read.
    void read(short ready);

    /// Notes a failure and schedules a retry after a pause.
    [[gnu::cold]] void note_failure() {
        if (m_pipeline.in_flight() > 0) {
            m_pipeline.abandon(); // a later answer could not be told from an earlier one
        }
        m_refused = 0;
        m_refusal = nullptr;
        m_retry_at = Clock::now() + m_backoff.next();
    }

  private:
    [[nodiscard]] PushChunk& filling() noexcept { return m_chunks[m_order[m_unconfirmed]]; }
    [[nodiscard]] const PushChunk& filling() const noexcept {
        return m_chunks[m_order[m_unconfirmed]];
    }

    template <class Action>
    auto noting_failure(Action action) {
        try {
            return action();
        } catch (...) {
            note_failure();
            throw;
        }
    }

    void take(const Reply& reply, Lock& lock);
    [[gnu::cold]] void refuse_oldest(std::exception_ptr refusal) noexcept {
        if (!m_refusal) {
            m_refusal = std::move(refusal);
        }
        ++m_refused;
    }
    void confirm_oldest(std::uint64_t length) noexcept;
    void remove_oldest() noexcept;
    [[gnu::cold]] void set_aside_largest(const Reply& reply);
    [[noreturn]] [[gnu::cold]] void throw_refused() {
        const RefusedError refused = std::move(m_too_long.front());
        m_too_long.pop_front();
        m_refused_bytes -= refused.payload().size();
        throw RefusedError(refused);
    }
    [[nodiscard]] std::optional<Reply> ask(const Reply& refusal, Lock& lock) {
        return m_pipeline.ask(refusal, m_chunks[m_order[m_refused]].command(), [&](auto push) {
            const Unlocked open(lock);
            return push();
        });
    }

    PushPipeline m_pipeline;
    std::size_t m_most;
    std::array<PushChunk, 3> m_chunks;
    std::array<std::size_t, 3> m_order{0, 1, 2};                 ///< as in the picture above
    std::array<std::uint64_t, 3> m_numbers{};                    ///< the unconfirmed chunks'
    std::uint64_t m_number = 0;                                  ///< that of the chunk being filled
    std::array<std::optional<PushPipeline::Pushed>, 3> m_pushed; ///< each chunk's
    std::size_t m_unconfirmed = 0;
    std::size_t m_refused = 0;
    std::exception_ptr m_refusal; ///< the first one, until no reply is owed
    std::deque<RefusedError> m_too_long;
    std::size_t m_refused_bytes = 0; ///< their payloads'
    std::uint64_t m_length = 0;
    JitteredPauses m_backoff;
    TimePoint m_retry_at{};
};

inline std::size_t PushBacklog::size() const noexcept {
    std::size_t sum = 0;
    for (const PushChunk& chunk : m_chunks) {
        sum += chunk.size();
    }
    return sum + m_too_long.size();
}

inline bool PushBacklog::confirmed(std::uint64_t number) const noexcept {
    for (std::size_t i = 0; i < m_unconfirmed; ++i) {
        if (m_numbers[m_order[i]] <= number) {
            return false;
        }
    }
    return m_number > number || !filled();
}

inline void PushBacklog::send(TimePoint limit) {
    noting_failure([=, this] {
        while (!m_refusal && waiting()) {
            const std::size_t chunk = m_order[m_pipeline.in_flight()];
            m_pipeline.start(m_chunks[chunk].command(), limit, m_pushed[chunk]);
        }
    });
}

inline bool PushBacklog::take_answer(Lock& lock) {
    return noting_failure([&] {
        try {
            const auto reply = m_pipeline.next();
            if (!reply) {
                return false;
            }
            take(*reply, lock);
        } catch (const PushPipeline::Unreplicated& error) {
            m_pushed[m_order[m_refused]] = error.pushed;
            refuse_oldest(std::current_exception());
        }
        if (m_refusal && m_pipeline.in_flight() == 0) {
            std::rethrow_exception(m_refusal);
        }
        return true;
    });
}

inline void PushBacklog::read(short ready) {
    noting_failure([=, this] { m_pipeline.read(ready); });
}

inline void PushBacklog::take(const Reply& reply, Lock& lock) {
    if (reply.is(Reply::Type::integer)) {
        confirm_oldest(static_cast<std::uint64_t>(reply.integer));
    } else if (const auto answer = ask(reply, lock)) {
        take(*answer, lock);
    } else if (refuses_a_length(reply)) {
        set_aside_largest(reply);
    } else {
        refuse_oldest(std::make_exception_ptr(m_pipeline.refusal(reply)));
    }
}

/// Keeps the largest message of the refused chunk apart. The rest of the chunk is sent again, and
/// so are the chunks behind it.
inline void PushBacklog::set_aside_largest(const Reply& reply) {
    PushChunk& chunk = m_chunks[m_order[m_refused]];
    m_too_long.push_back(m_pipeline.refusal_of(chunk.largest(), reply));
    m_refused_bytes += m_too_long.back().payload().size();
    chunk.remove_largest();
    if (chunk.empty()) {
        remove_oldest();
    }
}

inline void PushBacklog::confirm_oldest(std::uint64_t length) noexcept {
    remove_oldest();
    m_length = length;
    m_retry_at = TimePoint();
    m_backoff.reset();
}

inline void PushBacklog::remove_oldest() noexcept {
    const auto oldest = m_order.begin() + static_cast<std::ptrdiff_t>(m_refused);
    m_chunks[*oldest].clear();
    m_pushed[*oldest].reset();
    std::rotate(oldest, oldest + 1, m_order.end());
    --m_unconfirmed;
}

} // namespace orizuru::detail
