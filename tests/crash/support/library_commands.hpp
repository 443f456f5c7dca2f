// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Every command that the library sends: how to recognise it, and a user's action that sends it.

#pragma once

#include "crash/support/command_users.hpp"
#include "crash/support/refusing_server.hpp"

#include <orizuru/detail/collector/collector_scripts.hpp>
#include <orizuru/detail/collector/fleet_turn.hpp>
#include <orizuru/detail/jobs/schedule.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/jobs/bounded_push.hpp>
#include <orizuru/orizuru.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace orizuru::test {

/// Whose command it is decides what its refusal leads to: the columns of the table of errors.
enum class Column {
    greeting,     ///< of a producer or a collector
    registration, ///< the greeting of a consumer that is made
    again,        ///< the greeting of a consumer that has lost its connection
    start,
    settle,
    fetch,
    blmove,
    release,
    adopt,
    by_the_way, ///< what it asks for can be done without
    size,       ///< of a consumer
    command,    ///< of a producer or a collector: one command, one answer
    buffer,     ///< sent by a buffer by itself
    run,        ///< sent by a collector that runs by itself
    turn        ///< sent by such collectors to share their work
};

using Texts = std::vector<std::string>;

struct Command {
    /// The answer that leads to the command: without it, the command is never sent.
    struct Lead {
        Matches matches;
        std::optional<std::string> answer;
    };

    std::string name;
    Column column;
    Matches matches;
    void (CommandUsers::*act)();
    std::optional<Lead> lead = {};
    bool logs_in = false;
    /// A user without the right to it does without it.
    bool dispensable = false;
};

namespace command {

inline bool is_script(const Texts& argv, std::string_view source, std::string_view sha1) {
    return (argv[0] == "EVALSHA" && argv[1] == sha1) || (argv[0] == "EVAL" && argv[1] == source);
}
inline bool is_settle(const Texts& argv) {
    return is_script(argv, detail::settle_script.source(), detail::settle_script.sha1());
}
inline bool is_body(const Texts& argv, const Script& body) {
    return is_script(argv, body.source(), body.sha1());
}

inline bool auth(const Texts& argv) { return argv[0] == "AUTH"; }
inline bool select(const Texts& argv) { return argv[0] == "SELECT"; }
inline bool setname(const Texts& argv) { return argv[0] == "CLIENT" && argv[1] == "SETNAME"; }
inline bool ping(const Texts& argv) { return argv[0] == "PING"; }
inline bool id(const Texts& argv) { return argv[0] == "CLIENT" && argv[1] == "ID"; }
inline bool unblock(const Texts& argv) { return argv[0] == "CLIENT" && argv[1] == "UNBLOCK"; }
inline bool info(const Texts& argv) { return argv[0] == "INFO"; }
inline bool type(const Texts& argv) { return argv[0] == "TYPE"; }
inline bool lpush(const Texts& argv) { return argv[0] == "LPUSH"; }
inline bool llen(const Texts& argv) { return argv[0] == "LLEN"; }
inline bool smembers(const Texts& argv) { return argv[0] == "SMEMBERS"; }
inline bool mget(const Texts& argv) { return argv[0] == "MGET"; }
inline bool scan(const Texts& argv) { return argv[0] == "SCAN"; }
inline bool blmove(const Texts& argv) { return argv[0] == "BLMOVE"; }
inline bool start(const Texts& argv) { return is_script(argv, detail::start_script(), ""); }
inline bool beat(const Texts& argv) { return is_script(argv, detail::beat_script(), ""); }
inline bool adopt(const Texts& argv) { return is_script(argv, detail::adopt_script(), ""); }
inline bool reap(const Texts& argv) {
    return is_script(argv, detail::reap_script.source(), detail::reap_script.sha1());
}
inline bool refill(const Texts& argv) {
    return is_script(argv, detail::refill_script.source(), detail::refill_script.sha1());
}
inline bool is_turn(const Texts& argv) {
    return is_script(argv, detail::fleet_turn_script.source(), detail::fleet_turn_script.sha1());
}
inline bool pass_turn(const Texts& argv) { return is_turn(argv) && argv.at(6).empty(); }
inline bool sweep_turn(const Texts& argv) { return is_turn(argv) && argv.at(6) == "SCAN"; }
// SETTLE names the source only if it fetches.
inline bool settle(const Texts& argv) { return is_settle(argv) && argv.at(2) == "1"; }
inline bool fetch(const Texts& argv) { return is_settle(argv) && argv.at(2) == "2"; }
inline bool push(const Texts& argv) { return is_body(argv, detail::push_body()); }
inline bool give_back(const Texts& argv) { return is_body(argv, detail::release_body()); }
inline bool bury(const Texts& argv) { return is_body(argv, detail::bury_body()); }
inline bool put_off(const Texts& argv) { return is_body(argv, detail::schedule_body()); }
inline bool schedule(const Texts& argv) { return is_script(argv, detail::schedule_script(), ""); }
inline bool bounded(const Texts& argv) {
    const detail::CachedScript& script = detail::push_bounded_script();
    return is_script(argv, script.source(), script.sha1());
}
inline bool own_script(const Texts& argv) { return is_body(argv, CommandUsers::own_script()); }
inline bool release(const Texts& argv) {
    return is_script(argv, detail::release_script.source(), detail::release_script.sha1());
}

} // namespace command

