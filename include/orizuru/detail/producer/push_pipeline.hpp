// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// At most two LPUSHes in flight: while Redis works on one, the caller writes the next. Their bytes
// are sent from where they lie. Any error but Unreplicated closes the connection and empties the
// pipeline: no stream lives on with half a command or an unread reply.

#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/producer/asked_node.hpp>
#include <orizuru/detail/producer/replica_wait.hpp>
#include <orizuru/detail/redis/kept_stream.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/server_clock.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace orizuru::detail {

class PushPipeline {
  public:
    static constexpr std::size_t most = 2;

    /// An LPUSH that has run, of which too few replicas are known to have it.
    struct Pushed {
        std::uint64_t length;   ///< the queue's after it
        TimePoint connected_at; ///< names the connection that can WAIT for it once more
    };
    struct Unreplicated : ConnectionError {
        Unreplicated(const std::string& what, Pushed done)
            : ConnectionError(what, Outcome::in_doubt), pushed(done) {}

        Pushed pushed;
    };

    /// Connects as Connection does; error messages name `key`. `wait` goes behind each push, which
    /// counts as answered when both are.
    [[gnu::cold]] PushPipeline(const Endpoint& endpoint, std::string key, ReplicaWait wait)
        : m_line(Route::to_key(endpoint, key)), m_key(std::move(key)), m_wait(std::move(wait)) {}

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_line.endpoint(); }
    [[nodiscard]] const std::string& key() const noexcept { return m_key; }

    /// LLEN, only while nothing is in flight. Throws std::logic_error when taken; as Connection.
    std::uint64_t length() {
        refuse_taken();
        const Reply reply = m_line.command(m_key, "LLEN", m_key);
        if (!is_count(reply)) {
            m_line.refuse("LLEN");
        }
        return static_cast<std::uint64_t>(reply.integer);
    }

    /// Reads the clock on this connection, only while nothing is in flight. Throws std::logic_error
    /// when taken; as ServerClock.
    void read(ServerClock& clock) {
        refuse_taken();
        clock.read(m_line, m_key);
    }

    /// Any command, given as bytes, only while nothing is in flight. Throws as `length` does.
    Reply command(std::string_view name, std::string_view bytes);

    /// Reserves the pipeline until `give_back`. Throws std::logic_error when it is taken: then a
    /// range or a Codec uses the producer that is reading it.
    void take() {
        refuse_taken();
        m_taken = true;
    }
    void refuse_taken() const {
        if (m_taken) {
            throw std::logic_error(
                joined({"a producer of '", m_key, "' is used while it is pushing"}));
        }
    }
    void give_back() noexcept {
        m_taken = false;
        if (m_count > 0) {
            abandon();
        }
    }

    /// Returns how many replies Redis owes.
    [[nodiscard]] std::size_t in_flight() const noexcept { return m_count; }
    /// True if everything has gone to the socket.
    [[nodiscard]] bool sent() const noexcept {
        return m_count == 0 || m_flights[m_count - 1].sent();
    }

    /// Begins to send an LPUSH. Its bytes must stay until its reply has come or the pipeline is
    /// empty. When nothing is in flight and the connection is lost, connects until `limit` and
    /// throws as Connection does; else throws as `next`. One that was `pushed` by the same
    /// connection does not run again: only its WAIT does.
    void start(std::string_view command, TimePoint limit = TimePoint::max(),
               const std::optional<Pushed>& pushed = {}) {
        if (m_count == 0) {
            m_line.ensure_connected(limit);
            m_asked.close_unless(m_line.connected_at());
        }
        Flight& flight = m_flights[m_count++];
        flight = {{command, m_wait.command()}, false, reply_due(), {}};
        if (pushed && pushed->connected_at == m_line.connected_at()) {
            flight.unsent[0] = {};
            flight.begun = true;
            flight.length = pushed->length;
        }
        try {
            send();
        } catch (const ConnectionError&) { // NOLINT(bugprone-empty-catch)
            // `next` fails the same way, unless the server has said why it does not read on.
        } catch (...) {
            fail();
        }
    }

    /// Sends what the socket takes; returns the oldest LPUSH's reply, an integer or an error, once
    /// it has been read. Throws ConnectionError, whose in_doubt() is about all LPUSHes in flight;
    /// ProtocolError. Throws Unreplicated for the oldest alone: then the others stay in flight.
    [[nodiscard]] std::optional<Reply> next();

    /// Waits until the socket can send or has data; reads it. Throws as `next`, also at deadline().
    void wait() { read(await(TimePoint::max())); }
    /// The first half of `wait`: returns what the socket is ready for, or 0. Changes nothing that
    /// other threads may read meanwhile.
    [[nodiscard]] short await(TimePoint limit) {
        return stream().wait(events(), nullptr, std::min(limit, deadline()));
    }
    /// The second half: reads the data that has arrived.
    void read(short ready) {
        guarded([=, this] {
            if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
                stream().fill();
            } else if (ready == 0 && Clock::now() >= deadline()) {
                throw ConnectionError("no reply in time");
            }
        });
    }

    /// For a caller's own poll, while something is in flight.
    [[nodiscard]] int fd() const noexcept { return stream().fd(); }
    [[nodiscard]] short events() const noexcept { return sent() ? POLLIN : POLLIN | POLLOUT; }
    [[nodiscard]] TimePoint deadline() const noexcept { return m_flights[0].deadline; }
    /// Returns when the replies to what is sent now must have come.
    [[nodiscard]] TimePoint reply_due() const {
        return deadline_in(endpoint().command_timeout() + m_wait.time());
    }

    /// True if `start` would find a connection.
    [[nodiscard]] bool connected() const { return m_line.connected(); }
    /// Adopts a connection made elsewhere, while nothing is in flight.
    void adopt(std::unique_ptr<Stream> stream) noexcept { m_line.adopt(std::move(stream)); }
    /// Gives up the LPUSHes in flight, and the connection with them.
    void abandon() noexcept {
        m_count = 0;
        m_pushed.reset();
        m_asked.close();
        m_line.close();
    }
    /// Closes the descriptors in a forked child, which must not destroy the pipeline afterwards.
    void close_after_fork() noexcept {
        m_asked.close_after_fork();
        m_line.close_after_fork();
    }

    /// If a node refused an LPUSH because its slot is on its way to another one, which
    /// gets the key now, sends it there, by a connection of its own: returns the reply. Nothing for
    /// another error. Throws as `next`; in_doubt() is also about this LPUSH. What waits for the
    /// node is called by `wait`, and changes nothing that other threads may read.
    template <class Wait>
    [[nodiscard]] [[gnu::cold]] std::optional<Reply> ask(const Reply& refusal,
                                                         std::string_view command, Wait wait);

    /// The refusal of this one payload as an exception.
    [[nodiscard]] [[gnu::cold]] RefusedError refusal_of(std::string payload,
                                                        const Reply& reply) const;
    /// An error reply as an exception.
    [[nodiscard]] ReplyError refusal(const Reply& reply, std::string_view remark = {}) const {
        return reply_error(describe(), joined({reply.text, remark}));
    }

  private:
    struct Flight {
        std::array<std::string_view, 2> unsent; ///< the LPUSH, and the WAIT
        bool begun = false;                     ///< Redis may have seen some of it
        TimePoint deadline;
        std::optional<std::uint64_t> length; ///< the reply to an LPUSH that ran before

        [[nodiscard]] bool sent() const noexcept { return unsent[0].empty() && unsent[1].empty(); }
    };

    [[nodiscard]] Stream& stream() const noexcept { return m_line.stream(); }
    [[nodiscard]] std::string describe() const { return m_line.describe(m_key, "LPUSH"); }

    template <class Action>
    std::invoke_result_t<Action&> guarded(Action action) {
        try {
            return action();
        } catch (...) {
            fail();
        }
    }
    [[nodiscard]] Reply* send_and_look();
    [[nodiscard]] [[gnu::cold]] Reply* last_words();
    void send() {
        for (std::size_t i = 0; i < m_count; ++i) {
            Flight& flight = m_flights[i];
            for (std::string_view& unsent : flight.unsent) {
                while (!unsent.empty()) {
                    const std::size_t count = stream().send(unsent);
                    if (count == 0) {
                        return;
                    }
                    flight.begun = true;
                    unsent.remove_prefix(count);
                }
            }
        }
    }
    void check_reply(const Reply& reply) const {
        if (!is_count(reply, 1) && !reply.is(Reply::Type::error)) {
            throw ProtocolError(joined({describe(), " was answered by a reply of the wrong type"}));
        }
    }
    [[noreturn]] [[gnu::cold]] void throw_unreplicated(const Reply& reply, const Reply& waited);
    /// In a handler: closes the connection and rethrows; a ConnectionError gets its outcome.
    [[noreturn]] [[gnu::cold]] void fail() {
        const bool begun = m_count > 0 && m_flights[0].begun;
        abandon();
        try {
            throw;
        } catch (const ConnectionError& error) {
            throw ConnectionError(joined({describe(), ": ", error.what()}),
                                  begun || error.in_doubt() ? ConnectionError::Outcome::in_doubt
                                                            : ConnectionError::Outcome::not_run);
        }
    }

    KeptStream m_line;
    std::string m_key;
    ReplicaWait m_wait;
    AskedNode m_asked;
    std::optional<Reply> m_pushed; ///< to an LPUSH whose WAIT has no reply yet
    std::array<Flight, most> m_flights;
    std::size_t m_count = 0;
    bool m_taken = false;
};

inline Reply PushPipeline::command(std::string_view name, std::string_view bytes) {
    refuse_taken();
    if (!m_wait.wanted()) {
        return m_line.exchange(m_key, name, bytes);
    }
    bool answered = false;
    const auto closing = at_exit([&] {
        if (!answered) {
            abandon(); // the reply to WAIT would be taken for another's
        }
    });
    Reply reply = m_line.exchange(m_key, name, joined({bytes, m_wait.command()}));
    try {
        if (!m_line.open()) {
            throw ConnectionError("answered before WAIT was sent");
        }
        const Reply waited = stream().await_reply(reply_due());
        answered = true;
        return m_wait.confirmed(std::move(reply), waited);
    } catch (const ConnectionError& error) {
        throw ConnectionError(joined({m_line.describe(m_key, name), ": ", error.what()}),
                              ConnectionError::Outcome::in_doubt);
    }
}

} // namespace orizuru::detail

#include <orizuru/detail/producer/push_pipeline_answers.inl>
