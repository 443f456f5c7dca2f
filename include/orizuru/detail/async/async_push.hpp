// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A message on its way, and who is told of its end.

#include <exception>
#include <string>
#include <utility>

namespace orizuru::detail {

class AsyncPush {
  public:
    explicit AsyncPush(std::string payload) noexcept : m_payload(std::move(payload)) {}
    AsyncPush(const AsyncPush&) = delete;
    AsyncPush& operator=(const AsyncPush&) = delete;
    virtual ~AsyncPush() = default;

    [[nodiscard]] const std::string& payload() const noexcept { return m_payload; }
    /// Called once, on the producer's thread. Null: Redis has the message.
    virtual void end(std::exception_ptr error) noexcept = 0;

  private:
    std::string m_payload;
};

} // namespace orizuru::detail
