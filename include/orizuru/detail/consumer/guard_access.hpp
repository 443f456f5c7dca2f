// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Opens guards to code that does not depend on the type of the message.

#include <orizuru/codec.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/consumer/guard_core.hpp>
#include <orizuru/message_guard.hpp>

#include <string_view>

namespace orizuru::detail {

struct GuardAccess {
    /// `decode` returns the message. There is nothing to settle yet.
    template <class T, class Decode>
    [[nodiscard]] static MessageGuard<T> decoded(Decode decode) {
        return MessageGuard<T>(typename MessageGuard<T>::Key(), decode);
    }
    template <class T>
    [[nodiscard]] static MessageGuard<T> decoded(std::string_view payload, Scratch& scratch) {
        return decoded<T>([&] { return detail::decode<T>(payload, scratch); });
    }
    /// Also before there is anything to settle.
    template <class T>
    [[nodiscard]] static const T& message(const MessageGuard<T>& guard) noexcept {
        return guard.message();
    }
    template <class T>
    [[nodiscard]] static GuardCore& core(MessageGuard<T>& guard) noexcept {
        return guard.m_core;
    }
};

} // namespace orizuru::detail
