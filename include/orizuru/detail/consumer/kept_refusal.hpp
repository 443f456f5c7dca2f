// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Keeps an error that only a person can fix, until a call of the user's throws it.

#include <exception>
#include <utility>

namespace orizuru::detail {

class KeptRefusal {
  public:
    void keep(std::exception_ptr refusal) noexcept { m_refusal = std::move(refusal); }
    void forget() noexcept { m_refusal = nullptr; }
    [[nodiscard]] bool kept() const noexcept { return m_refusal != nullptr; }
    /// Throws it, if there is one, and forgets it.
    void rethrow() {
        if (kept()) {
            std::rethrow_exception(std::exchange(m_refusal, nullptr));
        }
    }

  private:
    std::exception_ptr m_refusal;
};

} // namespace orizuru::detail
