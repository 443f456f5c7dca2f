// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The errors: one type for each way in which a caller would react.
// Wrong arguments throw std::invalid_argument and wrong use (settling twice) std::logic_error;
// neither derives from Error.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

namespace detail {
struct PushCount;
}

/// Base of everything that this library throws because of Redis, the network or a payload.
///
/// what() names the command, the key or the address; never a password, never a payload.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;

    /// Returns how many messages of the failed `push_all` are certainly in the queue, counted from
    /// the first without a gap; 0 for other operations.
    [[nodiscard]] std::uint64_t pushed() const noexcept { return m_pushed; }

  private:
    friend struct detail::PushCount;

    std::uint64_t m_pushed = 0;
};

/// Records how many messages a failed push_all has certainly pushed.
struct detail::PushCount {
    static void set(Error& error, std::uint64_t pushed) noexcept { error.m_pushed = pushed; }
};

/// Redis could not be reached, the connection broke or timed out, or too few replicas have a push.
/// The object that threw reconnects at its next use where it has to.
class ConnectionError : public Error {
  public:
    /// Says if the command may have run.
    enum class Outcome {
        not_run, ///< the command did not reach Redis
        in_doubt ///< the command may or may not have run
    };

    /// Takes the text for what(). By default, the command has not run.
    explicit ConnectionError(const std::string& what, Outcome outcome = Outcome::not_run)
        : Error(what), m_outcome(outcome) {}

    /// True when the command may have run: repeating a push may then duplicate its messages.
    [[nodiscard]] bool in_doubt() const noexcept { return m_outcome == Outcome::in_doubt; }

  private:
    Outcome m_outcome;
};

/// Redis refused the command and did not run it. The connection stays open, unless another server
/// may now answer at the address (READONLY, MASTERDOWN): then the next use reconnects.
class ReplyError : public Error {
  public:
    /// Takes the first word of Redis' error as the code, and the text for what().
    [[gnu::cold]] ReplyError(std::string code, const std::string& what)
        : Error(what), m_code(std::make_shared<const std::string>(std::move(code))) {}

    /// The first word of Redis' error, e.g. "OOM", "WRONGTYPE", "NOPERM".
    [[nodiscard]] const std::string& code() const noexcept { return *m_code; }

  private:
    std::shared_ptr<const std::string> m_code; // copying an exception must not throw
};

/// Redis refused this one message for itself, whatever is pushed with it: it is longer than the
/// server's proto-max-bulk-len. It was not pushed. Its producer goes on, by a new connection.
class RefusedError : public ReplyError {
  public:
    /// `payload` has the bytes of the refused message; the others are as for ReplyError.
    [[gnu::cold]] RefusedError(std::string code, const std::string& what, std::string payload)
        : ReplyError(std::move(code), what),
          m_payload(std::make_shared<const std::string>(std::move(payload))) {}

    /// The message's bytes; they live as long as this exception or a copy of it.
    [[nodiscard]] std::string_view payload() const noexcept { return *m_payload; }

  private:
    std::shared_ptr<const std::string> m_payload; // as DecodeError's
};

/// Redis, or another server in its place, sent a reply that the command cannot have, or bytes that
/// are no reply. The connection is closed; whether the command ran is unknown.
class ProtocolError : public Error {
    using Error::Error;
};

/// The message cannot be sent: its Codec threw, or it is over `max_payload`. None of it was sent.
class EncodeError : public Error {
    using Error::Error;
};

/// A message could not be decoded, or its payload is over `max_payload`. It is already on the dead
/// list; you can call `next()` again.
class DecodeError : public Error {
  public:
    /// Takes the text for what(), and the bytes of the message.
    [[gnu::cold]] DecodeError(const std::string& what, std::string payload)
        : Error(what), m_payload(std::make_shared<const std::string>(std::move(payload))) {}

    /// The raw bytes; they live as long as this exception or a copy of it.
    [[nodiscard]] std::string_view payload() const noexcept { return *m_payload; }

  private:
    // Shared, because copying an exception must not throw and must not double a large payload.
    std::shared_ptr<const std::string> m_payload;
};

} // namespace orizuru
