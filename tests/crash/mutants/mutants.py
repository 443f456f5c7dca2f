# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The defects that tests/crash/mutants/run puts into copies of the library, one at a time."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Program:
    sources: tuple  # in tests/
    built: tuple  # by tests/run, under build/tests/tests: the program, with what makes it this one
    arguments: tuple = ()


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    edits: tuple  # (header in include/orizuru, text that occurs once, text in its place)...
    tests: tuple  # what should catch it, the cheapest first: a program of below, with arguments


def unit(name):
    return Program((f"unit/{name}.cpp", "support/main.cpp"), (f"unit/unit_{name}",),
                   ("--abort-after=1",))


def integration(name):
    return Program((f"integration/{name}.cpp", "support/main.cpp"),
                   ("integration/integration", f"--source-file=*/{name}.cpp"),
                   ("--abort-after=1",))


def corpus(target):
    """Of a fuzzer's target, by its own main."""
    return Program((f"fuzz/targets/{target}.cpp", "fuzz/targets/corpus.cpp"),
                   (f"fuzz/targets/fuzz_{target}",), (f"tests/fuzz/corpus/{target}",))


# Those that a tree does not have are left out.
PROGRAMS = {
    "identity": unit("identity"),
    "window": unit("window"),
    "adoption": unit("adoption"),
    "unblocking": unit("unblocking"),
    "window_replies": corpus("window_replies"),
    "reply_reader": corpus("reply_reader"),
    "decode": corpus("decode"),
    "schedules": Program(("fuzz/schedules.cpp",), ("fuzz/schedules",)),
    "collector_rights": integration("collector_rights"),
    "bad_input": integration("bad_input"),
    "blocking_fetch": integration("blocking_fetch"),
    "paused_writes": integration("paused_writes"),
    "consumer": integration("consumer"),
    "extension_scripts": integration("extension_scripts"),
    "garbage_collector": integration("garbage_collector"),
    "blame": integration("blame"),
    "message_guard": integration("message_guard"),
    "prefetch_and_deferred": integration("prefetch_and_deferred"),
    "refusals": integration("refusals"),
    "stopping": integration("stopping"),
    "out_of_memory": integration("out_of_memory"),
    "leases": integration("leases"),
    "timing": integration("timing"),
    "outages": integration("outages"),
    "buffered_producer": integration("buffered_producer"),
    "buffered_outages": integration("buffered_outages"),
    "wrong_replies": integration("wrong_replies"),
    "cron": unit("cron"),
    "job": unit("job"),
    "queue_order": unit("queue_order"),
    "retry": unit("retry"),
    "signals": unit("signals"),
    "scheduling": integration("scheduling"),
    "recurring": integration("recurring"),
    "unique": integration("unique"),
    "bounded_push": integration("bounded_push"),
    "dead_list": integration("dead_list"),
    "progress": integration("progress"),
    "jiggler_defects": integration("jiggler_defects"),
    "batch": integration("batch"),
    "worker": integration("worker"),
    "worker_telling": integration("worker_telling"),
    "worker_faults": integration("worker_faults"),
    "worker_order": integration("worker_order"),
    "worker_process": integration("worker_process"),
    "worker_stop": integration("worker_stop"),
}


def script(name, old, new, *tests):
    return Mutant(name, (("detail/scripts.hpp", old, new),), tests)


def code(name, header, old, new, *tests):
    return Mutant(name, ((header, old, new),), tests)


