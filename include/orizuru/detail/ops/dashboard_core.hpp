// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The routes of a Dashboard.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/ops/dashboard_json.hpp>
#include <orizuru/detail/ops/gatekeeper.hpp>
#include <orizuru/detail/ops/listed_messages.hpp>
#include <orizuru/detail/ops/page/page.hpp>
#include <orizuru/detail/ops/percent.hpp>
#include <orizuru/detail/ops/queue_sampler.hpp>
#include <orizuru/detail/ops/recent_answers.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/jobs/pause.hpp>
#include <orizuru/ops/dashboard_options.hpp>
#include <orizuru/ops/dashboard_request.hpp>
#include <orizuru/ops/inspector.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// An answer other than 200, thrown by what finds out.
struct HttpRefusal {
    int status;
    std::string reason;
};

class DashboardCore {
  public:
    DashboardCore(Endpoint endpoint, DashboardOptions options)
        : m_options(checked(std::move(options))),
          m_endpoint(endpoint),
          m_gatekeeper(m_options),
          m_view(m_options),
          m_inspector(endpoint),
          m_sampler(std::move(endpoint), m_options),
          m_recent(std::min<std::chrono::milliseconds>(m_options.refresh / 2,
                                                       std::chrono::seconds(1))) {}

    [[nodiscard]] const std::string& token() const noexcept { return m_gatekeeper.token(); }

    [[nodiscard]] DashboardResponse handle(const DashboardRequest& request) {
        DashboardResponse response;
        try {
            response = respond(request);
        } catch (const HttpRefusal& refusal) {
            response = refused(refusal.status, refusal.reason);
        } catch (const std::invalid_argument& error) {
            response = refused(400, error.what());
        } catch (const ConnectionError& error) {
            response = refused(503, error.what());
        } catch (const Error& error) {
            response = refused(502, error.what());
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& error) {
            response = refused(500, error.what());
        }
        protect(response);
        return response;
    }

  private:
    static constexpr std::int64_t page_size = 50;
    /// No list is read farther: Redis would have to walk to what is there.
    static constexpr std::uint64_t farthest = 100'000;

    [[nodiscard]] static DashboardOptions checked(DashboardOptions options) {
        using namespace std::chrono_literals;
        if (options.refresh < 100ms || options.refresh > 1min) {
            throw std::invalid_argument("DashboardOptions::refresh must be 100 ms to 1 min");
        }
        if (options.history_step < 100ms || options.history_step > 1h) {
            throw std::invalid_argument("DashboardOptions::history_step must be 100 ms to 1 h");
        }
        return options;
    }

    /// Nothing but what comes from here runs, is shown in a frame, or is kept.
    static void protect(DashboardResponse& response) {
        response.headers.insert(
            response.headers.end(),
            {{"Content-Security-Policy",
              "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
              "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
              "require-trusted-types-for 'script'; trusted-types 'none'"},
             {"X-Content-Type-Options", "nosniff"},
             {"X-Frame-Options", "DENY"},
             {"Referrer-Policy", "no-referrer"},
             {"Cross-Origin-Resource-Policy", "same-origin"},
             {"Cross-Origin-Opener-Policy", "same-origin"},
             {"Cache-Control", "no-store"}});
    }
    [[nodiscard]] static DashboardResponse answer(std::string json) {
        return {200, {{"Content-Type", "application/json"}}, std::move(json)};
    }
    [[nodiscard]] static DashboardResponse refused(int status, std::string_view reason) {
        DashboardResponse response = answer(json_text({{"error", reason}}));
        response.status = status;
        if (status == 401) {
            response.headers.emplace_back("WWW-Authenticate", "Bearer");
        }
        if (status == 429) {
            response.headers.emplace_back("Retry-After", "1");
        }
        return response;
    }

