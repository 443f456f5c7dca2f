// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Finds the server of an address with sentinels: asks one after the other where the master is.
// https://redis.io/docs/latest/develop/reference/sentinel-clients has the procedure. The master has
// to confirm its role in the greeting.
//
// In a Cluster the greeting asks for the type of the queue's key, and a node that has it not says
// which has. So there is no map of slots that could be old.

namespace orizuru::detail {

/// Of a sentinel, or the others that it knows of: `name` and its value follow each other.
inline std::string_view field_of(const Reply& reply, std::string_view name) noexcept {
    for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
        if (reply.elements[i].text == name) {
            return reply.elements[i + 1].text;
        }
    }
    return {};
}

/// How long one sentinel or the server may take, so that each of them has its time.
[[nodiscard]] [[gnu::cold]] inline Clock::duration share_of(const Endpoint& endpoint) {
    constexpr std::size_t most = 3; // a large Cluster would leave too little for each
    return endpoint.connect_timeout() /
           static_cast<int>(std::min(most, EndpointParts::of(endpoint).nodes->in_order().size()) +
                            1);
}

[[nodiscard]] [[gnu::cold]] inline Node ask_sentinel(const Endpoint& endpoint, const Node& sentinel,
                                                     TimePoint deadline, const Wake* wake) {
    constexpr std::size_t largest_answer = std::size_t{1} << 20;
    const auto stream = Stream::make(Route::to_sentinel(endpoint, sentinel), deadline, wake);
    stream->limit_input(largest_answer);
    const std::string& service = EndpointParts::of(endpoint).address->service;
    stream->append([&](std::string& out) {
        append_command(out, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", service);
        append_command(out, "SENTINEL", "SENTINELS", service);
    });
    const Reply master = stream->await_reply(deadline, wake);
    const Reply others = stream->await_reply(deadline, wake);
    if (master.is(Reply::Type::error)) {
        throw reply_error(joined({stream->address(), ": SENTINEL"}), master.text);
    }
    if (master.is(Reply::Type::nil)) {
        throw ConnectionError(
            joined({stream->address(), ": the sentinel does not know '", service, "'"}));
    }
    const auto named = is_strings(master) && master.elements.size() == 2
                           ? node_of(master.elements[0].text, master.elements[1].text)
                           : std::nullopt;
    if (!named) {
        throw ProtocolError(joined({stream->address(), ": SENTINEL did not name an address"}));
    }
    for (const Reply& other : others.elements) {
        if (auto node = node_of(field_of(other, "ip"), field_of(other, "port"))) {
            EndpointParts::of(endpoint).nodes->learn(std::move(*node));
        }
    }
    return *named;
}

[[nodiscard]] [[gnu::cold]] inline Node locate(const Endpoint& endpoint, TimePoint deadline,
                                               const Wake* wake) {
    NodeList& sentinels = *EndpointParts::of(endpoint).nodes;
    const std::vector<Node> all = sentinels.in_order();
    const auto share = share_of(endpoint);
    std::string failures;
    std::exception_ptr refusal;
    for (const Node& sentinel : all) {
        if (!failures.empty() && Clock::now() >= deadline) {
            break; // the next attempt asks the others first
        }
        try {
            Node master =
                ask_sentinel(endpoint, sentinel, std::min(deadline, Clock::now() + share), wake);
            sentinels.prefer(sentinel);
            return master;
        } catch (const GivenUp&) {
            throw;
        } catch (const ReplyError& error) {
            refusal = refusal ? refusal : std::current_exception();
            failures += joined({"; ", error.what()});
        } catch (const Error& error) {
            failures += joined({"; ", error.what()});
        }
        sentinels.skip(sentinel);
    }
    if (refusal) {
        std::rethrow_exception(refusal);
    }
    throw ConnectionError(joined({endpoint.address(), ": no sentinel knows a master", failures}));
}

inline void Stream::redirect(Reply& error) {
    if (error.code() == "MOVED") {
        m_place->set(node_in(error.text, m_server));
        error.text += redirected;
    } else if (error.code() == cluster_down && m_nodes == nullptr) {
        m_place->set(std::nullopt); // another node may know more
        error.text += redirected;
    } else if (error.code() == "ASK") {
        error.text.insert(0, "TRYAGAIN ");
    }
}

// Each range has its first and last slot, then nodes: host, port and more. Without the right to
// ask, the nodes of the address have to do.
inline void Stream::learn_nodes(const Reply& slots) const {
    if (m_nodes == nullptr || !slots.is(Reply::Type::array)) {
        return;
    }
    for (const Reply& range : slots.elements) {
        for (std::size_t i = 2; i < range.elements.size(); ++i) {
            const std::vector<Reply>& node = range.elements[i].elements;
            if (node.size() >= 2 && node[1].integer > 0 && node[1].integer <= 65535) {
                m_nodes->learn({std::string(host_of(node[0].text, m_server)),
                                static_cast<int>(node[1].integer)});
            }
        }
    }
}

} // namespace orizuru::detail
