// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps the connection that carries a consumer's scripts, the replies expected on it in order, and
// the pauses between attempts. Callers hold the consumer's lock, except for `attempt`. Any thread
// may send or end the connection. Only the thread that polls it closes it: a descriptor closed
// during a poll may already belong to another file.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/jittered_pauses.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/reply_class.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class Control {
  public:
    /// Why a command is sent.
    enum class Purpose {
        start,
        adopt,
        chain, ///< a request of the mirror's chain
        answer ///< a thread waits for the Answer
    };

    struct Answer {
        std::optional<Reply> reply;
        bool failed = false; ///< no reply will come
    };

    struct Expected {
        Purpose purpose;
        TimePoint sent;
        std::shared_ptr<Answer> answer;
    };

    /// Outcome of an attempt to connect.
    struct Attempt {
        std::unique_ptr<Stream> stream;
        std::string failure;        ///< why there is no stream
        std::exception_ptr refusal; ///< the same, if only a person can fix it
        bool given_up = false;      ///< `wake` or the deadline came first: Redis may be fine
    };

    /// Connects until the deadline. Throws as Stream does, except when Redis is not ready yet.
    [[gnu::cold]] Control(Endpoint endpoint, TimePoint deadline);

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    [[nodiscard]] bool connected() const noexcept { return m_stream && !m_ended; }
    /// Connected and not in a pause.
    [[nodiscard]] bool ready() const noexcept {
        return connected() && Clock::now() >= m_hold_until;
    }

    // Sending, while connected. The next `flush` sends what was composed.

    /// Sends what `compose` appends. If that throws, nothing is sent or expected.
    void send(Purpose purpose, FunctionRef<void(std::string&)> compose) {
        expect(purpose, nullptr, compose);
    }
    /// The same for a command whose reply the caller waits for.
    std::shared_ptr<Answer> ask(FunctionRef<void(std::string&)> compose) {
        auto answer = std::make_shared<Answer>();
        expect(Purpose::answer, answer, compose);
        return answer;
    }
    /// Sends as much as the socket takes; true when nothing is left. Throws ConnectionError.
    bool flush() { return !connected() || m_stream->flushed() || m_stream->flush(); }
    [[nodiscard]] bool expects(Purpose purpose) const noexcept {
        return std::any_of(m_expected.begin(), m_expected.end(),
                           [=](const Expected& expected) { return expected.purpose == purpose; });
    }

    // Reading, by the thread that polls.

    [[nodiscard]] Stream& stream() noexcept { return *m_stream; }
    /// By when the oldest outstanding reply must come.
    [[nodiscard]] TimePoint reply_due() const noexcept {
        return m_expected.empty() ? TimePoint::max()
                                  : m_expected.front().sent + m_endpoint.command_timeout();
    }
    /// Connected, with nothing to send and no reply outstanding.
    [[nodiscard]] bool idle() const noexcept {
        return connected() && m_expected.empty() && m_stream->flushed();
    }
    /// A reply has come on this connection.
    [[nodiscard]] bool proven() const noexcept { return m_proven; }
    /// Returns the command that the new reply answers; throws ProtocolError if there is none.
    [[nodiscard]] Expected take_expected();

    // Ending and reconnecting.

    /// Shuts the connection down. No expected reply will come, so each Answer fails.
    [[gnu::cold]] void end(std::string_view reason) noexcept;
    /// Closes a connection that has ended. Only the thread that polls may call it.
    void close_ended() noexcept {
        if (std::exchange(m_ended, false)) {
            m_stream.reset();
        }
    }
    [[nodiscard]] bool closed() const noexcept { return !m_stream; }
    /// Called without the lock.
    [[nodiscard]] [[gnu::cold]] static Attempt attempt(const Endpoint& endpoint, TimePoint deadline,
                                                       const Wake& wake);
    /// Returns true if `stream` replaces an earlier one.
    bool use(std::unique_ptr<Stream> stream) noexcept {
        m_stream = std::move(stream);
        m_proven = false;
        return std::exchange(m_replaced, true);
    }
    /// In a forked child: closes the descriptor and touches nothing else.
    void close_after_fork() noexcept {
        if (m_stream) {
            m_stream.release()->close_after_fork();
        }
    }

    // Pauses, which grow until something succeeds.

    void succeeded() noexcept { m_backoff.reset(); }
    /// Pauses composing until `hold_until`.
    void hold() noexcept { m_hold_until = Clock::now() + m_backoff.next(); }
    [[nodiscard]] TimePoint hold_until() const noexcept { return m_hold_until; }
    /// Pauses connecting until `connect_at`.
    [[gnu::cold]] void delay_connecting() noexcept;
    [[nodiscard]] TimePoint connect_at() const noexcept { return m_connect_at; }

    [[gnu::cold]] void note_failure(std::string_view reason) noexcept;
    [[nodiscard]] const std::string& last_failure() const noexcept { return m_last_failure; }

  private:
    void expect(Purpose purpose, std::shared_ptr<Answer> answer,
                FunctionRef<void(std::string&)> compose);

    Endpoint m_endpoint;
    std::unique_ptr<Stream> m_stream;
    bool m_ended = false;    ///< shut down; the thread that polls closes it
    bool m_replaced = false; ///< the next stream is not the first
    bool m_proven = false;
    Fifo<Expected> m_expected;

    JitteredPauses m_backoff;
    TimePoint m_hold_until{};
    TimePoint m_connect_at{};
    std::string m_last_failure;
};

