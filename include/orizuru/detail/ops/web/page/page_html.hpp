// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The page: what is on it, its scripts add.

#include <string_view>

namespace orizuru::detail::web {

inline constexpr std::string_view page_html = R"html(
<!doctype html>
<html lang="en">
<head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Orizuru</title>
    <link rel="icon" href="icon.svg">
    <link rel="stylesheet" href="page.css">
    <script type="module" src="page.js"></script>
</head>
<body>
    <header>
        <a class="brand" href="#/">Orizuru</a>
        <nav>
            <a href="#/">Queues</a>
            <a href="#/workers">Workers</a>
        </nav>
        <span id="state"><span id="redis"></span><span id="live" role="status"></span></span>
    </header>
    <p id="trouble" role="alert" hidden></p>
    <main></main>
    <dialog aria-labelledby="title"></dialog>
    <noscript>This page needs its scripts: without them it has no data.</noscript>
</body>
</html>
)html";

} // namespace orizuru::detail::web
