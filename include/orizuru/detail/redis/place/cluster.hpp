// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds the node of a Cluster that has a key: the greeting asks for the key's type, and a node that
// has it not says which has. So there is no map of slots that could be old.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/redis/connect_errors.hpp>
#include <orizuru/detail/redis/place/locator.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class NodeOfKey : public Locator {
  public:
    NodeOfKey(std::shared_ptr<NodeList> nodes, std::shared_ptr<KeyPlace> place)
        : Locator(std::move(nodes)), m_place(std::move(place)) {}

    [[nodiscard]] [[gnu::cold]] Node find(Ask ask, TimePoint deadline) override {
        const std::optional<Node> known = m_place->node();
        return known ? *known : Locator::find(ask, deadline);
    }
    [[nodiscard]] [[gnu::cold]] std::vector<Question> questions() const override {
        std::vector<Question> asked{{type, {}}, {slots_question, {}}};
        append_command(asked[0].bytes, "TYPE", m_place->key());
        append_command(asked[1].bytes, "CLUSTER", "SLOTS");
        return asked;
    }
    [[gnu::cold]] void judge(std::string_view question, const Reply& reply,
                             Server server) override {
        if (question == slots_question) {
            return learn(reply, server.node);
        }
        if (reply.is(Reply::Type::status)) {
            return found(server.node);
        }
        if (!reply.is(Reply::Type::error)) {
            throw ProtocolError(joined({server.address, ": TYPE was not answered by a status"}));
        }
        if (is_redirected(reply.text)) {
            throw WrongServer(joined({server.address, ": ", printable(reply.text)}));
        }
        if (reply.code() == "TRYAGAIN") {
            return found(server.node); // it still has the slot, and not the key
        }
        if (reply.code() == cluster_down) {
            pass_over();
        }
        throw reply_error(joined({server.address, ": ", question}), reply.text);
    }
    [[gnu::cold]] void pass_over() override {
        Locator::pass_over();
        m_place->set(std::nullopt);
    }
    [[gnu::cold]] void note(Reply& error, const Node& teller) override {
        if (error.code() == "MOVED") {
            m_place->set(node_in(error.text, teller));
            error.text += redirected;
        } else if (error.code() == cluster_down && m_found) {
            m_place->set(std::nullopt); // another node may know more
            error.text += redirected;
        } else if (error.code() == "ASK") {
            error.text.insert(0, "TRYAGAIN ");
        }
    }
    void lead_to(const std::shared_ptr<KeyPlace>& place) noexcept override { m_place = place; }

  private:
    static constexpr std::string_view type = "TYPE";
    static constexpr std::string_view slots_question = "CLUSTER SLOTS";

    void found(const Node& node) {
        m_place->set(node);
        m_found = true;
    }
    // Each range has its first and last slot, then nodes: host, port and more. Without the right to
    // ask, the nodes of the address have to do.
    void learn(const Reply& ranges, const Node& teller) {
        if (!ranges.is(Reply::Type::array)) {
            return;
        }
        for (const Reply& range : ranges.elements) {
            for (std::size_t i = 2; i < range.elements.size(); ++i) {
                const std::vector<Reply>& node = range.elements[i].elements;
                if (node.size() < 2) {
                    continue;
                }
                if (auto known = node_of(host_of(node[0].text, teller), Digits(node[1].integer))) {
                    nodes().learn(*std::move(known));
                }
            }
        }
    }

    std::shared_ptr<KeyPlace> m_place;
    bool m_found = false; ///< the greeting is over
};

} // namespace orizuru::detail
