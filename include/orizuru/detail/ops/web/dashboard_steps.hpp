// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Changes Redis for a Dashboard, by the queries of requests.

#include <orizuru/detail/ops/web/dashboard_json.hpp>
#include <orizuru/detail/ops/web/dead_messages.hpp>
#include <orizuru/detail/ops/web/http_refusal.hpp>
#include <orizuru/detail/ops/web/listed_messages.hpp>
#include <orizuru/detail/ops/web/percent.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/ops/inspector.hpp>

#include <string>
#include <string_view>

namespace orizuru::detail::web {

/// Returns the message with this id. Throws HttpRefusal when newer
/// ones have pushed it out.
[[nodiscard]] inline ListedMessages::Handle listed(const ListedMessages& messages,
                                                   const std::string& id) {
    auto found = messages.find(id);
    if (!found) {
        throw HttpRefusal{404, "the message was listed too long ago"};
    }
    return found;
}

/// For one thread. Throws HttpRefusal, and what an Inspector throws.
class DashboardSteps {
  public:
    DashboardSteps(Inspector& inspector, const Endpoint& endpoint, const ListedMessages& messages)
        : m_inspector(inspector), m_endpoint(endpoint), m_messages(messages) {}

    /// Says whether it was done; of `clear` and `run-all` also how many it has changed, and whether
    /// it has to be taken again, `until` the same time.
    [[nodiscard]] Json take(std::string_view name, const std::string& query) const {
        return name == "clear"     ? change_dead_of(query, DeadStep::remove)
               : name == "run-all" ? change_dead_of(query, DeadStep::run)
                                   : Json{{"done", change(name, query)}};
    }

  private:
    /// A step on all dead messages, or on those with an error.
    [[nodiscard]] Json change_dead_of(const std::string& query, DeadStep step) const {
        if (parameter(query, "place") != "dead") {
            throw HttpRefusal{400, "only dead messages are changed all at once"};
        }
        const std::string queue = parameter(query, "queue");
        auto until = time_parameter(query, "until");
        until = until ? until : m_inspector.state(queue).now;
        const DeadFilter filter(query_value(query, "reason").value_or(""), until);
        const DeadStepResult result = change_dead(m_inspector, queue, step, filter);
        return {{"done", result.changed > 0},
                {"changed", result.changed},
                {"more", result.more},
                {"until", json_of(until)}};
    }
    [[nodiscard]] bool change(std::string_view name, const std::string& query) const {
        if (name == "pause" || name == "resume") {
            Pause pause(m_endpoint, parameter(query, "queue"));
            name == "pause" ? pause.pause() : pause.resume();
            return true;
        }
        if (name == "forget") {
            return m_inspector.forget(parameter(query, "queue"));
        }
        if (name != "run" && name != "remove" && name != "move" && name != "cancel") {
            throw HttpRefusal{404, "there is no such step"};
        }
        const auto message = listed(m_messages, parameter(query, "id"));
        if (name == "move") {
            return m_inspector.move(message->queue, message->message, parameter(query, "to"));
        }
        if (name == "cancel") {
            const auto job = message->message.job();
            if (!job) {
                throw HttpRefusal{400, "it is no job"};
            }
            return m_inspector.cancel(message->queue, job->id,
                                      query_value(query, "reason").value_or("")) !=
                   CancelResult::not_found;
        }
        return name == "run" ? m_inspector.run_now(message->queue, message->message)
                             : m_inspector.remove(message->queue, message->message);
    }

    Inspector& m_inspector;
    const Endpoint& m_endpoint;
    const ListedMessages& m_messages;
};

} // namespace orizuru::detail::web
