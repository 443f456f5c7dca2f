// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What to do after a reply: the protocol decides, its driver acts.

#include <string>

namespace orizuru::detail {

struct Verdict {
    enum class Action {
        proceed,
        back_off,  ///< refused for now: wait before sending more
        reconnect, ///< the connection is of no more use: close it, and recover if registered
        recover,   ///< this list's commands are in doubt: find out which ran; the connection stays
        give_up    ///< only a person can fix it; the reason is for the user
    };
    Action action = Action::proceed;
    std::string reason;
};

} // namespace orizuru::detail
