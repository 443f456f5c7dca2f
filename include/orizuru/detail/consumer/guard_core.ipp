// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of guard_core.hpp.

#include <orizuru/detail/consumer/session.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/error.hpp>

#include <new>
#include <stdexcept>

namespace orizuru::detail {

ORIZURU_INLINE void GuardCore::check_not_moved_from() const {
    if (moved_from()) {
        throw std::logic_error("the message guard was moved from");
    }
}

ORIZURU_INLINE Session& GuardCore::session() const {
    check_not_moved_from();
    if (m_session == nullptr) {
        throw std::logic_error("the message is settled already");
    }
    return *m_session;
}

ORIZURU_INLINE std::string_view GuardCore::payload() const {
    check_not_moved_from();
    return m_delivery->payload;
}

ORIZURU_INLINE bool GuardCore::ack() {
    session().refuse_fork();
    if (m_delivery->deferred_ack.give()) {
        m_session = nullptr; // it may be gone by now
        return true;
    }
    if (suspected()) {
        // Where the reply to its fetch was lost, only Redis knows the field of its count.
        return move_to(ack_body(), {keys().recoveries()}, {}, "acking");
    }
    return settle_by(nullptr, "acking");
}

ORIZURU_INLINE bool GuardCore::ack_later() {
    if (suspected() || session().options().ack == AckMode::deferred) {
        return ack();
    }
    session().refuse_fork();
    // It may be gone behind this.
    return std::exchange(m_session, nullptr)->ack_later(m_delivery);
}

ORIZURU_INLINE bool GuardCore::reject() {
    return move_to(push_body(), {keys().unack()}, {}, "rejecting");
}

ORIZURU_INLINE bool GuardCore::release() {
    const Keys& keys = this->keys();
    return move_to(release_body(), {suspected() ? keys.suspects() : keys.source()}, {},
                   "releasing");
}

ORIZURU_INLINE bool GuardCore::push(std::string_view queue) {
    return move_to(push_body(), {Keys(std::string(queue)).source()}, {}, "pushing");
}

ORIZURU_INLINE bool GuardCore::push(std::string_view queue, std::string replacement) {
    return move_to(push_body(), {Keys(std::string(queue)).source()}, {std::move(replacement)},
                   "pushing");
}

ORIZURU_INLINE bool GuardCore::bury(std::string_view reason) {
    auto burial = std::make_unique<const std::string>(reason);
    const bool done = move_to(bury_body(), {keys().dead()}, {*burial}, "burying");
    if (done) {
        m_burial = std::move(burial);
    }
    return done;
}

ORIZURU_INLINE bool GuardCore::settle(const Script& script, std::vector<std::string> keys,
                                      std::vector<std::string> args) {
    return move_to(script, std::move(keys), std::move(args), "settling", Move::Recoveries::ended);
}

ORIZURU_INLINE bool GuardCore::put_off(const Script& script, std::vector<std::string> keys,
                                       std::vector<std::string> args) {
    return move_to(script, std::move(keys), std::move(args), "settling");
}

ORIZURU_INLINE const Keys& GuardCore::keys() const { return session().keys(); }

ORIZURU_INLINE std::int64_t GuardCore::max_payload() const {
    return session().options().max_payload;
}

ORIZURU_INLINE bool GuardCore::held() const {
    return m_session != nullptr && m_session->holds(m_delivery);
}

ORIZURU_INLINE bool GuardCore::move_to(const Script& script, std::vector<std::string> keys,
                                       std::vector<std::string> args, std::string_view what,
                                       Move::Recoveries recoveries) {
    return settle_by(std::make_unique<Move>(script, std::move(keys), std::move(args), recoveries),
                     what);
}

ORIZURU_INLINE bool GuardCore::settle_by(std::unique_ptr<Move> move, std::string_view what) {
    Session& session = this->session();
    session.refuse_fork();
    try {
        const bool done = session.settle(m_delivery, std::move(move), what);
        m_session = nullptr;
        return done;
    } catch (const ReplyError&) {
        throw;
    } catch (...) {
        m_session = nullptr;
        throw;
    }
}

ORIZURU_INLINE void GuardCore::put_back(Fifo<GivenUp> messages) noexcept {
    while (!messages.empty()) {
        Session* const session = messages.front().session;
        const auto is_its = [=](const GivenUp& given) { return given.session == session; };
        try {
            Fifo<DeliveryPtr> all;
            for (const GivenUp& given : messages) {
                if (is_its(given)) {
                    all.push_back(given.message);
                }
            }
            messages.erase_if(is_its);
            session->put_back(all);
        } catch (const std::bad_alloc&) {
            put_back(messages.pop_front());
        }
    }
}

ORIZURU_INLINE void GuardCore::put_back(const GivenUp& given) noexcept {
    given.session->put_back(given.message);
}

ORIZURU_INLINE void GuardCore::abandon() noexcept {
    std::exchange(m_session, nullptr)->abandon(m_delivery);
}

} // namespace orizuru::detail
