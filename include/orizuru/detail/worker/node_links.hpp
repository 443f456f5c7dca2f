// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The links of a worker: one for all its queues, and in a Cluster one for each node that has some
// of them. There, a queue starts on a link of its own, and moves to its node's if there is one.
// When a node refers the queue to another one, since its slot has moved, it moves to the link of
// that node, which is made when it is needed. A link without queues ends.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/endpoint_parts.hpp>
#include <orizuru/detail/consumer/heartbeat.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/redis/place/route.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/keys.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Make it with std::make_shared.
class NodeLinks final : public Homes, public std::enable_shared_from_this<NodeLinks> {
  public:
    explicit NodeLinks(Endpoint endpoint) : m_endpoint(std::move(endpoint)) {}

    /// As start_link(). Any thread.
    [[nodiscard]] std::shared_ptr<Heartbeat> start_of(const Keys& keys);

    // Declared inline, files that only include this do not emit the class.
    inline std::shared_ptr<Heartbeat> of_astray(Lane& lane, Heartbeat& here) override;
    inline std::shared_ptr<Heartbeat> in_place_of(const Heartbeat& here) override;

    /// All queues share one link.
    [[nodiscard]] bool is_only() const noexcept {
        return EndpointParts::of(m_endpoint).address->topology != Topology::cluster;
    }

  private:
    struct Home {
        std::weak_ptr<Heartbeat> heartbeat;
        std::optional<Node> node; ///< that it was last known to lead to
    };

    [[nodiscard]] std::shared_ptr<Heartbeat> at(const Node& node);
    void refresh();

    const Endpoint m_endpoint;
    const std::shared_ptr<std::mutex> m_mutex = std::make_shared<std::mutex>(); ///< all links'
    std::vector<Home> m_homes;       ///< in a Cluster; under the links' mutex
    std::mutex m_making;             ///< guards what follows
    std::weak_ptr<Heartbeat> m_only; ///< elsewhere
};

inline std::shared_ptr<Heartbeat> NodeLinks::start_of(const Keys& keys) {
    const Endpoint to = Route::to_key(m_endpoint, keys.source());
    const TimePoint deadline = deadline_in(to.connect_timeout());
    if (!is_only()) {
        // Not on a link that there is: its node may hang.
        auto own = std::make_shared<Heartbeat>(std::make_shared<Link>(to, deadline, m_mutex),
                                               shared_from_this());
        const Link::Lock lock(*m_mutex);
        m_homes.push_back({own, std::nullopt});
        return own;
    }
    const std::lock_guard making(m_making);
    auto only = m_only.lock();
    if (!only) {
        only = std::make_shared<Heartbeat>(std::make_shared<Link>(to, deadline));
        m_only = only;
    }
    return only;
}

inline std::shared_ptr<Heartbeat> NodeLinks::of_astray(Lane& lane, Heartbeat& here) {
    const std::optional<Node> node = EndpointParts::of(lane.endpoint()).place->node();
    if (auto known = node ? at(*node) : nullptr) {
        return known;
    }
    if (here.has_one_member()) {
        here.link()->lose("the queue is on another node");
        return here.shared_from_this();
    }
    auto heartbeat = std::make_shared<Heartbeat>(std::make_shared<Link>(lane.endpoint(), m_mutex),
                                                 shared_from_this());
    m_homes.push_back({heartbeat, node});
    heartbeat->start();
    return heartbeat;
}

/// Two links can come to the same node after an outage.
inline std::shared_ptr<Heartbeat> NodeLinks::in_place_of(const Heartbeat& here) {
    if (!here.link()->connected()) {
        return nullptr;
    }
    auto first = at(here.link()->server());
    const bool better = first && first.get() != &here && first->link()->connected();
    return better ? first : nullptr;
}

/// The first with members that is connected to the node, or was when it was connected last.
inline std::shared_ptr<Heartbeat> NodeLinks::at(const Node& node) {
    refresh();
    for (const Home& home : m_homes) {
        auto heartbeat = home.heartbeat.lock();
        if (heartbeat && heartbeat->has_members() && home.node == node) {
            return heartbeat;
        }
    }
    return nullptr;
}

inline void NodeLinks::refresh() {
    std::erase_if(m_homes, [](Home& home) {
        const auto heartbeat = home.heartbeat.lock();
        if (heartbeat && heartbeat->link()->connected()) {
            home.node = heartbeat->link()->server();
        }
        return !heartbeat;
    });
}

} // namespace orizuru::detail
