// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Reads Redis for a Dashboard, by the queries of requests, and has it changed.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/place_name.hpp>
#include <orizuru/detail/ops/places.hpp>
#include <orizuru/detail/ops/web/dashboard_json.hpp>
#include <orizuru/detail/ops/web/dashboard_steps.hpp>
#include <orizuru/detail/ops/web/dead_messages.hpp>
#include <orizuru/detail/ops/web/http_refusal.hpp>
#include <orizuru/detail/ops/web/keys_and_groups_rows.hpp>
#include <orizuru/detail/ops/web/listed_messages.hpp>
#include <orizuru/detail/ops/web/listed_rows.hpp>
#include <orizuru/detail/ops/web/message_view.hpp>
#include <orizuru/detail/ops/web/queue_sampler.hpp>
#include <orizuru/detail/ops/web/queue_selection.hpp>
#include <orizuru/detail/ops/web/recent_answers.hpp>
#include <orizuru/detail/ops/web/worker_rows.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/ops/dashboard_options.hpp>
#include <orizuru/ops/inspector.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail::web {

/// For several threads. The texts are JSON. All throw HttpRefusal, and what an Inspector throws.
class DashboardData {
  public:
    DashboardData(const Endpoint& endpoint, const DashboardOptions& options)
        : m_refresh(options.refresh),
          m_endpoint(endpoint),
          m_view(options),
          m_recent(
              std::min<std::chrono::milliseconds>(options.refresh / 2, std::chrono::seconds(1))),
          m_inspector(endpoint),
          m_sampler(endpoint, options) {}

