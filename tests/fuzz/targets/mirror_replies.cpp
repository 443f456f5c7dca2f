// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A consumer's mirror, driven as the library drives it and answered by anything: a message counts
// as settled only when the reply to its request, or the header that recovery found, says so; what
// was fetched is what the reply brought; nothing is sent while a refused chain drains. Only what
// says that the connection is of no more use asks to close it; any other doubt is the mirror's own.
//
// input: what is done next, and the replies.

#include "input.hpp"
#include "mirror_model.hpp"
#include "replies.hpp"
#include "target.hpp"

#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/mirror/delivery.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mirror_replies_target {

using namespace orizuru::detail;
using namespace orizuru::test;
using namespace std::chrono_literals;
using orizuru::Keys;
using orizuru::Reply;
using S = Delivery::State;
using Type = Reply::Type;

class Driver {
  public:
    explicit Driver(Input& input) : m_input(input) {}

    void run() {
        while (!m_input.empty() && m_mirror.state() != Mirror::State::left) {
            m_out.clear();
            switch (m_mirror.state()) {
            case Mirror::State::unregistered:
                start();
                break;
            case Mirror::State::recovering:
                adopt();
                break;
            default:
                step();
                break;
            }
            check_mirror();
        }
    }

  private:
    Identity make_identity() {
        const std::string number = std::to_string(++m_made);
        return {"id" + number, "n" + number};
    }
    /// A payload, a header of one of the last identities, or any bytes.
    [[nodiscard]] std::string text(Input& input) const {
        const std::size_t kind = input.below(8);
        if (kind < 3) {
            return {"abc"[kind]};
        }
        return kind < 7 ? header(input) : input.text();
    }
    [[nodiscard]] std::string header(Input& input) const {
        return "orz:n" + std::to_string(m_made - static_cast<int>(input.below(3))) + ":" +
               std::to_string(input.below(8));
    }
    Reply reply() {
        return any_reply(m_input, [this](Input& input) { return text(input); });
    }

    void start() {
        m_mirror.send_start(m_out);
        const Reply answer = reply();
        const Verdict verdict = m_mirror.on_start(answer);
        const bool registered = answer.is(Type::integer) && answer.integer == 1;
        check(registered == (m_mirror.state() == Mirror::State::running), "registered by 1 only");
        check(registered == (verdict.remedy == Remedy::none), "or something is to be done");
        m_chain = {};
    }

    void step() {
        switch (m_input.below(10)) {
        case 0:
            if (DeliveryPtr message = m_mirror.hand_out()) {
                m_handed_out.push_back(std::move(message));
            }
            break;
        case 1:
            want(nullptr);
            break;
        case 2:
            want(std::make_unique<Move>(push_body(), std::vector{m_mirror.keys().unack()},
                                        std::vector<std::string>()));
            break;
        case 3:
            settle(0);
            break;
        case 4:
            settle(1 + m_input.below(4));
            break;
        case 5:
            if (m_mirror.can_move() && m_mirror.has_moves()) {
                send(Request::Kind::move, 0, [this] { m_mirror.send_move(m_out); });
            }
            break;
        case 6:
            if (!m_mirror.blocked() && !m_mirror.fetching()) {
                m_mirror.send_blocking_fetch(m_out, 5s);
            }
            break;
        case 7:
            release();
            break;
        case 8:
            receive_blocking_fetch();
            break;
        default:
            receive();
            break;
        }
    }

    void want(std::unique_ptr<Move> move) {
        std::erase_if(m_handed_out,
                      [](const DeliveryPtr& message) { return message->state != S::held; });
        if (!m_handed_out.empty()) {
            m_mirror.want(m_handed_out[m_input.below(m_handed_out.size())], std::move(move));
        }
    }

    void settle(std::size_t fetch) {
        if (m_mirror.can_send() && !(fetch > 0 && m_mirror.blocked()) &&
            m_mirror.messages().size() < 100) {
            send(Request::Kind::settle, fetch,
                 [&] { m_mirror.send_settle(m_out, static_cast<int>(fetch)); });
        }
    }

    void release() {
        if (m_mirror.can_send() && !m_mirror.blocked() && !m_mirror.fetching()) {
            send(Request::Kind::release, 0, [this] { m_mirror.send_release(m_out); });
        }
    }

    template <class Send>
    void send(Request::Kind kind, std::size_t fetch, Send send) {
        check(!m_chain.draining(), "nothing is sent while a refused chain drains");
        const std::vector<DeliveryPtr> before = in_state(S::sent);
        send();
        std::vector<DeliveryPtr> messages = in_state(S::sent);
        std::erase_if(messages, [&](const DeliveryPtr& message) {
            return std::ranges::count(before, message) > 0;
        });
        m_chain.send(kind, fetch, std::move(messages));
    }

    [[nodiscard]] std::vector<DeliveryPtr> in_state(S state) const {
        std::vector<DeliveryPtr> found;
        for (const DeliveryPtr& message : m_mirror.messages()) {
            if (message->state == state) {
                found.push_back(message);
            }
        }
        return found;
    }

