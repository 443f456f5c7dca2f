// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of database.hpp.

#include <orizuru/detail/base/arguments.hpp>

#include <memory>
#include <stdexcept>
#include <utility>

namespace orizuru {

ORIZURU_INLINE Database::Database(std::string_view conninfo, DatabaseOptions options)
    : m_conninfo(std::string(conninfo)),
      m_options(checked(std::move(options))),
      m_idle(std::make_shared<detail::Common<detail::IdleClients>>()) {}

ORIZURU_INLINE DatabaseOptions Database::checked(DatabaseOptions options) {
    const std::string& prefix = options.prefix;
    if (prefix.empty() || prefix.size() > 30 || (prefix[0] >= '0' && prefix[0] <= '9') ||
        prefix.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) {
        throw std::invalid_argument("the prefix '" + prefix.substr(0, 100) +
                                    "' of the tables must be 1 to 30 of the characters a-z "
                                    "0-9 _, with no digit first");
    }
    detail::check_time("patience", options.patience, std::chrono::milliseconds(0));
    return options;
}

} // namespace orizuru
