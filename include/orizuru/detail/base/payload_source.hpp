// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where payloads come from: a function of the caller's, which code that is no template can call.

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>

namespace orizuru::detail {

/// Refers to a function that appends the next payload to a string. It returns false, and what it
/// has appended does not count, when there is none left. Does not own the function.
class PayloadSource {
  public:
    template <class F>
        requires(!std::same_as<std::remove_const_t<F>, PayloadSource> &&
                 std::predicate<F&, std::string&>)
    PayloadSource(F& function)
    noexcept
        : m_function(std::addressof(function)), m_call([](const void* called, std::string& out) {
              return bool((*static_cast<F*>(const_cast<void*>(called)))(out));
          }) {}

    bool operator()(std::string& out) const { return m_call(m_function, out); }

  private:
    const void* m_function;
    bool (*m_call)(const void*, std::string&);
};

} // namespace orizuru::detail
