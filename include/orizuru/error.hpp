// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What can go wrong, as types: one for each thing that a caller would do differently.
// Wrong arguments are std::invalid_argument, wrong use (settling twice) is std::logic_error;
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

    /// How many messages of the failed `push_all` are certainly in the queue, counted from the
    /// first without a gap; 0 for all else.
    [[nodiscard]] std::uint64_t pushed() const noexcept { return m_pushed; }

  private:
    friend struct detail::PushCount;

    std::uint64_t m_pushed = 0;
};

/// Redis could not be reached, or the connection broke or timed out. The connection is closed;
/// the object that threw makes a new one at its next use.
class ConnectionError : public Error {
  public:
    enum class Outcome {
        not_run, ///< the command did not reach Redis
        in_doubt ///< the command may or may not have run
    };

    explicit ConnectionError(const std::string& what, Outcome outcome = Outcome::not_run)
        : Error(what), m_outcome(outcome) {}

    /// True when the command may have run: a repeated push may then be a duplicate.
    [[nodiscard]] bool in_doubt() const noexcept { return m_outcome == Outcome::in_doubt; }

  private:
    Outcome m_outcome;
};

/// Redis refused the command and did not run it. The connection stays open, unless another server
/// may answer at the address by now (READONLY, MASTERDOWN): then the next use connects anew.
class ReplyError : public Error {
  public:
    [[gnu::cold]] ReplyError(std::string code, const std::string& what)
        : Error(what), m_code(std::make_shared<const std::string>(std::move(code))) {}

    /// The first word of Redis' error, e.g. "OOM", "WRONGTYPE", "NOPERM".
    [[nodiscard]] const std::string& code() const noexcept { return *m_code; }

  private:
    std::shared_ptr<const std::string> m_code; // copying an exception must not throw
};

/// Redis (or what answers in its place) sent a reply that the command cannot have, or bytes that
/// are no reply. The connection is closed; whether the command ran is unknown.
class ProtocolError : public Error {
    using Error::Error;
};

/// The message cannot be sent: its Codec threw, or its payload is over `max_payload`. Nothing of
/// it was sent.
class EncodeError : public Error {
    using Error::Error;
};

/// A message could not be decoded, or its payload is over `max_payload`. It is on the dead list
/// already; `next()` can be called again.
class DecodeError : public Error {
  public:
    [[gnu::cold]] DecodeError(const std::string& what, std::string payload)
        : Error(what), m_payload(std::make_shared<const std::string>(std::move(payload))) {}

    /// The raw bytes; valid as long as this exception or a copy of it.
    [[nodiscard]] std::string_view payload() const noexcept { return *m_payload; }

  private:
    // Shared, because copying an exception must not throw and must not double a large payload.
    std::shared_ptr<const std::string> m_payload;
};

} // namespace orizuru
