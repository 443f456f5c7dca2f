// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of dashboard.hpp.

#include <orizuru/detail/ops/web/dashboard_core.hpp>

namespace orizuru {

ORIZURU_INLINE Dashboard::Dashboard(const Endpoint& endpoint, const DashboardOptions& options)
    : m_core(std::make_unique<detail::web::DashboardCore>(endpoint, options)) {}

ORIZURU_INLINE Dashboard::~Dashboard() = default;

ORIZURU_INLINE DashboardResponse Dashboard::handle(const DashboardRequest& request) {
    return m_core->handle(request);
}

ORIZURU_INLINE const std::string& Dashboard::token() const noexcept { return m_core->token(); }

ORIZURU_INLINE std::string Dashboard::link(const std::string& origin) const {
    return origin + "/#token=" + token();
}

ORIZURU_INLINE void Dashboard::add_host(const std::string& address) {
    m_core->gatekeeper().add_host(address);
}

ORIZURU_INLINE std::string Dashboard::first_host() const {
    return m_core->gatekeeper().first_host();
}

} // namespace orizuru
