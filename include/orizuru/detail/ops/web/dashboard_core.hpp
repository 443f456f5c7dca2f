// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The routes of a Dashboard: who may ask for what, and how it is answered.

#include <orizuru/detail/ops/web/dashboard_data.hpp>
#include <orizuru/detail/ops/web/dashboard_json.hpp>
#include <orizuru/detail/ops/web/gatekeeper.hpp>
#include <orizuru/detail/ops/web/http_refusal.hpp>
#include <orizuru/detail/ops/web/page/page.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/ops/dashboard_options.hpp>
#include <orizuru/ops/dashboard_request.hpp>

#include <chrono>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::detail::web {

class DashboardCore {
  public:
    DashboardCore(const Endpoint& endpoint, const DashboardOptions& options)
        : m_read_only(checked(options).read_only),
          m_gatekeeper(options),
          m_data(endpoint, options) {}

    [[nodiscard]] const std::string& token() const noexcept { return m_gatekeeper.token(); }
    [[nodiscard]] Gatekeeper& gatekeeper() noexcept { return m_gatekeeper; }

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
    [[nodiscard]] static const DashboardOptions& checked(const DashboardOptions& options) {
        using namespace std::chrono_literals;
        if (options.refresh < 100ms || options.refresh > 1min) {
            throw std::invalid_argument("DashboardOptions::refresh must be 100 ms to 1 min");
        }
        if (options.history_step < 100ms || options.history_step > 1h) {
            throw std::invalid_argument("DashboardOptions::history_step must be 100 ms to 1 h");
        }
        return options;
    }

    /// Lets nothing run, be shown in a frame, or be kept but what comes from here.
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
        const std::string_view route = std::string_view(request.path).substr(api.size());
        if (get) {
            const bool writes = entry == Entry::write && !m_read_only;
            return read(route, request.query,
                        writes ? DashboardAccess::write : DashboardAccess::read);
        }
        if (request.method != "POST") {
            throw HttpRefusal{405, "only GET and POST"};
        }
        if (m_read_only) {
            throw HttpRefusal{404, "there is no such step"};
        }
        if (!Gatekeeper::is_own_page(request)) {
            throw HttpRefusal{403, "steps are for the page itself"};
        }
        if (entry != Entry::write) {
            throw HttpRefusal{403, "you may only look"};
        }
        return answer(m_data.step(route, request.query));
    }

    [[nodiscard]] DashboardResponse read(std::string_view route, const std::string& query,
                                         DashboardAccess access) {
        if (route == "queues") {
            return answer(m_data.queues(access, query));
        }
        if (route == "history") {
            return answer(m_data.history(query));
        }
        if (route == "queue") {
            return answer(m_data.queue(query));
        }
        if (route == "messages") {
            return answer(m_data.messages(query));
        }
        if (route == "find") {
            return answer(m_data.find(query));
        }
        if (route == "days") {
            return answer(m_data.days(query));
        }
        if (route == "keys" || route == "groups") {
            return answer(m_data.waits(route, query));
        }
        if (route == "key") {
            return answer(m_data.key(query));
        }
        if (route == "workers") {
            return answer(m_data.workers(query));
        }
        if (route == "message") {
            return answer(m_data.message(query));
        }
        if (route == "payload") {
            return {200,
                    {{"Content-Type", "application/octet-stream"},
                     {"Content-Disposition", "attachment; filename=\"payload\""}},
                    m_data.payload(query)};
        }
        throw HttpRefusal{404, "there is no such page"};
    }

    const bool m_read_only;
    Gatekeeper m_gatekeeper;
    DashboardData m_data;
};

} // namespace orizuru::detail::web
