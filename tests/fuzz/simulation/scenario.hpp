// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What is varied between runs of the seeded test: how often which fault comes.

#pragma once

#include <array>
#include <string_view>

namespace orizuru::test {

/// Probabilities are per step, unless said otherwise.
struct Scenario {
    std::string_view name;
    int alphabet = 2;              ///< different payloads; 0: no two are equal
    double cut = 0.06;             ///< a connection breaks
    double refuse = 0.04;          ///< per request: it is answered by an error and not run
    double reap = 0.01;            ///< a collector passes
    double rewind = 0;             ///< Redis goes back to an earlier state
    double snapshot = 0.03;        ///< such a state is taken, when there are rewinds
    double stop = 0.01;            ///< the consumer stops; another starts when it has left
    double crash = 0.004;          ///< the consumer's process dies; another starts
    double lost_start = 0.15;      ///< per START: the reply is lost
    double wrong_source = 0.004;   ///< the source is no list for a while
    double script_flush = 0.01;    ///< Redis forgets its scripts
    double long_time = 0.01;       ///< so long passes that short fences end
    double unusual_wishes = 0.12;  ///< per settlement: refuses, fails, has a wrong target
    std::string_view blamed = "1"; ///< how many a collector blames for a death
    double trial = 0;              ///< a consumer asks for a suspect; 0: none waits apart
    int most_pushed = 3;           ///< by a producer at a time
    int most_fetched = 4;          ///< by a consumer at a time
    double bulk = 0;               ///< a user acks many messages, the newest first
    int fewest_consumers = 1;
    int most_consumers = 4;
    bool only_refusals_that_pass = false; ///< what is refused is in no doubt
};

inline constexpr std::array scenarios{
    Scenario{.name = "good"},
    Scenario{.name = "good_uniq", .alphabet = 0},
    Scenario{.name = "good_alpha1", .alphabet = 1},
    Scenario{.name = "good_gc", .alphabet = 0, .cut = 0.08, .refuse = 0.02, .reap = 0.06},
    Scenario{.name = "release", .alphabet = 3, .reap = 0.03, .stop = 0.08, .wrong_source = 0.01},
    Scenario{.name = "release_uniq", .alphabet = 0, .cut = 0.08, .reap = 0.02, .stop = 0.08},
    // So often that late requests are later than that.
    Scenario{.name = "fences", .alphabet = 0, .cut = 0.08, .stop = 0.08, .long_time = 0.08},
    Scenario{.name = "start",
             .alphabet = 0,
             .refuse = 0.02,
             .reap = 0.12,
             .stop = 0.05,
             .crash = 0.03,
             .lost_start = 0.5,
             .blamed = "3",
             .trial = 0.1},
    // So many deaths that most messages wait apart at some time.
    Scenario{.name = "suspects",
             .alphabet = 0,
             .cut = 0.04,
             .reap = 0.12,
             .stop = 0.03,
             .crash = 0.03,
             .blamed = "3",
             .trial = 0.3},
    Scenario{.name = "equal_suspects",
             .alphabet = 3,
             .cut = 0.04,
             .reap = 0.12,
             .stop = 0.03,
             .crash = 0.03,
             .blamed = "3",
             .trial = 0.3},
    Scenario{.name = "bodies",
             .alphabet = 0,
             .cut = 0.04,
             .refuse = 0.06,
             .script_flush = 0.05,
             .unusual_wishes = 0.5},
    Scenario{.name = "rewind",
             .alphabet = 0,
             .cut = 0.03,
             .refuse = 0.02,
             .reap = 0,
             .rewind = 0.02,
             .stop = 0,
             .crash = 0,
             .wrong_source = 0},
    Scenario{.name = "rewind_all",
             .alphabet = 0,
             .cut = 0.03,
             .refuse = 0.02,
             .reap = 0.01,
             .rewind = 0.02,
             .stop = 0.01,
             .crash = 0.004,
             .wrong_source = 0},
    // So short a way back that no settlement ran in between.
    Scenario{.name = "rewind_short",
             .alphabet = 0,
             .cut = 0,
             .refuse = 0,
             .reap = 0,
             .rewind = 0.08,
             .snapshot = 0.3,
             .stop = 0,
             .crash = 0,
             .wrong_source = 0,
             .most_consumers = 2},
    // More consumers on one link than may adopt their lists at a time.
    Scenario{.name = "crowd",
             .alphabet = 3,
             .cut = 0.1,
             .refuse = 0.02,
             .fewest_consumers = 11,
             .most_consumers = 13},
    // So many acks behind messages that stay that it pays to rewrite the list.
    Scenario{.name = "bulks",
             .alphabet = 3,
             .most_pushed = 30,
             .most_fetched = 20,
             .bulk = 0.1,
             .most_consumers = 2},
    // Nothing is ever in doubt: no consumer may come to recover.
    Scenario{.name = "refusals",
             .alphabet = 0,
             .cut = 0,
             .refuse = 0.15,
             .reap = 0,
             .crash = 0,
             .lost_start = 0,
             .wrong_source = 0,
             .long_time = 0,
             .unusual_wishes = 0,
             .fewest_consumers = 2,
             .only_refusals_that_pass = true},
};

} // namespace orizuru::test
