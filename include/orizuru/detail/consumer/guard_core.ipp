// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of guard_core.hpp.

#include <orizuru/detail/base/joined.hpp>
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
    if (settled()) {
        throw std::logic_error("the message is settled already");
    }
    return *m_session;
}

/// In the process that made it.
ORIZURU_INLINE Session& GuardCore::own_session() const {
    Session& session = this->session();
    session.refuse_fork();
    return session;
}

ORIZURU_INLINE std::string_view GuardCore::payload() const {
    check_not_moved_from();
    const Burst* const burst = this->burst();
    return burst != nullptr && burst->done > 0 ? burst->payload : m_delivery->payload;
}

ORIZURU_INLINE void refuse_awaited(Delivery::Awaited by) {
    if (by == Delivery::Awaited::by_burst) {
        throw std::logic_error("the jobs of a burst are settled together, and none by a guard of "
                               "its own: let its handler return or throw");
    }
    throw std::logic_error(joined({by == Delivery::Awaited::by_key
                                       ? "the job has its turn in the order of its key"
                                       : "the job is a member of a group, which waits for its end",
                                   ": let its handler return or throw, or put it off or release "
                                   "it, but do not end it by its guard"}));
}

ORIZURU_INLINE void GuardCore::refuse_if_awaited() const {
    if (!awaited(Delivery::Awaited::by_nobody) && !moved_from()) {
        refuse_awaited(m_delivery->awaited);
    }
}

/// Throws for a guard that cannot be settled.
ORIZURU_INLINE Settlement GuardCore::moving(const Script& script, std::vector<std::string> keys,
                                            std::vector<std::string> args, std::string_view what,
                                            Move::Recoveries recoveries) const {
    static_cast<void>(own_session());
    return {std::make_unique<Move>(script, std::move(keys), std::move(args), recoveries), what};
}

ORIZURU_INLINE Settlement GuardCore::acking() const {
    refuse_if_awaited();
    const Keys& keys = own_session().keys();
    if (suspected()) {
        // Where the reply to its fetch was lost, only Redis knows the field of its count.
        return moving(ack_body(), {keys.recoveries()}, {}, "acking");
    }
    return {nullptr, "acking"};
}

ORIZURU_INLINE Settlement GuardCore::rejecting() const {
    return moving(push_body(), {keys().unack()}, {}, "rejecting");
}

ORIZURU_INLINE Settlement GuardCore::releasing() const {
    const Keys& keys = this->keys();
    return moving(release_body(), {suspected() ? keys.suspects() : keys.source()}, {}, "releasing");
}

ORIZURU_INLINE Settlement GuardCore::releasing(std::string replacement) const {
    Settlement settlement = releasing();
    settlement.move->args.push_back(std::move(replacement));
    return settlement;
}

ORIZURU_INLINE Settlement GuardCore::pushing(std::string_view queue) const {
    refuse_if_awaited();
    return moving(push_body(), {Keys(std::string(queue)).source()}, {}, "pushing");
}

ORIZURU_INLINE Settlement GuardCore::pushing(std::string_view queue,
                                             std::string replacement) const {
    refuse_if_awaited();
    return moving(push_body(), {Keys(std::string(queue)).source()}, {std::move(replacement)},
                  "pushing");
}

ORIZURU_INLINE Settlement GuardCore::burying(std::string_view reason) const {
    if (awaited(Delivery::Awaited::by_key)) {
        refuse_awaited(Delivery::Awaited::by_key);
    }
    Settlement settlement = moving(bury_body(), {keys().dead()}, {std::string(reason)}, "burying");
    settlement.burial = std::make_unique<const std::string>(reason);
    return settlement;
}

ORIZURU_INLINE Settlement GuardCore::settling(const Script& script, std::vector<std::string> keys,
                                              std::vector<std::string> args) const {
    refuse_if_awaited();
    return passing_on(script, std::move(keys), std::move(args));
}

ORIZURU_INLINE Settlement GuardCore::passing_on(const Script& script, std::vector<std::string> keys,
                                                std::vector<std::string> args) const {
    return moving(script, std::move(keys), std::move(args), "settling", Move::Recoveries::ended);
}

ORIZURU_INLINE Settlement GuardCore::putting_off(const Script& script,
                                                 std::vector<std::string> keys,
                                                 std::vector<std::string> args) const {
    return moving(script, std::move(keys), std::move(args), "settling");
}

ORIZURU_INLINE bool GuardCore::ack() {
    static_cast<void>(own_session());
    refuse_if_awaited();
    if (m_delivery->deferred_ack.give()) {
        m_session = nullptr; // it may be gone by now
        m_burial = nullptr;
        return true;
    }
    return settle(acking());
}

ORIZURU_INLINE bool GuardCore::ack_later() {
    Session& session = own_session();
    if (suspected() || session.options().ack == AckMode::deferred) {
        return ack();
    }
    m_session = nullptr; // it may be gone behind this
    m_burial = nullptr;
    return session.ack_later(m_delivery);
}

ORIZURU_INLINE bool GuardCore::settle(Settlement settlement) {
    Session& session = this->session();
    return end(std::move(settlement.burial), [&] {
        return session.settle(m_delivery, std::move(settlement.move), settlement.what);
    });
}

ORIZURU_INLINE void GuardCore::begin(Settlement settlement) {
    session().begin(m_delivery, std::move(settlement.move));
    m_delivery->settling.begin();
    m_burial = std::move(settlement.burial);
}

ORIZURU_INLINE void GuardCore::send_begun() noexcept { m_session->send_due(); }

ORIZURU_INLINE bool GuardCore::finish(std::string_view what) {
    return end(std::move(m_burial), [&] { return m_session->finish(m_delivery, what); });
}

/// Waits for the end of a settlement.
template <class End>
bool GuardCore::end(std::unique_ptr<const std::string> burial, End end) {
    m_burial = nullptr;
    try {
        const bool done = end();
        m_session = nullptr;
        if (done) {
            m_burial = std::move(burial);
        }
        return done;
    } catch (const ReplyError&) {
        m_delivery->settling.forget();
        throw;
    } catch (...) {
        m_session = nullptr;
        throw;
    }
}

ORIZURU_INLINE const std::string* GuardCore::buried() const noexcept {
    using Stage = AwaitedSettling::Stage;
    const bool ended = m_session == nullptr || m_delivery->settling.stage() == Stage::done;
    return ended ? m_burial.get() : nullptr;
}

ORIZURU_INLINE const Keys& GuardCore::keys() const { return session().keys(); }

ORIZURU_INLINE std::int64_t GuardCore::max_payload() const {
    return session().options().max_payload;
}

ORIZURU_INLINE bool GuardCore::held() const { return !settled() && m_session->holds(m_delivery); }

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
    using Stage = AwaitedSettling::Stage;
    Session* const session = std::exchange(m_session, nullptr);
    AwaitedSettling& settling = m_delivery->settling;
    const bool told =
        settling.abandon() || settling.stage() == Stage::done || settling.stage() == Stage::ended;
    if (!told) {
        session->abandon(m_delivery);
    }
}

} // namespace orizuru::detail
