// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Asks sentinels, one after the other, where the master is.
// https://redis.io/docs/latest/develop/reference/sentinel-clients has the procedure. The master has
// to confirm its role in the greeting.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/redis/connect_errors.hpp>
#include <orizuru/detail/redis/place/locator.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Sentinels : public Locator {
  public:
    /// `share`: how long one of them may take. `address`: of all, for errors.
    Sentinels(std::shared_ptr<NodeList> nodes, std::string service, std::string address,
              Clock::duration share)
        : Locator(std::move(nodes)),
          m_service(std::move(service)),
          m_address(std::move(address)),
          m_share(share) {}

    [[nodiscard]] [[gnu::cold]] Node find(Ask ask, TimePoint deadline) override {
        std::string failures;
        std::exception_ptr refusal;
        for (const Node& sentinel : nodes().in_order()) {
            if (!failures.empty() && Clock::now() >= deadline) {
                break; // the next attempt asks the others first
            }
            try {
                return ask_one(ask, sentinel, std::min(deadline, Clock::now() + m_share));
            } catch (const GivenUp&) {
                throw;
            } catch (const ReplyError& error) {
                refusal = refusal ? refusal : std::current_exception();
                failures += joined({"; ", error.what()});
            } catch (const Error& error) {
                failures += joined({"; ", error.what()});
            }
            nodes().skip(sentinel);
        }
        if (refusal) {
            std::rethrow_exception(refusal);
        }
        throw ConnectionError(joined({m_address, ": no sentinel knows a master", failures}));
    }
    [[nodiscard]] [[gnu::cold]] std::vector<Question> questions() const override {
        Question role{"ROLE", {}};
        append_command(role.bytes, "ROLE");
        return {std::move(role)};
    }
    [[gnu::cold]] void judge(std::string_view question, const Reply& reply,
                             Server server) override {
        if (reply.is(Reply::Type::error)) {
            if (may_not(reply)) {
                return; // READONLY tells of a replica
            }
            throw reply_error(joined({server.address, ": ", question}), reply.text);
        }
        if (!reply.is(Reply::Type::array) || reply.elements.empty()) {
            throw ProtocolError(joined({server.address, ": ROLE was not answered by a role"}));
        }
        if (reply.elements[0].text != "master") {
            pass_over();
            throw WrongServer(
                joined({server.address, ": a sentinel took it for the master, which it is not"}));
        }
    }

  private:
    static constexpr std::size_t questions_to_one = 2;

    /// Returns the value of a field: in what a sentinel says, names and values follow each other.
    static std::string_view field_of(const Reply& reply, std::string_view name) noexcept {
        for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
            if (reply.elements[i].text == name) {
                return reply.elements[i + 1].text;
            }
        }
        return {};
    }
    [[nodiscard]] [[gnu::cold]] Node ask_one(Ask ask, const Node& sentinel, TimePoint deadline);

    std::string m_service;
    std::string m_address;
    Clock::duration m_share;
};

inline Node Sentinels::ask_one(Ask ask, const Node& sentinel, TimePoint deadline) {
    std::string commands;
    append_command(commands, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", m_service);
    append_command(commands, "SENTINEL", "SENTINELS", m_service);
    const auto [address, replies] = ask(sentinel, commands, questions_to_one, deadline);
    const Reply& master = replies[0];
    if (master.is(Reply::Type::error)) {
        throw reply_error(joined({address, ": SENTINEL"}), master.text);
    }
    if (master.is(Reply::Type::nil)) {
        throw ConnectionError(joined({address, ": the sentinel does not know '", m_service, "'"}));
    }
    const auto named = is_strings(master) && master.elements.size() == 2
                           ? node_of(master.elements[0].text, master.elements[1].text)
                           : std::nullopt;
    if (!named) {
        throw ProtocolError(joined({address, ": SENTINEL did not name an address"}));
    }
    for (const Reply& other : replies[1].elements) {
        if (auto node = node_of(field_of(other, "ip"), field_of(other, "port"))) {
            nodes().learn(std::move(*node));
        }
    }
    return *named;
}

} // namespace orizuru::detail
