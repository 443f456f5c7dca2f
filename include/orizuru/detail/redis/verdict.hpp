// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What to do after a reply: the protocol decides, its driver acts.

#include <cstdint>
#include <string>

namespace orizuru::detail {

enum class Remedy : std::uint8_t {
    none,
    back_off,  ///< refused for now and not run: wait, then repeat
    reconnect, ///< the connection is of no more use: close it, and recover if registered
    send_body, ///< Redis does not know the script by its name, and has not run it
    recover,   ///< this list's commands are in doubt: find out which ran; the connection stays
    give_up    ///< only a person can fix it, and it has not run; the reason is for the user
};

struct Verdict {
    Remedy remedy = Remedy::none;
    std::string reason;
};

} // namespace orizuru::detail
