// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Tells whether the node at which a queue's requests go out has the queue, as far as it is known.
// Nodes of a Cluster may pass slots on at any time.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/endpoint.hpp>

#include <cstdint>
#include <string_view>
#include <utility>

namespace orizuru::detail {

class Whereabouts {
  public:
    Whereabouts(const Endpoint& any, std::string_view key) : m_endpoint(Route::to_key(any, key)) {}

    /// Leads to the key.
    [[nodiscard]] const Endpoint& endpoint() const noexcept { return m_endpoint; }
    /// True from a refusal because another node has the key, until the requests go elsewhere.
    [[nodiscard]] bool astray() const noexcept { return m_state == State::elsewhere; }

    /// `teller` has refused with `error`, for which is_astray() holds. Returns false if it had been
    /// referred to by another node, and proved nothing since: nodes may refer to each other.
    [[nodiscard]] [[gnu::cold]] bool stray(std::string_view error, const Node& teller) {
        Route::note_move(m_endpoint, error, teller);
        return std::exchange(m_state, State::elsewhere) == State::here;
    }
    /// From now on requests go to another node, or anew to one for the key.
    void goes_elsewhere() noexcept { m_state = astray() ? State::doubtful : m_state; }
    /// A request has been served.
    void served() noexcept { m_state = m_state == State::doubtful ? State::here : m_state; }
    /// The key is at this node.
    [[gnu::cold]] void found_at(const Node& node) const {
        EndpointParts::of(m_endpoint).place->set(node);
    }

  private:
    enum class State : std::uint8_t {
        here,
        elsewhere,
        doubtful ///< a node was referred to, and has not served yet
    };

    const Endpoint m_endpoint;
    State m_state = State::here;
};

} // namespace orizuru::detail