inline std::vector<Command> library_commands() {
    using enum Column;
    using U = CommandUsers;
    const Command::Lead lost_length{command::llen, std::nullopt};
    const Command::Lead lost_wait{command::blmove, std::nullopt};
    const Command::Lead lost_fetch{command::fetch, std::nullopt};
    const Command::Lead odd_wait{command::blmove, "-ERR odd\r\n"};
    std::vector<Command> all{
        {"START", start, command::start, &U::make_consumer},
        {"SETTLE", settle, command::settle, &U::take_one},
        {"MOVE to the unack list", settle, command::push, &U::reject_one},
        {"MOVE to the source", settle, command::give_back, &U::release_one},
        {"MOVE to another queue", settle, command::push, &U::push_on},
        {"MOVE to the dead list", settle, command::bury, &U::bury_one},
        {"MOVE with a new body", settle, command::push, &U::push_on_replaced},
        {"MOVE to the schedule", settle, command::put_off, &U::put_off},
        {"MOVE by one's own script", settle, command::own_script, &U::settle_by_script},
        {"MOVE by the guard's end", by_the_way, command::push, &U::let_go},
        {"SETTLE of deferred acks", settle, command::settle, &U::ack_later},
        {"SETTLE with fetch", fetch, command::fetch, &U::take_of_batch},
        {"BLMOVE", blmove, command::blmove, &U::take_one},
        {"RELEASE", release, command::release, &U::stop_consuming},
        {"RELEASE under a guard", release, command::release, &U::stop_under_a_guard},
        {"ADOPT", adopt, command::adopt, &U::take_of_batch, lost_fetch},
        {"BEAT", by_the_way, command::beat, &U::wait_for_beats},
        {"INFO of a consumer", by_the_way, command::info, &U::make_consumer},
        {"CLIENT ID", by_the_way, command::id, &U::take_one, lost_wait},
        {"CLIENT UNBLOCK", by_the_way, command::unblock, &U::look_in_vain},
        {"TYPE", by_the_way, command::type, &U::take_one, odd_wait},
        {"LLEN of a consumer", size, command::llen, &U::look_at_source},
        {"LPUSH of one", Column::command, command::lpush, &U::push_one},
        {"LPUSH of many", Column::command, command::lpush, &U::push_some},
        {"SCHEDULE", Column::command, command::schedule, &U::push_scheduled},
        {"PUSH within a bound", Column::command, command::bounded, &U::push_within_a_bound},
        {"LPUSH of a flush", Column::command, command::lpush, &U::buffer_and_flush},
        {"LPUSH of a buffer", buffer, command::lpush, &U::buffer_and_wait},
        {"LLEN of a producer", Column::command, command::llen, &U::look_at_length},
    };
    for (const auto& [name, matches, logs_in] :
         std::vector<std::tuple<std::string, Matches, bool>>{{"PING", command::ping, false},
                                                             {"AUTH", command::auth, true},
                                                             {"SELECT", command::select, true},
                                                             {"SETNAME", command::setname, true}}) {
        const auto add = [&, &name = name, &matches = matches, logs_in = logs_in](
                             const std::string& whose, Column column, void (U::*act)(),
                             const std::optional<Command::Lead>& lead = {}) {
            all.push_back({name + " of " + whose, column, matches, act, lead, logs_in});
        };
        add("a producer", greeting, &U::make_producer);
        add("a collector", greeting, &U::make_collector);
        add("a consumer", registration, &U::make_consumer);
        add("a producer again", greeting, &U::push_anew, lost_length);
        add("a consumer again", again, &U::take_one, lost_wait);
    }
    for (const auto& [name, matches, dispensable] :
         std::vector<std::tuple<std::string, Matches, bool>>{{"INFO", command::info, true},
                                                             {"SMEMBERS", command::smembers, false},
                                                             {"MGET", command::mget, true},
                                                             {"REAP", command::reap, false},
                                                             {"SCAN", command::scan, true},
                                                             {"LLEN", command::llen, false},
                                                             {"REFILL", command::refill, false}}) {
        all.push_back({name + " of a pass",
                       Column::command,
                       matches,
                       &U::collect_once,
                       {},
                       false,
                       dispensable});
        all.push_back(
            {name + " of run", run, matches, &U::collect_until_done, {}, false, dispensable});
    }
    all.push_back({"TURN to pass", turn, command::pass_turn, &U::collect_until_done});
    all.push_back({"TURN to sweep", turn, command::sweep_turn, &U::collect_until_done});
    return all;
}

} // namespace orizuru::test