inline Control::Control(Endpoint endpoint, TimePoint deadline) : m_endpoint(std::move(endpoint)) {
    try {
        use(std::make_unique<Stream>(m_endpoint, deadline));
    } catch (const ReplyError& error) {
        if (classify(error) == ReplyClass::rights || classify(error) == ReplyClass::other) {
            throw;
        }
        note_failure(error.what());
        delay_connecting();
    }
}

inline void Control::expect(Purpose purpose, std::shared_ptr<Answer> answer,
                            FunctionRef<void(std::string&)> compose) {
    m_expected.reserve(m_expected.size() + 1);
    m_stream->append(compose);
    m_expected.push_back({purpose, Clock::now(), std::move(answer)});
}

inline void Control::note_failure(std::string_view reason) noexcept {
    try {
        m_last_failure = reason;
    } catch (const std::bad_alloc&) {
        m_last_failure.clear(); // no reason is better than a wrong one
    }
}

inline Control::Attempt Control::attempt(const Endpoint& endpoint, TimePoint deadline,
                                         const Wake& wake) {
    Attempt result;
    const TimePoint own = Clock::now() + endpoint.connect_timeout();
    try {
        result.stream = std::make_unique<Stream>(endpoint, std::min(deadline, own), &wake);
        return result;
    } catch (const GivenUp&) {
        result.given_up = true;
    } catch (const ReplyError& error) {
        result.failure = error.what();
        if (classify(error) == ReplyClass::rights) {
            result.refusal = std::current_exception();
        }
    } catch (const std::exception& error) {
        result.failure = error.what();
    }
    result.given_up = result.given_up || (deadline < own && Clock::now() >= deadline);
    return result;
}

inline Control::Expected Control::take_expected() {
    if (m_expected.empty()) {
        throw ProtocolError(joined({m_endpoint.address(), ": a reply that nothing asked for"}));
    }
    m_proven = true;
    return m_expected.pop_front();
}

inline void Control::end(std::string_view reason) noexcept {
    if (connected()) {
        m_ended = true;
        note_failure(reason);
        m_stream->shutdown();
    }
    for (const Expected& expected : std::exchange(m_expected, {})) {
        if (expected.answer) {
            expected.answer->failed = true;
        }
    }
}

inline void Control::delay_connecting() noexcept {
    constexpr std::chrono::seconds calm(10);
    const TimePoint now = Clock::now();
    if (now - m_connect_at > calm) {
        m_backoff.reset();
    }
    m_connect_at = now + m_backoff.next();
}

} // namespace orizuru::detail
