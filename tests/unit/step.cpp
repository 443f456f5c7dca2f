// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/detail/consumer/step.hpp>

#include <doctest/doctest.h>

#include <array>
#include <initializer_list>
#include <set>

namespace step_test {

using orizuru::detail::Step;
using orizuru::detail::StepInputs;
using Asked = StepInputs::Asked;
using Time = StepInputs::Time;

constexpr std::array flags{
    &StepInputs::interrupted, &StepInputs::ready,      &StepInputs::refused,
    &StepInputs::running,     &StepInputs::suspects,   &StepInputs::looked,
    &StepInputs::in_batches,  &StepInputs::acks,       &StepInputs::short_of_memory,
    &StepInputs::by_waiter,   &StepInputs::marker_due,
};

/// False for a combination that no fetcher has.
bool possible(const StepInputs& now) {
    if (now.by_waiter && now.short_of_memory) {
        return false; // for the time of such a refusal nothing is asked on the waiter's connection
    }
    if (!now.running && (now.asked == Asked::look || now.asked == Asked::block)) {
        return false; // a doubt ends the wait in Redis
    }
    if (now.asked == Asked::look && now.marker_due) {
        return false; // it is sent when no marker is due, and never unblocked
    }
    return true;
}

/// Calls `check(inputs, step)` for every possible combination for which `applies(inputs)`.
template <class Applies, class Check>
void each(Applies applies, Check check) {
    int found = 0;
    for (const Time time : {Time::left, Time::up, Time::over}) {
        for (const Asked asked : {Asked::nothing, Asked::fetch, Asked::look, Asked::block}) {
            for (unsigned set = 0; set < 1U << flags.size(); ++set) {
                StepInputs now{.time = time, .asked = asked};
                for (unsigned i = 0; i < flags.size(); ++i) {
                    now.*flags[i] = (set >> i & 1U) != 0;
                }
                if (possible(now) && applies(now)) {
                    ++found;
                    check(now, orizuru::detail::step(now));
                }
            }
        }
    }
    REQUIRE(found > 0);
}

/// The step is always this one.
template <class Applies>
void always(Step expected, Applies applies) {
    each(applies, [&](const StepInputs&, Step step) { REQUIRE(step == expected); });
}

/// Neither a stop, nor a message, nor a refusal decides.
bool undecided(const StepInputs& now) { return !now.interrupted && !now.ready && !now.refused; }

/// Nor does a doubt, nor the end of all waiting.
bool asks(const StepInputs& now) { return undecided(now) && now.running && now.time != Time::over; }

/// Nor does a suspect, and Redis owes no message.
bool free_to_ask(const StepInputs& now) {
    return asks(now) && !now.suspects && now.asked == Asked::nothing;
}

/// Something has to be asked before the thread may wait in Redis or give up.
bool must_ask_first(const StepInputs& now) {
    return !now.looked &&
           (now.time == Time::up || now.in_batches || now.acks || now.short_of_memory);
}

TEST_CASE("a stop comes first, whatever else there is") {
    always(Step::stop, [](const StepInputs& now) { return now.interrupted; });
}

TEST_CASE("a message at hand is handed out, also when time is over and whatever is in doubt") {
    always(Step::hand_out, [](const StepInputs& now) { return !now.interrupted && now.ready; });
}

TEST_CASE("the user hears of a refusal when there is no message to hand out") {
    always(Step::refuse,
           [](const StepInputs& now) { return !now.interrupted && !now.ready && now.refused; });
}

TEST_CASE("nothing waits for Redis once all waiting is over") {
    always(Step::give_up,
           [](const StepInputs& now) { return undecided(now) && now.time == Time::over; });
}

TEST_CASE("a doubt is waited out while there is time, and nothing is asked meanwhile") {
    always(Step::recover, [](const StepInputs& now) {
        return undecided(now) && !now.running && now.time == Time::left;
    });
    always(Step::give_up, [](const StepInputs& now) {
        return undecided(now) && !now.running && now.time == Time::up;
    });
}

TEST_CASE("a suspect is asked for before anything else, but behind a fetch that is under way") {
    always(Step::ask_suspect, [](const StepInputs& now) {
        return asks(now) && now.suspects && now.asked != Asked::fetch;
    });
    always(Step::await_fetch,
           [](const StepInputs& now) { return asks(now) && now.asked == Asked::fetch; });
}

TEST_CASE("a reply that is due is awaited, but a wait in Redis is ended when the time is up") {
    const auto no_suspect = [](const StepInputs& now) { return asks(now) && !now.suspects; };
    always(Step::await_waiter,
           [&](const StepInputs& now) { return no_suspect(now) && now.asked == Asked::look; });
    always(Step::await_waiter, [&](const StepInputs& now) {
        return no_suspect(now) && now.asked == Asked::block && now.time == Time::left;
    });
    always(Step::end_block, [&](const StepInputs& now) {
        return no_suspect(now) && now.asked == Asked::block && now.time == Time::up;
    });
}

TEST_CASE("Redis is asked once without waiting where a wait would bring less, or the time is up") {
    always(Step::fetch, [](const StepInputs& now) {
        return free_to_ask(now) && must_ask_first(now) && !now.by_waiter;
    });
}

TEST_CASE("large messages come on the waiter's connection: by BLMOVE, or by LMOVE when the time is "
          "up; acks go first, on the link") {
    const auto large = [](const StepInputs& now) {
        return free_to_ask(now) && must_ask_first(now) && now.by_waiter;
    };
    always(Step::fetch, [&](const StepInputs& now) { return large(now) && now.acks; });
    always(Step::look, [&](const StepInputs& now) {
        return large(now) && !now.acks && now.time == Time::up && !now.marker_due;
    });
    always(Step::block, [&](const StepInputs& now) {
        return large(now) && !now.acks && now.time == Time::left && !now.marker_due;
    });
}

TEST_CASE("when Redis had nothing, a wait in Redis begins while there is time") {
    always(Step::block, [](const StepInputs& now) {
        return free_to_ask(now) && !must_ask_first(now) && now.time == Time::left &&
               !now.marker_due;
    });
    always(Step::give_up, [](const StepInputs& now) {
        return free_to_ask(now) && now.looked && now.time == Time::up;
    });
}

TEST_CASE("while a marker is due nothing is sent behind it") {
    each([](const StepInputs& now) { return now.marker_due; },
         [](const StepInputs&, Step step) {
             REQUIRE(step != Step::block);
             REQUIRE(step != Step::look);
         });
    always(Step::await_waiter, [](const StepInputs& now) {
        StepInputs answered = now;
        answered.marker_due = false;
        const Step then = orizuru::detail::step(answered);
        return now.marker_due && (then == Step::block || then == Step::look);
    });
}

TEST_CASE("a request for messages is sent only when none is under way") {
    each([](const StepInputs& now) { return now.asked != Asked::nothing; },
         [](const StepInputs&, Step step) {
             const std::set requests{Step::fetch, Step::look, Step::block};
             REQUIRE_FALSE(requests.contains(step));
         });
}

TEST_CASE("without time left no wait in Redis begins, and no thread waits for a recovery") {
    each([](const StepInputs& now) { return now.time != Time::left; },
         [](const StepInputs&, Step step) {
             REQUIRE(step != Step::block);
             REQUIRE(step != Step::recover);
         });
}

TEST_CASE("a thread gives up only when its time is up") {
    each([](const StepInputs& now) { return now.time == Time::left; },
         [](const StepInputs&, Step step) { REQUIRE(step != Step::give_up); });
}

} // namespace step_test