    [[nodiscard]] DashboardResponse respond(const DashboardRequest& request) {
        if (!m_gatekeeper.is_ours(request)) {
            throw HttpRefusal{403, "the page does not go by the name in the header Host"};
        }
        const bool get = request.method == "GET";
        if (const PageFile* const file = page_file(request.path)) {
            if (!get) {
                throw HttpRefusal{405, "only GET"};
            }
            return {200, {{"Content-Type", std::string(file->type)}}, std::string(file->text)};
        }
        constexpr std::string_view api = "/api/";
        if (!request.path.starts_with(api)) {
            throw HttpRefusal{404, "there is no such page"};
        }
        const Entry entry = m_gatekeeper.entry_of(request);
        if (entry == Entry::too_many) {
            throw HttpRefusal{429, "too many wrong tokens"};
        }
        if (entry == Entry::none) {
            throw HttpRefusal{401, "the token is wrong, or there is none"};
        }
        const bool writes = entry == Entry::write && !m_options.read_only;
        const std::string_view route = std::string_view(request.path).substr(api.size());
        if (get) {
            return read(route, request.query, writes);
        }
        if (request.method != "POST") {
            throw HttpRefusal{405, "only GET and POST"};
        }
        if (m_options.read_only) {
            throw HttpRefusal{404, "there is no such step"};
        }
        if (!Gatekeeper::is_own_page(request)) {
            throw HttpRefusal{403, "steps are for the page itself"};
        }
        if (!writes) {
            throw HttpRefusal{403, "you may only look"};
        }
        return step(route, request.query);
    }

    [[nodiscard]] DashboardResponse read(std::string_view route, const std::string& query,
                                         bool writes) {
        if (route == "queues") {
            return answer(queues(writes));
        }
        if (route == "history") {
            return answer(m_recent.get("history", [&] { return history(); }));
        }
        if (route == "message") {
            const std::string id = parameter(query, "id");
            return answer(json_text(m_view.whole(id, *listed(id))));
        }
        if (route == "payload") {
            return download(*listed(parameter(query, "id")));
        }
        if (route == "queue") {
            return answer(shared(route, query, [&] {
                return json_text(
                    json_of(QueueSample::Row{m_inspector.state(parameter(query, "queue")), {}}));
            }));
        }
        if (route == "messages") {
            return answer(shared(route, query, [&] { return messages(query); }));
        }
        if (route == "workers") {
            return answer(shared(route, query, [&] { return workers(query); }));
        }
        throw HttpRefusal{404, "there is no such page"};
    }

    template <class Make>
    [[nodiscard]] std::string shared(std::string_view route, const std::string& query, Make make) {
        return m_recent.get(joined({route, "?", query}), [&] {
            expect_redis();
            const std::lock_guard lock(m_asking);
            return make();
        });
    }

