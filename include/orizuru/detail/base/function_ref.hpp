// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Passes a caller's function to code that is no template.

#include <memory>
#include <type_traits>
#include <utility>

namespace orizuru::detail {

template <class Signature>
class FunctionRef;

/// Refers to a function object, which must outlive it: use it only for parameters.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
  public:
    template <class F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
    FunctionRef(F&& function) // NOLINT(bugprone-forwarding-reference-overload): constrained
    noexcept
        : m_function(std::addressof(function)),
          m_call([](const void* called, Arguments... arguments) -> Result {
              auto& own = *static_cast<std::remove_reference_t<F>*>(const_cast<void*>(called));
              return static_cast<Result>(own(std::forward<Arguments>(arguments)...));
          }) {}

    Result operator()(Arguments... arguments) const {
        return m_call(m_function, std::forward<Arguments>(arguments)...);
    }

  private:
    const void* m_function;
    Result (*m_call)(const void*, Arguments...);
};

} // namespace orizuru::detail