MUTANTS = [
    # The fence.
    script("REAP leaves no fence",
           "redis.call('SET', processing, 'reaped ' .. header, 'PX', ARGV[2])",
           "redis.call('DEL', processing)",
           "garbage_collector"),
    Mutant("the fence of REAP is a step of its own",
           (("detail/scripts.hpp",
             "redis.call('SET', processing, 'reaped ' .. header, 'PX', ARGV[2])",
             "redis.call('DEL', processing)"),
            ("garbage_collector.hpp",
             "    const Reply reply = m_connection.command(\n        m_keys.source(), \"EVAL\"",
             "    std::string header;\n"
             "    try {\n"
             '        header = m_connection.command("", "LINDEX", m_keys.processing(id), -1).text;\n'
             "    } catch (const ReplyError&) {\n"
             "    }\n"
             "    const Reply reply = m_connection.command(\n        m_keys.source(), \"EVAL\""),
            ("garbage_collector.hpp",
             "    collected.consumers += 1;\n",
             "    collected.consumers += 1;\n"
             '    m_connection.command("", "SET", m_keys.processing(id), "reaped " + header, "PX",\n'
             "                         detail::fence_time.count());\n")),
           ("garbage_collector",)),
    script("ADOPT leaves no fence",
           "redis.call('SET', old, 'adopted ' .. ARGV[2] .. ' ' .. header, 'PX', ARGV[4])",
           "",
           "schedules --config good --seeds 20"),
    script("the last RELEASE leaves no fence",
           "redis.call('SET', p, 'released ' .. ARGV[2], 'PX', ARGV[6])",
           "redis.call('DEL', p)",
           "schedules --config release_uniq --seeds 20"),
    script("a beat passes over the fence",
           "inline constexpr std::string_view beat_script = R\"lua(#!lua flags=allow-oom\n"
           "local kind = redis.call('TYPE', KEYS[2]).ok\n"
           "if kind == 'string' then return 0 end",
           "inline constexpr std::string_view beat_script = R\"lua(#!lua flags=allow-oom\n"
           "local kind = redis.call('TYPE', KEYS[2]).ok",
           "leases"),

    # The registry.
    script("registered by the first beat, after the first fetch",
           "redis.call('SADD', consumers, ARGV[1])\nif kind == 'none'",
           "if kind == 'none'",
           "prefetch_and_deferred", "leases"),
    code("deregistered before the fence", "garbage_collector.hpp",
         "    const Reply reply = m_connection.command(\n        m_keys.source(), \"EVAL\"",
         "    m_connection.command(\"\", \"SREM\", m_keys.consumers(), id);\n"
         "    const Reply reply = m_connection.command(\n        m_keys.source(), \"EVAL\"",
         "garbage_collector"),
    code("a beat takes the fence of its own leaving for a collector's",
         "detail/heartbeat.hpp", "} else if (!window.leaving()) {", "} else {",
         "stopping '--test-case=*raises no alarm*'"),
    code("a script's body is asked for again without a pause", "detail/window_replies.hpp",
         "request.with_body ? Verdict::Action::back_off : Verdict::Action::proceed",
         "Verdict::Action::proceed",
         "window"),
    code("a broken wait connection is replaced as if nothing were in doubt",
         "detail/blocking_fetch.hpp",
         "    if (m_channels.wait_doomed) {\n        m_channels.wait.reset();",
         "    if (m_channels.wait_doomed ||\n"
         "        (m_channels.wait && m_channels.wait->disturbed())) {\n"
         "        m_channels.wait.reset();",
         "outages '--test-case=*forgets*'"),
    code("a name is used again", "detail/identity.hpp",
         'std::to_string(::getpid()) + ":" + random_hex<16>(),',
         'std::to_string(::getpid()) + ":0123456789abcdef",',
         "identity"),
    script("a heartbeat that never expires",
           "redis.call('SET', KEYS[1], '1', 'PX', ARGV[2])\nredis.call('SADD', KEYS[3]",
           "redis.call('SET', KEYS[1], '1')\nredis.call('SADD', KEYS[3]",
           "leases"),
    script("a heartbeat that never expires, from the start",
           "redis.call('SET', heartbeat, '1', 'PX', ARGV[2])",
           "redis.call('SET', heartbeat, '1')",
           "consumer"),
    code("no beat is sent", "detail/heartbeat.hpp",
         "        if (beat()) {", "        if (true) {",
         "leases"),

    # The header.
    script("SETTLE does not check the header",
           "if redis.call('LINDEX', p, -1) ~= ARGV[1] then "
           "return redis.error_reply('STALE header') end\nlocal held",
           "local held",
           "schedules --config good_uniq --seeds 20"),
    code("a move does not check the header", "script.hpp",
         "if redis.call('LINDEX', p, -1) ~= ARGV[1] then "
         "return redis.error_reply('STALE header') end",
         "",
         "schedules --config bodies --seeds 20"),
    script("SETTLE checks the header and does not advance it",
           "    redis.call('RPUSH', p, ARGV[2])\nelse",
           "    redis.call('RPUSH', p, ARGV[1])\nelse",
           "schedules --config good --seeds 20"),
    code("a move checks the header and does not advance it", "script.hpp",
         "redis.call('LSET', p, -1, ARGV[2])\nreturn 1", "return 1",
         "schedules --config bodies --seeds 20"),
    script("SETTLE does not check the length",
           "if held < tonumber(ARGV[3]) then return redis.error_reply('STALE length') end",
           "",
           "schedules --config rewind --seed 200 --seeds 150"),
    script("LTRIM takes one too many",
           "redis.call('LTRIM', p, 0, -2 - k)", "redis.call('LTRIM', p, 0, -3 - k)",
           "schedules --config good --seeds 20"),
    script("RELEASE gives back one too few",
           "redis.call('LRANGE', p, 0, -(held + 2))", "redis.call('LRANGE', p, 0, -(held + 3))",
           "prefetch_and_deferred"),
    script("ADOPT delivers the header",
           "header = table.remove(held)\n        redis.call('RPOP', old)", "header = held[#held]",
           "schedules --config good --seeds 20"),

    # Moves.
    # What is overwritten by the marker is gone; the removal of the marker follows in its place.
    code("the removal comes before the copy", "script.hpp",
         "local ran, refused = pcall(body, {unpack(KEYS, 2)}, {unpack(ARGV, 5)},\n"
         "    redis.call('LINDEX', p, ARGV[4]))",
         "local payload = redis.call('LINDEX', p, ARGV[4])\n"
         "redis.call('LSET', p, ARGV[4], ARGV[2])\n"
         "local ran, refused = pcall(body, {unpack(KEYS, 2)}, {unpack(ARGV, 5)}, payload)",
         "extension_scripts"),
    code("what TYPE says counts after the removal only", "script.hpp",
         "if type(refused) == 'table' and refused.err then\n",
         "redis.call('LSET', p, ARGV[4], ARGV[2])\n"
         "if type(refused) == 'table' and refused.err then\n",
         "bad_input --test-case='a target of the wrong type*'"),
    code("a push that is refused removes the message", "script.hpp",
         "if type(refused) == 'table' and refused.err then\n    return",
         "if false then\n    return",
         "extension_scripts"),
    code("a push is not tied to the removal", "script.hpp",
         "redis.call('LREM', p, -1, ARGV[2])\n", "",
         "message_guard"),
    script("rejected messages are returned and kept",
           "redis.call('LTRIM', KEYS[1], 0, -1 - #taken)", "",
           "garbage_collector"),

    # Doubts.
    code("a settlement in doubt is sent again", "detail/window_recovery.hpp",
         "if (version && request.version <= *version) {", "if (false) {",
         "window_replies"),
    code("a settlement in doubt counts as done", "detail/window_recovery.hpp",
         "if (version && request.version <= *version) {", "if (true) {",
         "window_replies"),
    code("STALE counts as done", "detail/window_replies.hpp",
         '"STALE" && m_draining) {\n        put_back(request, {});',
         '"STALE" && m_draining) {\n        ran(request);',
         "window_replies", "schedules --config good --seeds 20"),
    code("what was refused is not put back", "detail/window_replies.hpp",
         "        put_back(request, refusal);\n        m_draining = true;",
         "        m_draining = true;",
         "window_replies", "schedules --config good --seeds 20"),
    code("a request goes out before the refused chain has answered", "detail/window.hpp",
         "m_state == State::running && !m_draining &&", "m_state == State::running &&",
         "window_replies", "schedules --config good --seeds 20"),
    code("settlements as if on connections of their own", "detail/window_requests.hpp",
         "    append_header(out, m_last_sent);\n", "    append_header(out, m_confirmed);\n",
         "schedules --config good --seeds 20"),
    code("the version stays where the refused chain was", "detail/window_replies.hpp",
         "        m_last_sent = m_confirmed;\n", "",
         "window"),
    code("a wait connection outlives an adoption", "detail/channels_replies.hpp",
         "    if (wait) {\n        wait_doomed = true;",
         "    if (false) {\n        wait_doomed = true;",
         "blocking_fetch"),
    Mutant("a late reply of the wait connection counts after an adoption",
           (("detail/blocking_fetch.hpp",
             "if (m_channels.wait_doomed) {\n            return;",
             "if (false) {\n            return;"),
            ("detail/blocking_fetch.hpp",
             "m_channels.wait_doomed ? nullptr : stream->next_reply()", "stream->next_reply()"),
            ("detail/unblocking.hpp",
             "return blocked ? Meaning::result : Meaning::doubt;", "return Meaning::result;")),
           ("blocking_fetch",)),
    code("a postponed wait is ended by a time-out", "detail/blocking_fetch.hpp",
         '"UNBLOCK", m_connection_id, "ERROR"', '"UNBLOCK", m_connection_id, "TIMEOUT"',
         "paused_writes"),
    code("a wait is over when it was unblocked", "detail/unblocking.hpp",
         "        return Meaning::unblocked;", "        return Meaning::ended;",
         "unblocking", "paused_writes"),
    code("the first of two markers ends a wait", "detail/unblocking.hpp",
         "return blocked && m_markers == 0 ?", "return blocked ?",
         "unblocking"),
    code("a marker is not awaited before the next wait", "detail/blocking_fetch.hpp",
         "    if (m_unblocking.pending()) {\n        read(lock, deadline);\n        return;",
         "    if (false) {\n        return;",
         "blocking_fetch"),
    code("a new connection awaits the markers of the last", "detail/blocking_fetch.hpp",
         "    m_unblocking.reset();\n", "",
         "stopping"),
    code("the header of the last fence counts, not of the first", "detail/adoption.hpp",
         "Result{m_header.value_or(std::string(header)),", "Result{std::string(header),",
         "adoption"),
    code("any number confirms a move", "detail/window_replies.hpp",
         "reply.is(Reply::Type::integer) && reply.integer == 1;\n    default",
         "reply.is(Reply::Type::integer);\n    default",
         "window"),

    # Connections.
    code("BLMOVE outlasts the client's patience", "detail/blocking_fetch.hpp",
         "m_due = now + longest + m_channels.endpoint().command_timeout();",
         "m_due = now + m_channels.endpoint().command_timeout();",
         "timing --test-case='a wait in Redis*'"),
    code("BLMOVE waits for ever", "detail/window_requests.hpp",
         '"RIGHT", "LEFT", seconds);', '"RIGHT", "LEFT", "0");',
         "window"),
    code("a connection is used again after an error", "connection.hpp",
         "auto stream = std::move(m_stream);\n        stream->append(write);",
         "auto& stream = m_stream;\n        stream->append(write);",
         "wrong_replies --test-case='what is no reply*'"),
    code("a push that was begun is not in doubt", "detail/push_pipeline.hpp",
         "begun ? ConnectionError::Outcome::in_doubt\n"
         "                                    : ConnectionError::Outcome::not_run",
         "ConnectionError::Outcome::not_run",
         "outages --test-case=*in*doubt"),
    code("a collector stays with a server that has become a replica", "connection.hpp",
         "if (detail::refers_elsewhere(reply)) {", "if (false) {",
         "refusals --test-case='a producer and a collector leave*'"),
    code("a producer stays with a server that has become a replica", "detail/push_pipeline.hpp",
         "m_count == 0 && refers_elsewhere(reply)", "false",
         "refusals --test-case='a producer and a collector leave*'"),
    code("a move is cut off for ever", "detail/window_recovery.hpp",
         "if (message->failures >= most_cuts) {", "if (false) {",
         "window"),
    code("a move behind one that was cut off is blamed", "detail/window_recovery.hpp",
         "std::exchange(first, false) && version", "bool(version)",
         "window"),
    code("an ack that was cut off is blamed", "detail/window_recovery.hpp",
         "first_not_run && request.kind == Request::Kind::move", "first_not_run",
         "window"),
    code("what fails of itself is not tried again", "detail/window_recovery.hpp",
         "message->failures += most_cuts / 2;", "message->failures += most_cuts;",
         "extension_scripts"),
    script("SETTLE is refused when memory is full",
           'settle_script = R"lua(#!lua flags=allow-oom', 'settle_script = R"lua(#!lua',
           "out_of_memory --test-case=*drain*"),

    # What is read.
    code("any reply is a count", "detail/reply_shape.hpp",
         "reply.is(Reply::Type::integer) && reply.integer >= least", "reply.integer >= least",
         "window", "wrong_replies"),
    code("a count may be negative", "detail/reply_shape.hpp",
         "reply.is(Reply::Type::integer) && reply.integer >= least",
         "reply.is(Reply::Type::integer)",
         "window", "wrong_replies"),
    code("messages may come in any reply", "detail/reply_shape.hpp",
         "reply.is(Reply::Type::array) &&\n           std::ranges", "std::ranges",
         "window"),
    code("messages may be anything", "detail/reply_shape.hpp",
         "element.is(Reply::Type::string);", "true;",
         "window"),
    code("a reply shows elements of a larger one before it", "detail/reply_reader.hpp",
         "        m_built->finish();\n", "",
         "reply_reader"),
    code("bytes behind a payload's value are passed over", "detail/msgpack_reader.hpp",
         "        if (m_spare > 0) {", "        if (false) {",
         "decode"),
    code("a payload may have any depth", "detail/msgpack_reader.hpp",
         "if (m_level == most_msgpack_levels) {", "if (false) {",
         "decode"),

    # The collector.
    code("a lease runs by the collector's clock", "garbage_collector.hpp",
         "    const Reply reply = m_connection.command(\n        m_keys.source(), \"EVAL\"",
         "    static std::map<std::string, detail::TimePoint> ends; // as they were first seen\n"
         "    using ms = std::chrono::milliseconds;\n"
         "    const std::string beat = m_keys.heartbeat(id);\n"
         "    const Reply left = m_connection.command(beat, \"PTTL\", beat);\n"
         "    const detail::TimePoint now = detail::Clock::now();\n"
         "    if (ends.emplace(id, now + ms(left.integer)).first->second <= now) {\n"
         "        m_connection.command(beat, \"DEL\", beat);\n"
         "    }\n"
         "    const Reply reply = m_connection.command(\n        m_keys.source(), \"EVAL\"",
         "leases"),
    code("the grace runs by the collector's clock", "garbage_collector.hpp",
         "return detail::uptime(info.text) >= m_options.grace;",
         "static const detail::TimePoint begun = detail::Clock::now();\n"
         "    return detail::Clock::now() - begun >= m_options.grace;",
         "garbage_collector"),
    code("a collector that meets a replica ends", "garbage_collector.hpp",
         "meaning != detail::ReplyClass::elsewhere", "true",
         "garbage_collector"),
    script("the living are reaped",
           "if redis.call('EXISTS', heartbeat) == 1 then return {-1} end", "",
           "garbage_collector"),
    script("recoveries are not counted",
           "redis.call('HINCRBY', recoveries, field, 1)", "",
           "garbage_collector"),
    script("the newest message is blamed for its consumer's death",
           "if i > #held - blamed then", "if i <= blamed then",
           "garbage_collector"),
    script("the neighbours of the oldest message are blamed",
           "if i > #held - blamed then", "if true then",
           "garbage_collector"),
    script("of those at work when a consumer died only the oldest message is blamed",
           "if i > #held - blamed then", "if i == #held then",
           "blame"),
    script("a message is buried for its neighbour",
           "if deaths[field] > most then to = buried end",
           "if deaths[field] > most or #buried > 0 then to = buried end",
           "blame"),
    script("each of equal messages is counted",
           "deaths[field] = before + 1", "deaths[field] = (deaths[field] or before) + 1",
           "blame"),
    code("a list is taken for an orphan at first sight", "garbage_collector.hpp",
         "std::ranges::set_intersection(found, m_suspects,",
         "std::ranges::set_intersection(found, found,",
         "garbage_collector"),
    code("another queue's list is taken for a consumer's", "garbage_collector.hpp",
         "key.text.starts_with(prefix) && detail::is_id(key.text.substr(prefix.size()))",
         "key.text.starts_with(prefix)",
         "collector_rights"),

    # What the user is told.
    code("flush does not wait", "detail/session_settling.hpp",
         "        return pending.empty();", "        return true;",
         "prefetch_and_deferred"),
    code("late deferred acks are not counted", "detail/unattended.hpp",
         "m_late_acks += message->deferred ? 1U : 0U;", "",
         "leases"),
    code("an unsettled guard rejects nothing", "message_guard.hpp",
         "std::exchange(m_session, nullptr)->abandon(m_delivery);", "m_session = nullptr;",
         "message_guard"),
    code("the buffer forgets what was refused", "detail/push_backlog.hpp",
         "        ++m_refused;", "        confirm_oldest(0);",
         "buffered_producer", "buffered_outages"),

    # Messages for later.
    Mutant("a scheduler takes first and pushes in a second step",
           (("detail/schedule.hpp",
             "    redis.call('LPUSH', KEYS[2], unpack(messages))\n", ""),
            ("detail/schedule.hpp",
             "return {#messages, wait, redis.call('ZCARD', KEYS[3])}",
             "return {#messages, wait, redis.call('ZCARD', KEYS[3]), messages}"),
            ("scheduler.hpp", "parts.size() != 3", "parts.size() != 4"),
            ("scheduler.hpp", "    return {parts[0].integer, std::chrono",
             "    for (const Reply& message : parts[3].elements) {\n"
             '        m_connection.command("", "LPUSH", m_keys.source(), message.text);\n'
             "    }\n"
             "    return {parts[0].integer, std::chrono")),
           ("scheduling --test-case='*in one step'",)),
    code("equal messages of one time collapse into one", "detail/schedule.hpp",
         "until redis.call('ZADD', scheduled, 'NX', due, struct.pack('>I8', number) .. message)"
         " == 1",
         "until redis.call('ZADD', scheduled, due, '12345678' .. message)",
         "scheduling --test-case='equal messages*'"),
    code("what is due goes to the queue the last first", "detail/schedule.hpp",
         "messages[#messages + 1] = string.sub(element, 9)",
         "table.insert(messages, 1, string.sub(element, 9))",
         "scheduling --test-case='a thousand*'"),
    code("what is scheduled earlier wakes nobody", "detail/schedule.hpp",
         "if not first or due < tonumber(first) then", "if not first then",
         "scheduling --test-case='*wakes a scheduler*'"),
    Mutant("what is due runs by the scheduler's clock",
           (("detail/schedule.hpp",
             "(#!lua flags=allow-oom\n"
             "local time = redis.call('TIME')\n"
             "local now = time[1] * 1000 + math.floor(time[2] / 1000)",
             "(#!lua flags=allow-oom\nlocal now = tonumber(ARGV[5])"),
            ("scheduler.hpp", "(memory + 3 * m_options.poll).count());",
             "(memory + 3 * m_options.poll).count(), job_time().time_since_epoch().count());")),
           ("scheduling --test-case='a delay runs*'",)),
    code("an occurrence is pushed by each process", "detail/recurrence.hpp",
         "if tonumber(ARGV[i]) > last then", "if true then",
         "recurring --test-case='of many who push*'"),
    code("a day of the month or a weekday must be both", "cron.hpp",
         "m_table.either_day ? month_day || weekday : month_day && weekday",
         "month_day && weekday",
         "cron"),

    # Jobs.
    Mutant("a job's error is not cut",
           (("job.hpp", "detail::to_utf8(detail::cut_text(job.last_error, "
             "detail::longest_last_error))", "job.last_error"),
            ("job.hpp", "detail::cut_text(error, detail::longest_last_error)", "error")),
           ("job",)),
    code("what a newer version of a job has besides is lost", "job.hpp",
         ".later = envelope.rest()}", ".later = {}}",
         "job"),
    code("a job is tried once too often", "retry.hpp",
         "if (attempt >= policy.max_attempts) {", "if (attempt > policy.max_attempts) {",
         "retry"),
    code("a job is tried however long it takes", "retry.hpp",
         "policy.retry_for.count() > 0 && delay > policy.retry_for - age", "false",
         "retry"),
    code("an ack leaves the lock", "unique.hpp",
         "if redis.call('GET', lock) == ARGV[1] then redis.call('DEL', lock) end", "",
         "unique --test-case='an ack releases*'"),
    code("a lock keeps nobody out", "unique.hpp",
         "if redis.call('EXISTS', lock) == 1 then return 0 end\n", "",
         "unique --test-case='while a job holds*'"),
    code("an ack releases whoever's lock", "unique.hpp",
         "if redis.call('GET', lock) == ARGV[1] then redis.call('DEL', lock) end",
         "redis.call('DEL', lock)",
         "unique --test-case='a late ack*'"),
    code("a queue becomes longer than its bound by one", "bounded_push.hpp",
         "if length >= most and ARGV[2] == 'refuse'", "if length > most and ARGV[2] == 'refuse'",
         "bounded_push"),
    code("a dead list of 10,000 keeps 9,999", "detail/dead_letters.hpp",
         "redis.call('LLEN', KEYS[1]) - ARGV[1], ARGV[2])",
         "redis.call('LLEN', KEYS[1]) - ARGV[1] + 1, ARGV[2])",
         "dead_list --test-case=trimmed*"),
    code("a dead list is trimmed by its length alone", "dead_list.hpp",
         "return limits.oldest.count() > 0 ? removed + purge(limits.oldest) : removed;",
         "return removed;",
         "dead_list --test-case=trimmed*"),
    code("progress stays for ever", "progress.hpp",
         "redis.call('PEXPIRE', key, ARGV[1])\n", "",
         "progress --test-case='*never stay'"),
    code("the time of a batch begins with each message", "batch.hpp",
         "            if (batch.empty()) {\n                deadline",
         "            {\n                deadline",
         "batch --test-case='*prolong*'"),

    # Workers.
    code("a failed job is acked, put off or not", "detail/job_settling.hpp",
         "settle([&](Guard& guard) { return retry(guard, policy, m_failure, crashes); });",
         "settle([&](Guard& guard) {\n"
         "        try {\n"
         "            return retry(guard, policy, m_failure, crashes);\n"
         "        } catch (const Error&) {\n"
         "            guard.ack();\n"
         "            throw;\n"
         "        }\n"
         "    });",
         "jiggler_defects --test-case=4:*"),
    code("a crash is no attempt", "detail/job_settling.hpp",
         "crashes = m_queue.recoveries(payload);", "",
         "worker_faults --test-case='the crash*'"),
    code("what expired is handled", "detail/job_settling.hpp",
         "if (m_context->expires_at && m_context->expired(job_time())) {", "if (false) {",
         "worker --test-case=*nobody*needs*"),
    code("what is delivered at most once is acked behind its handler", "detail/job_settling.hpp",
         "        return ack();\n    }\n    if (m_context.lease_valid())",
         "        return true;\n    }\n    if (m_context.lease_valid())",
         "worker_faults --test-case='at most once*'"),
    code("what is thrown and no std::exception passes", "detail/thrown.hpp",
         '        return tell(std::string_view("an exception that is no std::exception"));',
         "        throw;",
         "worker --test-case='*handler fails*'"),
    code("what does not end in time goes where new jobs go", "detail/job_settling.hpp",
         "        return (*guard)->release();", "        return push_after(**guard, {});",
         "worker_stop --test-case='what does not end in time*'"),
    code("a job that was given back counts twice", "detail/job_settling.hpp",
         "        m_context.m_worker = SettledBy::giving_back;\n", "",
         "worker_telling --test-case='*given back*'"),
    code("jobs are given back while they end", "detail/worker_core.hpp",
         "if (!pool.await_end(deadline)) {", "if (!pool.await_end(Clock::now())) {",
         "worker_stop --test-case='a stop waits*'"),
    code("no handler is told of a stop", "detail/worker_core.hpp",
         "    shared->stop.request_stop();", "   ",
         "worker_stop --test-case='a stop waits*'"),
    code("a second signal does nothing", "detail/signals.hpp",
         "stop_signal().exchange(number) != 0", "stop_signal().exchange(number) == -2",
         "signals"),
    code("signals stay the worker's", "detail/signals.hpp",
         "    ~Signals() {\n        std::ranges::for_each(numbers, put_back);", "    ~Signals() {",
         "signals"),
    code("the queue that was given first is served last", "detail/queue_order.hpp",
         "m_indices.push_back(m_indices.size());",
         "m_indices.insert(m_indices.begin(), m_indices.size());",
         "queue_order"),
    code("the heavier queue is the less often first", "detail/queue_order.hpp",
         "std::exponential_distribution<double>(m_weights[i])",
         "std::exponential_distribution<double>(1 / m_weights[i])",
         "queue_order"),
    code("jobs are fetched for threads that are busy", "detail/consumer_queue.hpp",
         "m_consumer->limit(bounded(jobs_for(m_free)));", "m_consumer->limit(most_ahead());",
         "worker_order --test-case='a fetch takes*'"),
    code("who is quiet fetches", "detail/dispatcher.hpp",
         "    m_quiet = true;\n    cancel_waiting();\n", "    cancel_waiting();\n",
         "worker_process --test-case=SIGTSTP*"),
    code("nobody is woken when a queue is resumed", "detail/dispatcher.hpp",
         "    if (place_of(queue).source.resume()) {\n        tell_news();\n    }",
         "    place_of(queue).source.resume();",
         "worker_order --test-case='all workers of a queue pause*'"),
]
