// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The node that gets a queue's slot: the old one sends pushes to it, by ASK.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/producer/replica_wait.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class AskedNode {
  public:
    /// Returns the reply to the LPUSH `command`, once `wait` is answered well. Keeps the connection
    /// for the next call. A refusal to connect or to be asked is a reply, too. Throws
    /// ConnectionError, whose in_doubt() is about this LPUSH; ProtocolError.
    [[nodiscard]] [[gnu::cold]] Reply push(const Endpoint& node, std::string_view command,
                                           const ReplicaWait& wait) {
        auto stream = std::move(m_stream); // one that fails must not live on
        try {
            if (!stream || stream->address() != node.address() || stream->disturbed()) {
                stream = Stream::make(node, deadline_in(node.connect_timeout()));
            }
        } catch (const ReplyError& error) {
            return {Reply::Type::error, 0, joined({error.code(), " ", error.what()}), {}};
        }
        stream->append([&](std::string& out) {
            append_command(out, "ASKING");
            out += command;
            out += wait.command();
        });
        try {
            const TimePoint until = deadline_in(node.command_timeout() + wait.time());
            Reply asking = stream->await_reply(until);
            Reply reply = stream->await_reply(until);
            if (asking.is(Reply::Type::error)) { // then the LPUSH was no more than MOVED
                return asking;
            }
            // The node closes the connection when it refuses a length: no reply to WAIT comes.
            if (wait.wanted() && !refuses_a_length(reply)) {
                reply = wait.confirmed(std::move(reply), stream->await_reply(until));
            }
            m_stream = std::move(stream);
            return reply;
        } catch (const ConnectionError& error) {
            throw ConnectionError(error.what(), stream->outcome());
        }
    }
    void close() noexcept { m_stream.reset(); }
    /// Does the same when the producer's own connection has been made at another time.
    void close_unless(TimePoint connected_at) noexcept {
        if (std::exchange(m_beside, connected_at) != connected_at) {
            close();
        }
    }
    /// Closes the descriptor in a forked child.
    void close_after_fork() noexcept { Stream::close_after_fork(m_stream); }

  private:
    std::unique_ptr<Stream> m_stream;
    TimePoint m_beside; ///< connected_at() of the producer's own connection
};

} // namespace orizuru::detail
