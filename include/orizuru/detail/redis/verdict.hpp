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
        reconnect, ///< refused by this server: wait, then connect again
        recover,   ///< commands are in doubt: find out which ran
        give_up    ///< only a person can fix it; the reason is for the user
    };
    Action action = Action::proceed;
    std::string reason;
};

} // namespace orizuru::detail
