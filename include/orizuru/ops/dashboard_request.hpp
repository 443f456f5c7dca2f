// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A request to a Dashboard and its answer, as any HTTP server can pass them on.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

/// The header fields of a message, in their order.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// A request, as your HTTP server has read it. It has no body: all parameters are in the query.
struct DashboardRequest {
    std::string method; ///< "GET"
    /// From "/", below the path at which the dashboard is mounted; as it came, percent-encoded.
    std::string path;
    std::string query;   ///< behind the "?", as it came
    HttpHeaders headers; ///< as they came; `header` finds one

    /// The value of a header, in whatever case its name is written; nothing when it is not there,
    /// or twice.
    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
};

/// The response that your HTTP server is to send.
struct DashboardResponse {
    int status = 200;    ///< the HTTP status code
    HttpHeaders headers; ///< all but Content-Length
    std::string body;    ///< its bytes, of the type that Content-Type names
};

inline std::optional<std::string_view>
DashboardRequest::header(std::string_view name) const noexcept {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    std::optional<std::string_view> found;
    for (const auto& [key, value] : headers) {
        bool same = key.size() == name.size();
        for (std::size_t i = 0; same && i < name.size(); ++i) {
            same = lower(key[i]) == lower(name[i]);
        }
        if (same && found) {
            return std::nullopt;
        }
        if (same) {
            found = value;
        }
    }
    return found;
}

} // namespace orizuru
