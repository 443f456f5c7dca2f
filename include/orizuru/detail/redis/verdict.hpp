// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What whoever drives the protocol has to do after a reply.

#include <string>

namespace orizuru::detail {

struct Verdict {
    enum class Action {
        proceed,
        back_off,  ///< refused for now: wait before anything more is sent
        reconnect, ///< refused by this server: wait, then connect again
        recover,   ///< what ran is in doubt
        give_up    ///< only a person can mend it; the reason is for the user
    };
    Action action = Action::proceed;
    std::string reason;
};

} // namespace orizuru::detail
