// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Recovers from a doubt: takes over the processing list under a new identity and learns from its
// header which requests ran. Does no I/O. If the reply to ADOPT is lost, ADOPT is sent again for
// the same target under another new identity. The earlier ADOPT's fence then names the new owner.

#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/remedy.hpp>
#include <orizuru/detail/redis/reply_shape.hpp>
#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class Adoption {
  public:
    struct Result {
        std::string header; ///< as the in-doubt requests left it
        /// The messages, oldest first; empty if the list is gone: reaped or released.
        std::optional<std::vector<std::string>> list;
        Identity identity; ///< owns the list, if it was adopted
    };

    explicit Adoption(Identity target) : m_target(std::move(target)) {}

    /// Appends the command. Each call tries a new identity. `fence`: how long the fence stays.
    [[gnu::cold]] void send(std::string& out, const Keys& keys, std::chrono::milliseconds lease,
                            std::chrono::milliseconds fence,
                            const std::function<Identity()>& make_identity) {
        m_result.reset(); // the caller failed to use it
        m_tried.push_back(make_identity());
        const Identity& next = m_tried.back();
        append_command(out, "EVAL", adopt_script(), 5, keys.heartbeat(m_target.id),
                       keys.processing(m_target.id), keys.heartbeat(next.id),
                       keys.processing(next.id), keys.consumers(), m_target.id, next.id,
                       next.header(0), fence.count(), lease.count(), m_target.header_prefix());
    }

    /// Appends a command that measures the list and prolongs its lease; see measure_script().
    [[gnu::cold]] void send_measure(std::string& out, const Keys& keys,
                                    std::chrono::milliseconds lease) const {
        std::vector<std::string> names{keys.heartbeat(m_target.id), keys.processing(m_target.id)};
        for (const Identity& tried : m_tried) {
            names.push_back(keys.heartbeat(tried.id));
            names.push_back(keys.processing(tried.id));
        }
        append_command(out, "EVAL", measure_script(), names.size(), names, lease.count());
    }

    /// Takes the reply to the last `send`. Sets `result()` if no other reply is needed.
    [[gnu::cold]] Verdict on_reply(const Reply& reply) {
        if (!reply.is(Reply::Type::error)) {
            return on_list(reply) ? Verdict{}
                                  : Verdict{Remedy::reconnect, "a reply of the wrong type"};
        }
        if (reply.code() == "FENCED") {
            on_fence(reply.behind_code());
            return {};
        }
        return reply.code() == "BUSYNAME" ? Verdict{} : refused(reply);
    }

    [[nodiscard]] const std::optional<Result>& result() const noexcept { return m_result; }

  private:
    // The first header found is the one that the in-doubt requests wrote. Later ones belong to
    // identities that only passed the list on.
    [[gnu::cold]] void found(std::string_view header) {
        if (!m_header) {
            m_header = header;
        }
    }
    [[gnu::cold]] void finish(std::string_view header,
                              std::optional<std::vector<std::string>> list) {
        found(header);
        m_result = Result{*m_header, std::move(list), m_tried.back()};
    }
    // Parses "adopted <id> <header>", "reaped <header>" or "released <header>".
    [[gnu::cold]] void on_fence(std::string_view text) {
        const auto space = text.rfind(' ');
        const auto header = space == std::string_view::npos ? "" : text.substr(space + 1);
        for (const Identity& tried : m_tried) {
            if (text.starts_with(joined({"adopted ", tried.id, " "}))) {
                found(header);
                m_target = tried;
                return;
            }
        }
        finish(header, std::nullopt);
    }
    [[gnu::cold]] bool on_list(const Reply& reply) {
        if (!reply.is(Reply::Type::array) || reply.elements.size() != 2 ||
            !reply.elements[0].is(Reply::Type::string) || !is_strings(reply.elements[1])) {
            return false;
        }
        const std::vector<Reply>& elements = reply.elements[1].elements; // the newest first
        std::vector<std::string> list(elements.size());
        for (std::size_t i = 0; i < list.size(); ++i) {
            list[i] = elements[list.size() - 1 - i].text;
        }
        finish(reply.elements[0].text, std::move(list));
        return true;
    }

    Identity m_target;
    Fifo<Identity> m_tried;
    std::optional<std::string> m_header;
    std::optional<Result> m_result;
};

} // namespace orizuru::detail
