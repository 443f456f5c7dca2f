// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A pointer to what a public object owns. It is null once that object was moved from: using the
// object then throws std::logic_error, which names it.

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace orizuru::detail {

/// A text as a template's argument.
template <std::size_t Size>
struct Word {
    // NOLINTNEXTLINE(google-explicit-constructor)
    consteval Word(const char (&letters)[Size]) { std::copy_n(letters, Size, text); }

    char text[Size]{};
};

[[noreturn]] [[gnu::cold]] inline void throw_moved_from(const std::string& owner) {
    throw std::logic_error("the " + owner + " was moved from");
}

/// `Pointer`: std::unique_ptr or std::shared_ptr. `Owner`: the object in words.
template <class Pointer, Word Owner>
class Owned {
  public:
    Owned() = default;
    // NOLINTNEXTLINE(google-explicit-constructor)
    Owned(Pointer pointer) noexcept : m_pointer(std::move(pointer)) {}

    [[nodiscard]] auto& operator*() const {
        if (!m_pointer) {
            throw_moved_from(Owner.text);
        }
        return *m_pointer;
    }
    [[nodiscard]] auto* operator->() const { return &**this; }

  private:
    Pointer m_pointer;
};

} // namespace orizuru::detail
