// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Where Redis is, for an address that does not say it itself.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/function_ref.hpp>
#include <orizuru/detail/base/node_list.hpp>
#include <orizuru/reply.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Answers for one stream the questions on which its place depends.
class Locator {
  public:
    /// The server that is asked, or that a reply comes from, and how errors name it.
    struct Server {
        const Node& node;
        const std::string& address;
    };
    struct Answers {
        std::string address; ///< the one that gave them, for errors
        std::vector<Reply> replies;
    };
    /// Connects to another server, sends the commands and returns so many replies, by the deadline.
    /// Throws as Stream::make does.
    using Ask = FunctionRef<Answers(const Node& node, std::string_view commands,
                                    std::size_t replies, TimePoint deadline)>;

    explicit Locator(std::shared_ptr<NodeList> nodes) : m_nodes(std::move(nodes)) {}
    Locator(const Locator&) = delete;
    Locator& operator=(const Locator&) = delete;
    virtual ~Locator() = default;

    /// Where to connect now.
    [[nodiscard]] [[gnu::cold]] virtual Node find(Ask /*ask*/, TimePoint /*deadline*/) {
        return m_nodes->in_order().front();
    }
    /// The commands that show whether a server is the right one, each as bytes with its name.
    struct Question {
        std::string_view name;
        std::string bytes;
    };
    [[nodiscard]] [[gnu::cold]] virtual std::vector<Question> questions() const { return {}; }
    /// Judges a server by its reply to one of these. Throws WrongServer, if another may be the
    /// right one; ReplyError; ProtocolError.
    [[gnu::cold]] virtual void judge(std::string_view /*question*/, const Reply& /*reply*/,
                                     Server /*server*/) {}
    /// The server is not there, or is not the right one: the next attempt tries another one.
    [[gnu::cold]] virtual void pass_over() { m_nodes->skip_first(); }
    /// Notes what an error of the server says of the place, and marks it if another one is to be
    /// asked (`redirected`) or if the same one is to be asked later.
    [[gnu::cold]] virtual void note(Reply& /*error*/, const Node& /*teller*/) {}
    /// From now on the stream serves another key.
    virtual void lead_to(const std::shared_ptr<KeyPlace>& /*place*/) noexcept {}

  protected:
    [[nodiscard]] NodeList& nodes() const noexcept { return *m_nodes; }

  private:
    std::shared_ptr<NodeList> m_nodes;
};

} // namespace orizuru::detail
