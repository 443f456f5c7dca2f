// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The next message of a consumer, and who is told of it.

#include <orizuru/detail/consumer/guard_core.hpp>

#include <cstddef>
#include <exception>
#include <string>

namespace orizuru::detail {

/// Has at most one message, in its guard.
class MessageSlot {
  public:
    MessageSlot() = default;
    MessageSlot(const MessageSlot&) = delete;
    MessageSlot& operator=(const MessageSlot&) = delete;
    virtual ~MessageSlot() = default;

    /// See ConsumerCore::Decode.
    virtual GuardCore& decode(const std::string& payload) = 0;
    /// Null when it is empty.
    [[nodiscard]] virtual GuardCore* guard() noexcept = 0;
    virtual void clear() noexcept = 0;
};

/// Waits for the next message. Told once, on the consumer's thread.
class MessageWaiter {
  public:
    MessageWaiter() = default;
    MessageWaiter(const MessageWaiter&) = delete;
    MessageWaiter& operator=(const MessageWaiter&) = delete;
    virtual ~MessageWaiter() = default;

    /// Somebody listens.
    [[nodiscard]] virtual bool listens() const noexcept = 0;
    /// Takes the slot's message; leaves it there if nobody listens any more.
    virtual void take(MessageSlot& slot) noexcept = 0;
    /// There is none, and will be none if `error` is null.
    virtual void end(std::exception_ptr error) noexcept = 0;
};

/// Waits for the end of a flush. Told once, on the consumer's thread.
class FlushWaiter {
  public:
    FlushWaiter() = default;
    FlushWaiter(const FlushWaiter&) = delete;
    FlushWaiter& operator=(const FlushWaiter&) = delete;
    virtual ~FlushWaiter() = default;

    virtual void end(std::size_t late, std::exception_ptr error) noexcept = 0;
};

} // namespace orizuru::detail