    [[nodiscard]] std::string queues(bool writes) {
        const auto sample = m_sampler.latest();
        const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - sample->time);
        Json rows = Json::array();
        for (const QueueSample::Row& row : sample->rows) {
            rows.push_back(json_of(row));
        }
        const bool known = sample->time != std::chrono::steady_clock::time_point{};
        return json_text({{"redis", m_endpoint.address()},
                          {"sample", sample->number},
                          {"age", known ? Json(age.count()) : Json()},
                          {"refresh", m_options.refresh.count()},
                          {"failure", sample->failure},
                          {"writes", writes},
                          {"queues", std::move(rows)}});
    }

    [[nodiscard]] std::string history() const {
        const auto [points, histories] = m_sampler.history();
        Json queues = Json::object();
        for (const auto& [queue, history] : histories) {
            Json line = Json::array();
            for (const auto& point : history) {
                line.push_back(point ? Json(*point) : Json());
            }
            queues[percent_encoded(queue)] = std::move(line);
        }
        return json_text({{"points", points},
                          {"step", m_options.history_step.count()},
                          {"most", QueueSampler::most_points},
                          {"queues", std::move(queues)}});
    }

    /// In small steps, so that few large messages are in memory.
    [[nodiscard]] std::string messages(const std::string& query) {
        const std::string queue = parameter(query, "queue");
        const auto place = place_named(parameter(query, "place"));
        const auto first = whole_number(query_value(query, "first").value_or("0"));
        if (!place || !first || *first > farthest) {
            throw HttpRefusal{400, "there is no such place"};
        }
        constexpr std::int64_t some = 10;
        constexpr std::size_t enough = std::size_t{8} << 20;
        Json rows = Json::array();
        std::size_t bytes = 0;
        bool more = true;
        for (std::int64_t at = 0; more && at < page_size && bytes < enough; at += some) {
            auto found =
                m_inspector.peek(queue, *place, static_cast<std::int64_t>(*first) + at, some);
            more = std::ssize(found) == some;
            for (PlacedMessage& message : found) {
                bytes += message.bytes.size();
                const auto kept = m_listed.keep(queue, std::move(message));
                rows.push_back(m_view.row(kept.first, *kept.second));
            }
        }
        return json_text({{"messages", std::move(rows)}, {"more", more}});
    }

    /// Of a queue, or of all.
    [[nodiscard]] std::string workers(const std::string& query) {
        std::vector<std::string> queues;
        if (const auto queue = query_value(query, "queue")) {
            queues.push_back(*queue);
        } else {
            for (const QueueSample::Row& row : m_sampler.latest()->rows) {
                if (row.state.consumers > 0) {
                    queues.push_back(row.state.queue);
                }
            }
        }
        Json rows = Json::array();
        for (const std::string& queue : queues) {
            for (const ConsumerState& consumer : m_inspector.consumers(queue)) {
                rows.push_back(json_of(queue, consumer));
            }
        }
        return json_text({{"workers", std::move(rows)}});
    }

    [[nodiscard]] DashboardResponse download(const ListedMessage& message) const {
        if (!m_view.shows_bytes()) {
            throw HttpRefusal{404, "payloads are not shown"};
        }
        return {200,
                {{"Content-Type", "application/octet-stream"},
                 {"Content-Disposition", "attachment; filename=\"payload\""}},
                std::string(MessageView::payload(message, message.message.job()))};
    }

    [[nodiscard]] DashboardResponse step(std::string_view route, const std::string& query) {
        expect_redis();
        const std::lock_guard lock(m_asking);
        bool done = true;
        if (route == "pause") {
            Pause(m_endpoint, parameter(query, "queue")).pause();
        } else if (route == "resume") {
            Pause(m_endpoint, parameter(query, "queue")).resume();
        } else if (route == "forget") {
            done = m_inspector.forget(parameter(query, "queue"));
        } else if (route == "run") {
            const auto message = listed(parameter(query, "id"));
            done = m_inspector.run_now(message->queue, message->message);
        } else if (route == "remove") {
            const auto message = listed(parameter(query, "id"));
            done = m_inspector.remove(message->queue, message->message);
        } else {
            throw HttpRefusal{404, "there is no such step"};
        }
        m_recent.forget();
        return answer(json_text({{"done", done}, {"sample", m_sampler.renew()}}));
    }

    [[nodiscard]] static std::string parameter(std::string_view query, std::string_view name) {
        auto value = query_value(query, name);
        if (!value) {
            throw HttpRefusal{400, joined({"the parameter ", name, " is missing"})};
        }
        return std::move(*value);
    }
    [[nodiscard]] ListedMessages::Handle listed(const std::string& id) const {
        auto found = m_listed.find(id);
        if (!found) {
            throw HttpRefusal{404, "the message was listed too long ago"};
        }
        return found;
    }
    /// Fails at once while Redis is away.
    void expect_redis() {
        if (const auto sample = m_sampler.latest(); !sample->failure.empty()) {
            throw HttpRefusal{503, sample->failure};
        }
    }

    const DashboardOptions m_options;
    const Endpoint m_endpoint;
    Gatekeeper m_gatekeeper;
    MessageView m_view;
    ListedMessages m_listed;
    std::mutex m_asking;
    Inspector m_inspector; // under m_asking
    QueueSampler m_sampler;
    RecentAnswers m_recent;
};

} // namespace orizuru::detail