    void receive() {
        if (m_chain.requests().empty()) {
            recover(); // as when the connection is lost
            return;
        }
        const Request request = m_chain.requests().front();
        const Reply answer = reply();
        const std::size_t before = m_mirror.messages().size();
        Reply given = answer;
        const Verdict verdict = m_mirror.on_reply(std::move(given));
        const bool fetched = request.confirmed_by(answer);
        const bool ran = fetched || request.half_confirmed_by(answer);
        for (const DeliveryPtr& message : request.messages) {
            check((message->state == S::settled) == ran, "settled by the exact reply only");
        }
        const std::size_t settled = ran ? request.messages.size() : 0;
        check_tail(before - settled, fetched ? answer.elements : std::vector<Reply>());
        const bool closes = !ran && (refers_elsewhere(answer) || !answer.is(Type::error));
        check((verdict.remedy == Remedy::reconnect) == closes,
              "a role change and an odd reply close the connection, nothing else does");
        if (verdict.remedy == Remedy::recover || closes) {
            check(!ran, "what ran is in no doubt");
            if (refers_elsewhere(answer)) {
                m_chain.answered(false); // nor is what was refused
            }
            recover();
            return;
        }
        check(ran || answer.is(Type::error), "a wrong reply leads to recovery");
        m_chain.answered(ran);
        check(!m_chain.draining() || !m_mirror.can_send(), "a refused chain answers first");
    }

    void receive_blocking_fetch() {
        if (!m_mirror.blocked()) {
            return;
        }
        const Reply answer = reply();
        const std::size_t before = m_mirror.messages().size();
        Reply given = answer;
        const Verdict verdict = m_mirror.on_blocking_fetch(std::move(given));
        const bool fetched = answer.is(Type::string);
        check_tail(before, fetched ? std::vector{answer} : std::vector<Reply>());
        check((fetched || answer.is(Type::nil)) == (verdict.remedy == Remedy::none),
              "a message or none");
        check((verdict.remedy == Remedy::reconnect) == refers_elsewhere(answer),
              "a role change is told");
        if (verdict.remedy == Remedy::recover || verdict.remedy == Remedy::reconnect) {
            recover();
        }
    }

    /// Of `size` messages the mirror had before, and those that came.
    void check_tail(std::size_t size, const std::vector<Reply>& came) const {
        const auto& messages = m_mirror.messages();
        check(messages.size() == size + came.size(), "what came is there, what is settled is not");
        for (std::size_t i = 0; i < came.size(); ++i) {
            check(messages[size + i]->payload == came[i].text, "fetched in the reply's order");
        }
    }

    void recover() {
        const std::uint64_t incarnation = m_mirror.incarnation();
        m_mirror.begin_recovery();
        check(m_mirror.incarnation() == incarnation + 1, "later replies can be told apart");
        m_chain.cut();
        m_doubt = {{m_mirror.messages().begin(), m_mirror.messages().end()}, m_mirror.identity()};
    }

    void adopt() {
        m_mirror.send_adopt(m_out);
        m_doubt.tried.push_back("id" + std::to_string(m_made));
        const Reply answer = m_input.below(2) == 0 ? adoption() : reply();
        const std::optional<std::string> header = m_doubt.header_in(answer);
        m_mirror.on_adopt(answer);
        const auto recovered = m_mirror.take_recovered();
        check(recovered.has_value() == header.has_value(), "a list or a fence ends a recovery");
        if (recovered) {
            conclude(m_doubt.first_header.value_or(*header), *recovered);
        }
    }

    /// Something like what ADOPT returns.
    Reply adoption() {
        if (m_input.below(2) == 0) {
            const std::size_t how = m_input.below(3);
            const std::string fence =
                how == 0
                    ? "reaped "
                    : (how == 1 ? "released "
                                : "adopted id" + std::to_string(m_made - m_input.below(3)) + " ");
            return {Type::error, 0, "FENCED " + fence + header(m_input), {}};
        }
        Reply list{Type::array, 0, {}, {}};
        for (std::size_t left = m_input.below(8); left > 0; --left) {
            list.elements.push_back({Type::string, 0, text(m_input), {}});
        }
        return {Type::array, 0, {}, {{Type::string, 0, header(m_input), {}}, list}};
    }

    void conclude(std::string_view header, const Recovered& recovered) {
        const auto version = m_chain.version_in(header, m_doubt.identity);
        for (const Request& request : m_chain.requests()) {
            const bool ran = version && request.version <= *version;
            for (const DeliveryPtr& message : request.messages) {
                check((message->state == S::settled) == ran, "settled by the header only");
            }
        }
        for (const DeliveryPtr& message : m_doubt.messages) {
            const bool kept = std::ranges::count(m_mirror.messages(), message) == 1;
            const bool lost = std::ranges::count(recovered.lost, message) == 1;
            check((message->state == S::settled) + kept + lost == 1, "settled, kept or lost");
            check(lost == (message->state == S::lost), "what is lost is told");
        }
        for (const DeliveryPtr& message : recovered.surfaced) {
            check(std::ranges::count(m_mirror.messages(), message) == 1, "what surfaced is there");
        }
        m_chain = {};
    }

    void check_mirror() const {
        for (const DeliveryPtr& message : m_mirror.messages()) {
            check(message->state != S::settled && message->state != S::lost,
                  "what is done with is not held");
        }
        if (m_mirror.state() == Mirror::State::running) {
            check(m_mirror.unanswered() == !m_chain.requests().empty(),
                  "each request is answered once");
        }
    }

    Input& m_input;
    int m_made = 0;
    Mirror m_mirror{Keys("queue"), 30s, [this] { return make_identity(); }};
    std::string m_out;
    std::vector<DeliveryPtr> m_handed_out;
    Chain m_chain;
    Doubt m_doubt;
};

const orizuru::test::Target target("mirror_replies", [](Input input) { Driver(input).run(); });

} // namespace mirror_replies_target
