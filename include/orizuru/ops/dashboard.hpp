// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A web page on all queues: their numbers, workers and messages. It pauses queues, and runs, moves
// and removes messages. serve.hpp puts it behind a small HTTP server.
//
// Needs nlohmann/json (nlohmann-json3-dev), its headers only. With ORIZURU_SEPARATE_COMPILATION,
// src.hpp leaves this out, so that programs without a page do without it. A program that uses it
// also includes <orizuru/ops/src.hpp> in one of its translation units.

#include <orizuru/detail/base/config.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/ops/dashboard_options.hpp>
#include <orizuru/ops/dashboard_request.hpp>

#include <memory>
#include <stop_token>
#include <string>

namespace orizuru {

struct ServeOptions;

namespace detail::web {
class DashboardCore;
}

/// A web page on all queues, as a function from requests to responses for any HTTP server. Mount it
/// at "/" or at any path that ends with "/": the page's links are relative. All members may be
/// called from several threads.
///
/// A thread of its own reads the numbers of all queues for all viewers: for up to 100 queues a
/// script, O(queues + consumers), and TIME, as DashboardOptions::refresh says, and a script as
/// history_step says; in a Cluster for each queue. The page shows 50 queues at a time. Lists of
/// messages are read as they are asked for, at most once a second each. While Redis is away, it is
/// asked again and again, and the page says so.
///
/// Each response forbids all content but its own, frames and caching. A request whose Host is not
/// one of DashboardOptions::hosts is refused. The page itself is open, as it has no data. All data
/// need the token, as `Authorization: Bearer`, or the consent of `authorize`; above ten wrong
/// tokens a second the answer is 429. What changes something is a POST, with a header X-Orizuru and
/// from a page of the same origin. There are no cookies. No response has the password of Redis.
class Dashboard {
  public:
    /// Throws std::invalid_argument for a token, a host or a time that cannot be. Does not wait for
    /// Redis.
    explicit Dashboard(const Endpoint& endpoint, const DashboardOptions& options = {});
    Dashboard(const Dashboard&) = delete;
    Dashboard& operator=(const Dashboard&) = delete;
    /// Waits for a running command, at most connect_timeout and command_timeout.
    ~Dashboard();

    /// Answers one request; an error is an answer, too. Blocks at most connect_timeout and
    /// command_timeout for each command, and not while Redis is known to be away. Throws
    /// std::bad_alloc only.
    [[nodiscard]] DashboardResponse handle(const DashboardRequest& request);

    /// The token that allows its holder all that `read_only` leaves: that of the options, or one
    /// that was drawn at random. Valid as long as the dashboard.
    [[nodiscard]] const std::string& token() const noexcept;
    /// The page's address with the token in its fragment, which browsers do not send; `origin` is
    /// where it is mounted, such as "http://127.0.0.1:8080".
    [[nodiscard]] std::string link(const std::string& origin) const;

  private:
    friend void serve(Dashboard& dashboard, const std::string& address, const std::stop_token& stop,
                      const ServeOptions& options);

    /// From now on browsers may reach the page at this address, too.
    void add_host(const std::string& address);
    /// The first of DashboardOptions::hosts, or nothing.
    [[nodiscard]] std::string first_host() const;

    std::unique_ptr<detail::web::DashboardCore> m_core;
};

} // namespace orizuru

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/ops/dashboard.ipp>
#endif
