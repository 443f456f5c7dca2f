// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The commands of `orizuru` that change queues and messages.

#include <orizuru/detail/ops/cli_call.hpp>
#include <orizuru/detail/ops/visible_text.hpp>
#include <orizuru/jobs/pause.hpp>

#include <ostream>

namespace orizuru::detail {

inline void pause(CliCall& call) {
    Pause(call.endpoint(), call.options().queue).pause();
    call.answer(
        [&] {
            return Json{{"queue", call.options().queue}, {"paused", true}};
        },
        [](std::ostream& out) { out << "paused\n"; });
}

inline void resume(CliCall& call) {
    Pause(call.endpoint(), call.options().queue).resume();
    call.answer(
        [&] {
            return Json{{"queue", call.options().queue}, {"paused", false}};
        },
        [](std::ostream& out) { out << "resumed\n"; });
}

} // namespace orizuru::detail
