// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A consumer for the exhaustive search: the library's own mirror, and a user who is handed each
// message as soon as it is there. It cannot be copied, but done again: what it is follows from what
// it was told.

#pragma once

#include "fuzz/model/server.hpp"
#include "fuzz/search/mirror_state.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

/// What a consumer does, or is told.
struct Event {
    enum class Kind : std::uint8_t {
        start,
        adopt,
        wait,        ///< BLMOVE on the other connection
        settle,      ///< what is acked
        fetch,       ///< the same, and two messages more
        suspect,     ///< asks for one
        move,        ///< what is to go elsewhere
        ack,         ///< `which`: of the messages that the user holds
        reject,      ///< the same
        misdirect,   ///< the same, to what is no queue
        answer,      ///< `reply` on the control connection, to what this incarnation sent
        wait_answer, ///< `reply` on the other
        doubt        ///< its heartbeat is fenced, or a connection with something unanswered broke
    };
    Kind kind;
    std::size_t which = 0;
    Reply reply = {};
};

/// What comes of it.
struct Effect {
    Words command = {};      ///< to be sent, if any: on the other connection only by `wait`
    bool recovers = false;   ///< closes the other connection; old replies do not count
    bool reconnects = false; ///< closes the control connection as well
    std::vector<std::string> acked = {}; ///< payloads of acks that said true
};

class SearchConsumer {
  public:
    using State = detail::Mirror::State;

    explicit SearchConsumer(int number)
        : m_mirror(keys(), std::chrono::seconds(60), [number, count = 0]() mutable {
              const std::string name = std::to_string(number) + '-' + std::to_string(++count);
              return detail::Identity{name,
                                      "nonce" + std::to_string(number) + std::to_string(count)};
          }) {}

    static const Keys& keys() {
        static const Keys names("q");
        return names;
    }

    Effect take(const Event& event);
    [[nodiscard]] const detail::Mirror& mirror() const noexcept { return m_mirror; }
    [[nodiscard]] std::string text() const { return text_of(m_mirror); }

    /// What the user holds.
    [[nodiscard]] std::vector<detail::DeliveryPtr> guards() const {
        std::vector<detail::DeliveryPtr> result;
        std::copy_if(m_mirror.messages().begin(), m_mirror.messages().end(),
                     std::back_inserter(result), [](const detail::DeliveryPtr& message) {
                         return message->state == Held::held && message->taken;
                     });
        return result;
    }

  private:
    using Held = detail::Delivery::State;

    void send(const Event& event);
    void want(const Event& event);
    void follow(const detail::Verdict& verdict, Effect& effect);

    detail::TrialShare m_share;
    detail::Mirror m_mirror;
    std::string m_out;
    std::vector<detail::DeliveryPtr> m_acks; ///< of which nothing was said yet
};

inline Effect SearchConsumer::take(const Event& event) {
    using Kind = Event::Kind;
    Effect effect;
    Reply reply = event.reply;
    switch (event.kind) {
    case Kind::answer:
        follow(m_mirror.state() == State::unregistered ? m_mirror.on_start(reply)
               : m_mirror.state() == State::recovering ? m_mirror.on_adopt(reply)
                                                       : m_mirror.on_reply(std::move(reply)),
               effect);
        static_cast<void>(m_mirror.take_recovered());
        break;
    case Kind::wait_answer:
        follow(m_mirror.on_blocking_fetch(std::move(reply)), effect);
        break;
    case Kind::doubt:
        follow({detail::Remedy::recover, {}}, effect);
        break;
    case Kind::ack:
    case Kind::reject:
    case Kind::misdirect:
        want(event);
        break;
    default:
        send(event);
    }
    if (!m_out.empty()) {
        effect.command = words_of(std::exchange(m_out, {}));
        if (effect.command.front() == "EVAL") {
            // By its name: whether Redis knows it already makes no difference here.
            const detail::Sha1Hex sha1 = detail::sha1_hex(effect.command[1]);
            effect.command[0] = "EVALSHA";
            effect.command[1].assign(std::string_view(sha1));
        }
    }
    std::erase_if(m_acks, [&effect](const detail::DeliveryPtr& message) {
        if (message->state == Held::settled) {
            effect.acked.push_back(message->payload);
        }
        return message->state != Held::wanted && message->state != Held::sent;
    });
    while (m_mirror.state() == State::running && m_mirror.has_ready()) {
        static_cast<void>(m_mirror.hand_out());
    }
    return effect;
}

inline void SearchConsumer::send(const Event& event) {
    using Kind = Event::Kind;
    switch (event.kind) {
    case Kind::start:
        m_mirror.send_start(m_out);
        break;
    case Kind::adopt:
        m_mirror.send_adopt(m_out);
        break;
    case Kind::wait:
        m_mirror.send_blocking_fetch(m_out, std::chrono::milliseconds(5000));
        break;
    case Kind::move:
        m_mirror.send_move(m_out);
        break;
    case Kind::suspect:
        if (auto trial = detail::Trials::ask(m_share.trials, m_share.limits)) {
            m_mirror.send_try_suspect(m_out, std::move(trial), m_share.limits);
        }
        break;
    default:
        m_mirror.send_settle(m_out, event.kind == Kind::fetch ? 2 : 0);
    }
}

inline void SearchConsumer::want(const Event& event) {
    const detail::DeliveryPtr message = guards().at(event.which);
    std::unique_ptr<detail::Move> move;
    if (event.kind == Event::Kind::ack) {
        m_acks.push_back(message);
        if (message->trial) {
            move = std::make_unique<detail::Move>(detail::ack_body(), Words{keys().recoveries()},
                                                  Words{}, detail::Move::Recoveries::ended);
        }
    } else {
        const std::string target = event.kind == Event::Kind::reject ? keys().unack() : "no list";
        move = std::make_unique<detail::Move>(detail::push_body(), Words{target}, Words{});
    }
    m_mirror.want(message, std::move(move));
}

inline void SearchConsumer::follow(const detail::Verdict& verdict, Effect& effect) {
    effect.reconnects = verdict.remedy == detail::Remedy::reconnect;
    if (verdict.remedy == detail::Remedy::recover || verdict.remedy == detail::Remedy::reconnect) {
        effect.recovers = m_mirror.state() == State::running;
        m_mirror.begin_recovery(); // nothing, unless it runs
    }
}

} // namespace orizuru::test
