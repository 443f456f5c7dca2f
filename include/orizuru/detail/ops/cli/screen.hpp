// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The screen on which the standard output appears.

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace orizuru::detail::cli {

enum class Screen {
    none,     ///< a file or a pipe
    lines,    ///< a terminal that only adds lines
    terminal, ///< one whose cursor moves
};

struct ScreenSize {
    std::size_t lines;
    std::size_t columns;
};

[[nodiscard]] inline Screen screen_of_stdout() noexcept {
    if (::isatty(STDOUT_FILENO) != 1) {
        return Screen::none;
    }
    const char* const type = std::getenv("TERM");
    return type == nullptr || std::string_view(type) == "dumb" ? Screen::lines : Screen::terminal;
}

/// Takes 24 x 80 for a terminal that does not say.
[[nodiscard]] inline ScreenSize size_of_stdout() noexcept {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
        return {24, 80};
    }
    return {size.ws_row, size.ws_col};
}

} // namespace orizuru::detail::cli
