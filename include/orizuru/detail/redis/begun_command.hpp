// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A command that goes on in Redis while the caller does something else.

#include <orizuru/connection.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/redis/kept_stream.hpp>
#include <orizuru/detail/redis/stream.hpp>
#include <orizuru/reply.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail {

/// Holds the connection's stream until the reply has come.
class BegunCommand {
  public:
    [[nodiscard]] bool begun() const noexcept { return m_stream != nullptr; }

    /// Sends a command, given as bytes, without waiting. Throws as Connection::command.
    void begin(Connection& connection, std::string_view name, std::string_view bytes) {
        KeptStream& line = KeptStream::of(connection);
        line.ensure_connected();
        auto stream = line.lend(); // an exception drops it
        stream->append([bytes](std::string& out) { out += bytes; });
        stream->flush();
        m_stream = std::move(stream);
        m_name = name;
    }
    /// Returns the reply, or nothing at `until` or a stop: then you can call it again. Throws as
    /// Connection::command.
    [[nodiscard]] std::optional<Reply> finish(Connection& connection, TimePoint until,
                                              const std::stop_token& token) {
        const Wake wake;
        const std::stop_callback wake_up(token, [&] { wake.signal(); });
        return finish(connection, until, wake);
    }
    /// Does the same; `wake` ends the wait in place of a stop.
    [[nodiscard]] std::optional<Reply> finish(Connection& connection, TimePoint until,
                                              const Wake& wake) {
        auto stream = std::move(m_stream);
        std::optional<Reply> reply = stream->wait_for_reply(until, &wake);
        if (reply) {
            KeptStream& line = KeptStream::of(connection);
            line.give_back(std::move(stream));
            line.check_reply(*reply, "", m_name);
        } else {
            m_stream = std::move(stream);
        }
        return reply;
    }

  private:
    std::unique_ptr<Stream> m_stream;
    std::string m_name;
};

} // namespace orizuru::detail
