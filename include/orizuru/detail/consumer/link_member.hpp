// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The interface of a link to the queues that share it: each takes the replies to its own requests.

#include <orizuru/detail/base/linked_list.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string_view>

namespace orizuru::detail {

/// The link calls these under its lock.
class LinkMember : public Linked {
  public:
    /// Why a request is sent.
    enum class Purpose : std::uint8_t {
        none,    ///< a command that is no member's request
        start,   ///< registers the consumer
        seek,    ///< asks whether the connection of a blocking fetch in doubt is gone
        measure, ///< asks how large the list is whose adoption ends the connection
        adopt,   ///< takes over the consumer's own list after a doubt
        chain    ///< settles or fetches
    };

    /// Takes the reply to a request. Acts on the verdict as far as it concerns the queue, and
    /// returns it for the link's part.
    virtual Verdict on_reply(Purpose purpose, Reply&& reply) = 0;
    /// The connection breaks, if there is one: requests without a reply are in doubt.
    virtual void on_broken(std::string_view reason) noexcept = 0;
    /// The connection ended behind the request to adopt, and no other member was adopting on it.
    virtual void on_cut_adoption() noexcept = 0;
    /// No connection can be made, or the connection broke while it was in use.
    virtual void on_outage(std::string_view reason) noexcept = 0;
    /// Connected. `repair` describes the outage that this ends; empty if there was none.
    virtual void on_connected(std::string_view repair) noexcept = 0;
    /// Redis refuses the connection, and only a person can help.
    virtual void on_refused(const std::exception_ptr& refusal) noexcept = 0;
    /// Taking a reply threw: only Redis can tell what the list holds.
    virtual void on_failed_reply(std::string_view reason) noexcept = 0;

    /// Where a connection for the member has to lead.
    [[nodiscard]] virtual const Endpoint& endpoint() const noexcept = 0;
    /// For how long a refusal may hold it back.
    [[nodiscard]] virtual std::chrono::milliseconds longest_backoff() const noexcept = 0;
    /// Grows with each recovery. Replies to requests of an earlier incarnation do not count.
    [[nodiscard]] virtual std::uint64_t incarnation() const noexcept = 0;

  protected:
    LinkMember() = default;
    ~LinkMember() = default;
};

} // namespace orizuru::detail
