// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The files of the page, as browsers ask for them. None has data.

#include <orizuru/detail/ops/web/page/api_js.hpp>
#include <orizuru/detail/ops/web/page/elements_js.hpp>
#include <orizuru/detail/ops/web/page/icon_svg.hpp>
#include <orizuru/detail/ops/web/page/message_js.hpp>
#include <orizuru/detail/ops/web/page/page_css.hpp>
#include <orizuru/detail/ops/web/page/page_html.hpp>
#include <orizuru/detail/ops/web/page/page_js.hpp>
#include <orizuru/detail/ops/web/page/queue_js.hpp>
#include <orizuru/detail/ops/web/page/queues_js.hpp>
#include <orizuru/detail/ops/web/page/waits_js.hpp>

#include <array>
#include <string_view>

namespace orizuru::detail::web {

struct PageFile {
    std::string_view path;
    std::string_view type;
    std::string_view text;
};

/// Null when there is none.
[[nodiscard]] inline const PageFile* page_file(std::string_view path) noexcept {
    constexpr std::string_view script = "text/javascript; charset=utf-8";
    static constexpr std::array<PageFile, 10> files{
        {{"/", "text/html; charset=utf-8", page_html},
         {"/page.css", "text/css; charset=utf-8", page_css},
         {"/icon.svg", "image/svg+xml", icon_svg},
         {"/page.js", script, page_js},
         {"/api.js", script, api_js},
         {"/elements.js", script, elements_js},
         {"/message.js", script, message_js},
         {"/queue.js", script, queue_js},
         {"/queues.js", script, queues_js},
         {"/waits.js", script, waits_js}}};
    for (const PageFile& file : files) {
        if (file.path == path) {
            return &file;
        }
    }
    return nullptr;
}

} // namespace orizuru::detail::web
