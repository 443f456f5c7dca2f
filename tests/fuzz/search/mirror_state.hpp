// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// All of a mirror that decides what it will do, as text: two mirrors of the same text cannot be
// told apart from then on.

#pragma once

#include "fuzz/simulation/revealed.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/adoption.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/late_requests.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/trial.hpp>

#include <string>

namespace orizuru::test {

inline std::string text_of(const detail::Delivery& message) {
    std::string text = message.payload + '/' + std::to_string(static_cast<int>(message.state)) +
                       '/' + std::to_string(message.version) + '/' +
                       std::to_string(message.failures) + (message.taken ? "h" : "");
    if (message.move != nullptr) {
        for (const std::string& key : message.move->keys) {
            text += '>' + key;
        }
        text += message.move->recoveries == detail::Move::Recoveries::ended ? "e" : "";
    }
    if (message.trial != nullptr) {
        const detail::Trials::Held held = message.trial->others();
        text += '?' + message.trial->field() + ' ' + std::to_string(held.count) + ' ' +
                std::to_string(held.most_blamed);
    }
    return text + (message.refusal.empty() ? " " : "r ");
}

inline std::string text_of(const detail::Adoption& adoption) {
    std::string text = " adopts " + (adoption.*revealed(Target{})).id + " as";
    for (const detail::Identity& identity : adoption.*revealed(Tried{})) {
        text += ' ' + identity.id;
    }
    return text + " header " + (adoption.*revealed(Header{})).value_or("-");
}

inline std::string text_of(const detail::LateRequests& late) {
    return std::to_string(late.*revealed(Unanswered{})) + (late.has_fetch() ? "f " : " ");
}

inline std::string text_of(const detail::Mirror& mirror) {
    std::string text = mirror.identity().id + ' ' +
                       std::to_string(static_cast<int>(mirror.state())) + " late " +
                       text_of(mirror.*revealed(Late{})) + (mirror.blocked() ? "b" : "") +
                       (mirror.*revealed(Draining{}) ? "d " : " ") +
                       std::to_string(mirror.*revealed(Confirmed{})) + " holds ";
    for (const detail::DeliveryPtr& message : mirror.messages()) {
        text += text_of(*message);
    }
    text += "moves ";
    for (const detail::DeliveryPtr& message : mirror.*revealed(Moves{})) {
        text += text_of(*message);
    }
    text += "requests ";
    for (const auto& request : mirror.*revealed(Requests{})) {
        text += std::to_string(static_cast<int>(request.kind)) + '/' +
                std::to_string(request.fetch) + '/' + std::to_string(request.version) + '/' +
                std::to_string(request.messages) + request.failure + ' ';
    }
    const auto& adoption = mirror.*revealed(Adopting{});
    return text + (adoption ? text_of(*adoption) : "");
}

} // namespace orizuru::test
