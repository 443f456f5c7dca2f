// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Every complete script that the library sends to Redis.

#pragma once

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/collector/fleet_turn.hpp>
#include <orizuru/detail/jobs/dead_letters.hpp>
#include <orizuru/detail/jobs/due_messages.hpp>
#include <orizuru/detail/jobs/group/member_removal.hpp>
#include <orizuru/detail/jobs/group/membership.hpp>
#include <orizuru/detail/jobs/order/job_order.hpp>
#include <orizuru/detail/jobs/order/order_removal.hpp>
#include <orizuru/detail/jobs/progress_scripts.hpp>
#include <orizuru/detail/jobs/recurrence.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/jobs/scheduled_scripts.hpp>
#include <orizuru/detail/keyed/order_scripts.hpp>
#include <orizuru/detail/limits/admission_script.hpp>
#include <orizuru/detail/limits/rate_script.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/once/once_scripts.hpp>
#include <orizuru/detail/ops/cancel_scripts.hpp>
#include <orizuru/detail/ops/change_scripts.hpp>
#include <orizuru/detail/ops/count_scripts.hpp>
#include <orizuru/detail/ops/inspector_scripts.hpp>
#include <orizuru/detail/ops/queue_states.hpp>
#include <orizuru/detail/postgres/ledger/losses_script.hpp>
#include <orizuru/detail/postgres/ledger/mark.hpp>
#include <orizuru/detail/shards/shard_scripts.hpp>
#include <orizuru/detail/worker/reports/queue_report.hpp>
#include <orizuru/detail/worker/stops/cancel_scripts.hpp>
#include <orizuru/jobs/bounded_push.hpp>
#include <orizuru/jobs/unique.hpp>

#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::test {

/// Their texts by name.
inline const std::map<std::string, std::string>& library_scripts() {
    using namespace orizuru::detail;
    static const std::pair<const char*, std::string_view> named[] = {
        {"start", start_script()},
        {"beat", beat_script()},
        {"settle", settle_script.source()},
        {"release", release_script.source()},
        {"adopt", adopt_script()},
        {"measure", measure_script()},
        {"push by a guard", push_body().source()},
        {"release by a guard", release_body().source()},
        {"bury by a guard", bury_body().source()},
        {"try a suspect", try_suspect_script.source()},
        {"ack a suspect by a guard", ack_body().source()},
        {"reap", reap_script.source()},
        {"return suspects", return_suspects_script.source()},
        {"visit", visit_script.source()},
        {"refill", refill_script.source()},
        {"take a turn of the fleet", fleet_turn_script.source()},
        {"schedule", schedule_script()},
        {"schedule by a guard", schedule_body().source()},
        {"move what is due", move_due_script},
        {"cancel what is scheduled", cancel_scheduled_script},
        {"run what is scheduled", run_scheduled_script},
        {"look at recurrences", look_at_recurrences_script},
        {"push occurrences", push_occurrences_script},
        {"begin a recurrence anew", begin_anew_script},
        {"list the dead", list_dead_script},
        {"redrive one", redrive_script},
        {"remove one of the dead", remove_dead_script},
        {"redrive or purge", take_dead_script},
        {"cut the dead", cut_dead_script},
        {"push what is unique", push_unique_script()},
        {"push in order", push_in_order_script().source()},
        {"ack in order by a guard", ack_in_order_body().source()},
        {"bury in order by a guard", bury_in_order_body().source()},
        {"leave an order by a guard", leave_order_body().source()},
        {"defer in a burst by a guard", defer_in_burst_body().source()},
        {"begin a burst", begin_burst_script.source()},
        {"enter an order by a guard", enter_order_body().source()},
        {"take out of an order", take_out_of_order_script},
        {"take the turn of the upkeep", order_turn_script},
        {"find turns of the dead", dead_turns_script},
        {"end a turn of the dead", end_dead_turn_script},
        {"first digits of orders", first_digits_script},
        {"recount keys", recount_keys_script},
        {"digits in a place", digits_in_place_script},
        {"end a turn", end_turn_script},
        {"ack a member by a guard", ack_member_body().source()},
        {"open a group", open_group_script()},
        {"push members", push_members_script().source()},
        {"commit a group", commit_group_script()},
        {"remove a member", remove_member_script},
        {"unlock by a guard", unlock_body().source()},
        {"bury unlocked by a guard", bury_unlocked_body().source()},
        {"extend a lock", extend_lock_script()},
        {"push within a bound", push_bounded_script().source()},
        {"set progress", set_progress_script},
        {"set a result", set_result_script},
        {"claim", claim_script},
        {"complete a claim", complete_claim_script},
        {"complete a claim by a guard", complete_claim_body().source()},
        {"release a claim", release_claim_script},
        {"renew claims", renew_claims_script},
        {"send by a ledger", send_script()},
        {"find what a ledger has lost", find_losses_script()},
        {"states of queues", queue_states_script},
        {"states of groups", group_states_script},
        {"states of consumers", consumer_states_script},
        {"list what is held", held_messages_script},
        {"first bytes of what lists serve next", next_starts_script()},
        {"find messages", find_messages_script},
        {"find what is held", find_held_script},
        {"move an element", move_element_script},
        {"move a message", move_message_script},
        {"look back", look_back_script},
        {"remove some", remove_some_script},
        {"run some", run_some_script},
        {"cancel", cancel_script},
        {"admit", admission_script.source()},
        {"take a permit", take_permit_script.source()},
        {"request a cancel", request_cancel_script},
        {"forget cancels", forget_cancels_script()},
        {"list the jobs that run", running_jobs_script},
        {"replace a text", replace_text_text},
        {"open a shard", open_shard_text},
        {"retire a shard", retire_shard_text},
        {"report of a worker", report_script.source()},
        {"counts of days", day_counts_script},
        {"reports of workers", worker_reports_script},
    };
    static const std::map<std::string, std::string> scripts(std::begin(named), std::end(named));
    return scripts;
}

} // namespace orizuru::test
