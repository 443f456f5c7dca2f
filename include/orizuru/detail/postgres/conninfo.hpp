// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A connection string of libpq, read by libpq, with what we set unless the user has.

#include <orizuru/detail/base/config.hpp>

#include <string>
#include <string_view>

namespace orizuru::detail {

class Conninfo {
  public:
    /// Throws std::invalid_argument. The message does not repeat what libpq says, which may contain
    /// a password; and no host, port or database that may be part of one reaches libpq, since its
    /// errors about connecting are passed on.
    explicit Conninfo(const std::string& conninfo);

    [[nodiscard]] const std::string& text() const noexcept { return m_text; }
    [[nodiscard]] const std::string& address() const noexcept { return m_address; }

  private:
    void add(std::string_view keyword, std::string_view value);
    void describe(std::string_view keyword, std::string_view value);

    std::string m_text;
    std::string m_address = "PostgreSQL";
};

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/postgres/conninfo.ipp>
#endif