    /// A page of queues, as QueueSelection chooses them, and the sums of all that it chooses. Does
    /// not wait for Redis.
    [[nodiscard]] std::string queues(DashboardAccess access, const std::string& query) {
        const auto sample = m_sampler.latest();
        const QueueSelection chosen(*sample, query);
        Json rows = Json::array();
        for (const QueueSample::Row* const row : chosen.page()) {
            rows.push_back(json_of(*row));
        }
        const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - sample->time);
        const bool known = sample->time != std::chrono::steady_clock::time_point{};
        return json_text({{"redis", m_endpoint.address()},
                          {"sample", sample->number},
                          {"age", known ? Json(age.count()) : Json()},
                          {"refresh", m_refresh.count()},
                          {"failure", sample->failure},
                          {"notice", sample->notice},
                          {"writes", access == DashboardAccess::write},
                          {"all", sample->rows.size()},
                          {"count", chosen.rows().size()},
                          {"first", chosen.first()},
                          {"sums", sums_of(chosen.rows())},
                          {"queues", std::move(rows)}});
    }

    /// The sparklines of the same page, and how fast all that are chosen go on. Does not wait for
    /// Redis.
    [[nodiscard]] std::string history(const std::string& query) {
        const auto sample = m_sampler.latest();
        const QueueSelection chosen(*sample, query);
        return json_of(m_sampler.history(chosen.page()), m_sampler.last_step(chosen.rows()));
    }

    /// The numbers of a queue that need not be one of those.
    [[nodiscard]] std::string queue(const std::string& query) {
        return shared("queue?", query, [&] {
            return json_text(json_of({m_inspector.state(parameter(query, "queue")), {}}));
        });
    }

    /// A page of a place, of large messages a part of one, in small steps, so that few of these are
    /// in memory; of the dead also those with an error.
    [[nodiscard]] std::string messages(const std::string& query) {
        const std::string queue = parameter(query, "queue");
        const auto place = to_place(parameter(query, "place"));
        const auto first = whole_number(query_value(query, "first").value_or("0"));
        if (!place || !first || *first > farthest) {
            throw HttpRefusal{400, "there is no such place"};
        }
        const std::string reason = query_value(query, "reason").value_or("");
        if (!reason.empty() && (place != Place::dead || *first > 0)) {
            throw HttpRefusal{400,
                              "only dead messages are chosen by their error, from the first on"};
        }
        if (!reason.empty()) {
            return shared("messages?", query, [&] { return json_text(dead_with(queue, reason)); });
        }
        return shared("messages?", query, [&] {
            const QueueState state = m_inspector.state(queue);
            ListedRows rows(m_listed, m_view, queue, page_size);
            bool more = true;
            ChunkSize chunk(some, 1);
            for (std::int64_t at = 0; more && !rows.full();) {
                const auto count = static_cast<std::int64_t>(
                    std::min(page_size - rows.size(), std::size_t{chunk.next()}));
                auto found =
                    m_inspector.peek(queue, *place, static_cast<std::int64_t>(*first) + at, count);
                more = std::ssize(found) == count;
                at += count;
                std::size_t size = 0;
                for (PlacedMessage& message : found) {
                    size += message.bytes.size();
                    more = !rows.add(std::move(message)) || more;
                }
                chunk.learn(found.size(), size);
            }
            return json_text({{"messages", std::move(rows).take()},
                              {"more", more},
                              {"count", count_in(state, *place)},
                              {"until", json_of(state.now)}});
        });
    }

    /// The messages of a job, usually one.
    [[nodiscard]] std::string find(const std::string& query) {
        constexpr std::int64_t most = 10'000; // of each place
        constexpr std::size_t shown = 100;
        const std::string queue = parameter(query, "queue");
        return shared("find?", query, [&] {
            auto found = m_inspector.find(queue, parameter(query, "job"), most);
            const std::size_t count = found.size();
            auto rows = listed_rows(queue, std::move(found), shown);
            const bool more = rows.size() < count;
            return json_text({{"messages", std::move(rows)}, {"more", more}});
        });
    }

    /// A page of a queue's `keys` or `groups`.
    [[nodiscard]] std::string waits(std::string_view route, const std::string& query) {
        const std::string queue = parameter(query, "queue");
        const auto first = whole_number(query_value(query, "first").value_or("0"));
        if (!first || *first > farthest) {
            throw HttpRefusal{400, "there is no such page"};
        }
        return shared(joined({route, "?"}), query, [&] {
            const auto begin = static_cast<std::int64_t>(*first);
            return json_text(route == "keys" ? key_rows(m_inspector, queue, begin)
                                             : group_rows(m_inspector, queue, begin));
        });
    }

    /// The job of a key that is out, usually one.
    [[nodiscard]] std::string key(const std::string& query) {
        const std::string queue = parameter(query, "queue");
        return shared("key?", query, [&] {
            auto found = m_inspector.key(queue, parameter(query, "key")).value_or(KeyState());
            return json_text({{"messages", listed_rows(queue, std::move(found.out), page_size)}});
        });
    }

    /// Lists those of a queue, or of all; of very many those that are found within half a second.
    [[nodiscard]] std::string workers(const std::string& query) {
        return shared("workers?", query, [&] {
            std::vector<std::string> queues;
            if (auto queue = query_value(query, "queue")) {
                queues.push_back(std::move(*queue));
            } else {
                const auto sample = m_sampler.latest(); // outlives the loop
                for (const QueueSample::Row& row : sample->rows) {
                    if (row.state.consumers > 0) {
                        queues.push_back(row.state.queue);
                    }
                }
            }
            return json_text(worker_rows(m_inspector, queues));
        });
    }

    /// Returns how the jobs of a queue have ended on each of the last days.
    [[nodiscard]] std::string days(const std::string& query) {
        return shared("days?", query, [&] {
            constexpr int month = 30;
            Json rows = Json::array();
            for (const DayCounts& day : m_inspector.days(parameter(query, "queue"), month)) {
                rows.push_back(json_of(day));
            }
            return json_text({{"days", std::move(rows)}});
        });
    }

    /// A message as it was listed.
    [[nodiscard]] std::string message(const std::string& query) const {
        const std::string id = parameter(query, "id");
        return json_text(m_view.whole(id, *listed(m_listed, id)));
    }
    [[nodiscard]] std::string payload(const std::string& query) const {
        if (!m_view.shows_bytes()) {
            throw HttpRefusal{404, "payloads are not shown"};
        }
        const auto message = listed(m_listed, parameter(query, "id"));
        return std::string(MessageView::payload(*message, message->message.job()));
    }

    /// Takes one of DashboardSteps: adds which sample shows it at the latest.
    [[nodiscard]] std::string step(std::string_view name, const std::string& query) {
        expect_redis();
        const std::lock_guard lock(m_asking);
        Json answer = DashboardSteps(m_inspector, m_endpoint, m_listed).take(name, query);
        m_recent.forget();
        answer["sample"] = m_sampler.renew();
        return json_text(answer);
    }

  private:
    static constexpr std::size_t page_size = 50;
    static constexpr std::uint64_t some = 10;
    /// No list is read farther: Redis would have to walk to what is there.
    static constexpr std::uint64_t farthest = 100'000;

    /// One viewer asks, the others have the answer.
    template <class Make>
    [[nodiscard]] std::string shared(std::string_view route, const std::string& query, Make make) {
        const std::string question = joined({route, query});
        if (auto known = m_recent.find(question)) {
            return std::move(*known);
        }
        expect_redis();
        const std::lock_guard lock(m_asking);
        if (auto known = m_recent.find(question)) {
            return std::move(*known);
        }
        std::string text = make();
        m_recent.keep(question, text);
        return text;
    }
    /// Fails at once while Redis is away.
    void expect_redis() {
        if (const auto sample = m_sampler.latest(); !sample->failure.empty()) {
            throw HttpRefusal{503, sample->failure};
        }
    }

    /// The newest of the dead with an error, and how many there are.
    [[nodiscard]] Json dead_with(const std::string& queue, const std::string& reason) {
        const DeadFilter filter(reason, m_inspector.state(queue).now);
        ChosenDead chosen = list_dead(m_inspector, queue, filter, page_size);
        Json rows = listed_rows(queue, std::move(chosen.first), page_size);
        const bool more = rows.size() < chosen.count;
        return {{"messages", std::move(rows)},
                {"more", more},
                {"count", chosen.count},
                {"allCounted", chosen.all_counted},
                {"until", json_of(filter.until())}};
    }
    /// The first of them.
    [[nodiscard]] Json listed_rows(const std::string& queue, std::vector<PlacedMessage> messages,
                                   std::size_t most) {
        ListedRows rows(m_listed, m_view, queue, most);
        for (PlacedMessage& message : messages) {
            if (!rows.add(std::move(message))) {
                break;
            }
        }
        return std::move(rows).take();
    }

    const std::chrono::milliseconds m_refresh;
    const Endpoint m_endpoint;
    const MessageView m_view;
    ListedMessages m_listed;
    RecentAnswers m_recent;
    std::mutex m_asking;
    Inspector m_inspector; // under m_asking
    QueueSampler m_sampler;
};

} // namespace orizuru::detail::web
