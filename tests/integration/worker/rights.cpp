// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Which commands each class needs: takes one right after the other from a user who has all, and
// compares what is refused then with the table in examples/core.md.

#include "integration/worker/worker_fixture.hpp"
#include "support/elapsed.hpp"
#include "support/library_scripts.hpp"
#include "support/redis_client.hpp"

#include <orizuru/buffered_producer.hpp>
#include <orizuru/detail/base/at_exit.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/limits/rate_limit.hpp>
#include <orizuru/once.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/sharded.hpp>
#include <orizuru/worker/limit.hpp>
#include <orizuru/worker/recur.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rights_test {

using namespace orizuru;
using namespace std::chrono_literals;
using orizuru::test::Answer;
using orizuru::test::contains;
using orizuru::test::holds_within;
using orizuru::test::RedisClient;
using orizuru::test::Texts;
using orizuru::test::WorkerFixture;

#ifdef SOURCE_ROOT
const std::filesystem::path source_root = SOURCE_ROOT;
#else
const std::filesystem::path source_root = ".";
#endif

using Names = std::set<std::string>;

// On an idle machine, for what is neither done nor refused.
constexpr auto long_enough = 3s;

struct Row {
    std::string name;
    /// Writes what there is before, as a user who may do everything.
    std::function<void(const std::string& uri, RedisClient&)> prepare;
    /// Throws ReplyError where a right is missing.
    std::function<void(const std::string& uri)> use;
    std::vector<std::string> bases = {}; ///< names of rows whose rights it needs, too
};

Recurrence<Job<Raw>> hourly() {
    return {.name = "hourly", .cron = Cron("0 * * * *"), .message = [](std::chrono::sys_seconds) {
                return make_job(Raw{"recurring"});
            }};
}

void nothing(const std::string& /*uri*/, RedisClient& /*redis*/) {}
void leave_messages(const std::string& /*uri*/, RedisClient& redis) {
    redis.lpush("q", {"a", "b", "c", "d", "e", "f"});
}
void leave_a_job(const std::string& uri, RedisClient& /*redis*/) {
    JobProducer<Raw>(uri, "q").push({"a"}, {.unique = "u"});
}
/// Its end is that of its group.
void leave_a_member(const std::string& uri, RedisClient& /*redis*/) {
    JobGroup group(uri, "q", {.then = GroupThen("{q}then", Raw{"then"}), .on_dead = OnDead::count});
    group.push("q", Raw{"member"});
    group.commit();
}
void leave_a_job_and_a_member(const std::string& uri, RedisClient& redis) {
    leave_a_job(uri, redis);
    leave_a_member(uri, redis);
}
void leave_jobs(const std::string& uri, RedisClient& redis) {
    JobProducer<Raw> producer(uri, "q");
    producer.push({"rejected"});
    redis.command({"RENAME", "q", "orizuru:{q}:unack"});
    producer.push({std::string(100'000, 'x')}, {.unique = "u"}); // too large for a script
    producer.push({"bad"});
    leave_a_member(uri, redis);
    const std::string cancelled = *producer.push({"cancelled"});
    redis.command({"HSET", "orizuru:{q}:cancelled", cancelled, "99999999999999 why"});
    redis.command({"HSET", "orizuru:{q}:recurring", "hourly", "5"});
}
void leave_scheduled_jobs(const std::string& uri, RedisClient& redis) {
    leave_a_member(uri, redis);
    const std::string member = redis.command({"LPOP", "q"}).text;
    redis.command(
        {"ZADD", "orizuru:{q}:scheduled", "99999999999999", std::string(8, '\0') + member});
    JobProducer<Raw> producer(uri, "q");
    producer.push({"a"}, {.delay = 1h, .unique = "u"});
    producer.push({"b"}, {.delay = 1ms});
    std::this_thread::sleep_for(2ms);
}
void leave_the_dead(const std::string& uri, RedisClient& redis) {
    leave_a_job(uri, redis);
    Consumer<Raw> consumer(uri, "q");
    consumer.next()->bury("bad");
    JobGroup group(uri, "q", {.then = GroupThen("{q}then", Raw{"then"})});
    group.push("q", Raw{"member"});
    group.commit();
    consumer.next()->bury("bad");
    leave_messages(uri, redis);
    for (int i = 0; i < 5; ++i) {
        consumer.next()->bury("bad");
    }
}
void leave_a_recurrence(const std::string& /*uri*/, RedisClient& redis) {
    redis.command({"HSET", "orizuru:{q}:recurring", "hourly", "5"});
}
void leave_a_dead_consumer(const std::string& /*uri*/, RedisClient& redis) {
    redis.command({"SADD", "orizuru:{q}:consumers", "id"});
    redis.lpush("orizuru:{q}:processing:id", {"orz:0123456789abcdef:0", "a", "b"});
    redis.lpush("orizuru:{q}:unack", {"c"});
}

void leave_a_full_dead_list(const std::string& uri, RedisClient& redis) {
    leave_a_job(uri, redis);
    Consumer<Raw>(uri, "q").next()->bury("bad");
    leave_a_dead_consumer(uri, redis);
    leave_a_member(uri, redis);
    const std::string member = redis.command({"RPOP", "q"}).text;
    redis.command({"LINSERT", "orizuru:{q}:processing:id", "AFTER", "a", member});
}

/// Runs until a command shows the result, or the first exception.
void run_until(const std::function<void(std::stop_token)>& runs, const Texts& command,
               const std::function<bool(const Answer&)>& shows) {
    std::stop_source stop;
    std::atomic<bool> ended{false};
    const std::jthread watch([&] {
        RedisClient redis(orizuru::test::server().uri());
        static_cast<void>(
            holds_within(long_enough, [&] { return ended || shows(redis.command(command)); }));
        stop.request_stop();
    });
    const auto at_end = orizuru::detail::at_exit([&] { ended = true; });
    runs(stop.get_token());
}
void produce(const std::string& uri) {
    Producer<Raw> producer(uri, "q");
    producer.push({"a"});
    producer.push_all({Raw{"b"}, Raw{"c"}});
    static_cast<void>(producer.size());
}
void produce_buffered(const std::string& uri) {
    BufferedProducer<Raw> producer(uri, "q");
    producer.push({"a"});
    producer.flush();
}
void produce_jobs(const std::string& uri) {
    JobProducer<Raw>(uri, "q").push_all({Raw{"a"}, Raw{"b"}});
}
void produce_groups(const std::string& uri) {
    for (const bool any : {false, true}) {
        JobGroup group(uri, "q", {.then = GroupThen("q", Raw{"then"})});
        if (any) {
            group.push("q", Raw{"a"});
        }
        group.commit();
        static_cast<void>(group.state());
    }
}
void produce_later(const std::string& uri) {
    Producer<Raw> producer(uri, "q");
    push_after(producer, 1h, Raw{"a"});
    push_after(producer, 0ms, Raw{"a"});
}
void produce_unique_jobs(const std::string& uri) {
    Producer<Job<Raw>> producer(uri, "q");
    auto job = make_job(Raw{"a"});
    push_unique_after(producer, "u", 1h, job);
    push_unique(producer, "v", job);
    job.unique_id = "v";
    extend_unique(producer, job, 2h);
}
void produce_within_a_bound(const std::string& uri) {
    Producer<Raw> producer(uri, "q");
    for (int i = 0; i < 2; ++i) {
        static_cast<void>(push_bounded(producer, Raw{"a"}, {1, Overflow::drop_oldest}));
    }
}
void consume(const std::string& uri) {
    {
        Consumer<Raw> consumer(uri, "q");
        consumer.next()->ack();
        consumer.next()->reject();
        consumer.next()->release();
        consumer.next()->push("other");
        consumer.next()->bury();
        static_cast<void>(consumer.size());
    }
    std::atomic<bool> beaten{false};
    Consumer<Raw> consumer(
        uri, "q", {.lease = 100ms, .prefetch = 3, .ack = AckMode::deferred, .on_beat = [&] {
                       beaten = true;
                   }});
    while (auto guard = consumer.next(40ms)) {
        guard->ack();
    }
    consumer.flush();
    static_cast<void>(holds_within(long_enough, [&] { return beaten.load(); }));
}
void consume_batches(const std::string& uri) {
    Consumer<Raw> consumer(uri, "q");
    for (auto& guard : next_batch(consumer, {.size = 10, .time = 5ms})) {
        guard.ack();
    }
}
void put_off(const std::string& uri) {
    Consumer<Job<Raw>> consumer(uri, "q");
    auto guard = *consumer.next();
    retry(guard, {.backoff = backoff::fixed(1h)}, "failed");
    auto member = *consumer.next();
    retry(member, {.max_attempts = 1, .exhausted = Exhausted::discard}, "failed");
}
void ack_unique_jobs(const std::string& uri) {
    Consumer<Job<Raw>> consumer(uri, "q");
    for (int i = 0; i < 2; ++i) {
        auto guard = *consumer.next();
        ack_unique(guard);
    }
}
void bury_a_member(const std::string& uri) { Consumer<Raw>(uri, "q").next()->bury(); }
void collect(const std::string& uri) {
    const GarbageCollectorOptions options{
        .max_recoveries = 0, .grace = 0ms, .dead_limit = 1, .on_event = [](const Event&) {}};
    run_until([&](const auto& stop) { GarbageCollector(uri, "q", options).run(stop, 5ms); },
              {"LLEN", "orizuru:{q}:unack"},
              [](const Answer& length) { return length.integer == 0; });
    GarbageCollector(uri, "q", options).collect();
}
void schedule(const std::string& uri) {
    Scheduler scheduler(uri, "q");
    scheduler.move_due();
    run_until([&](const auto& stop) { scheduler.run(stop); }, {"CLIENT", "LIST"},
              [](const Answer& clients) { return contains(clients.text, "cmd=blpop"); });
}
void recur(const std::string& uri) {
    for (const std::string name : {"hourly", "new"}) {
        auto recurrence = hourly();
        recurrence.name = name;
        Recurring<Job<Raw>>(uri, "q", {recurrence}).push_due();
    }
}
void look_after_the_dead(const std::string& uri) {
    DeadList dead(uri, "q");
    static_cast<void>(dead.size());
    dead.redrive(dead.list(0, 1).at(0));
    for (int i = 0; i < 2; ++i) {
        dead.remove(dead.list(0, 10).back()); // the unique one, and the member
    }
    dead.redrive_all(1);
    dead.trim({.most = 2});
    dead.purge(0ms);
    dead.purge();
}
void leave_in_all_places(const std::string& uri, RedisClient& redis) {
    leave_the_dead(uri, redis);
    redis.command({"RPUSH", "q", "a"});
    leave_scheduled_jobs(uri, redis);
    leave_a_dead_consumer(uri, redis);
    redis.lpush("orizuru:{q}:suspects", {"a", "b", "c", "d", "e", "f"});
    Job<Raw> job = make_job(Raw{"x"});
    for (const char* const key : {"orizuru:{q}:unack", "orizuru:{q}:processing:id"}) {
        job.id = key;
        redis.lpush(key, {WorkerFixture::bytes_of(job)});
    }
}
void inspect(const std::string& uri) {
    Inspector inspector(uri);
    static_cast<void>(inspector.queues());
    inspector.forget("q");
    static_cast<void>(inspector.state("q"));
    static_cast<void>(inspector.consumers("q"));
    static_cast<void>(inspector.counts("q"));
    static_cast<void>(inspector.days("q", 2));
    static_cast<void>(inspector.workers("q"));
    static_cast<void>(inspector.keys("q", 0, 9));
    static_cast<void>(inspector.key("q", "k"));
    static_cast<void>(inspector.groups("q", 0, 9));
    static_cast<void>(inspector.peek("q", Place::held, 0, 10));
    inspector.cancel("q", "orizuru:{q}:unack");
    inspector.cancel("q", "orizuru:{q}:processing:id");
    inspector.remove_if(
        "q", Place::scheduled, [](const PlacedMessage&) { return false; }, 1);
    for (const Place place :
         {Place::waiting, Place::scheduled, Place::rejected, Place::suspected, Place::dead}) {
        const std::vector<PlacedMessage> found = inspector.peek("q", place, 0, 10);
        inspector.remove("q", found.back()); // unique, of those scheduled and dead
        inspector.run_now("q", found.front());
    }
    static_cast<void>(inspector.find_queues());
    static_cast<void>(inspector.find("q", "id", 10));
    const auto any = [](const PlacedMessage&) { return true; };
    for (const Place place :
         {Place::dead, Place::waiting, Place::rejected, Place::suspected, Place::scheduled}) {
        for (const PlacedMessage& message : inspector.peek("q", place, 0, 1)) {
            inspector.move("q", message, "r");
        }
        inspector.run_if("q", place, any, 1);
        inspector.remove_if("q", place, any, 1);
        inspector.clear("q", place);
    }
}
void look_after_the_scheduled(const std::string& uri) {
    ScheduledList scheduled(uri, "q");
    static_cast<void>(scheduled.size());
    const auto entries = scheduled.list(0, 3);
    scheduled.run_now(entries.at(0));
    scheduled.cancel(entries.at(1));
    scheduled.cancel(entries.at(2));
}
void pause(const std::string& uri) {
    Pause pause(uri, "q");
    pause.pause();
    static_cast<void>(pause.paused());
    pause.resume();
}
void progress(const std::string& uri) {
    Progress progress(uri, "q");
    progress.set("id", 0.5);
    static_cast<void>(progress.get("id"));
    progress.set_result("id", "x");
    static_cast<void>(progress.result("id"));
}
void take_permits(const std::string& uri) { static_cast<void>(RateLimit(uri, "q", {}).take()); }
void claim(const std::string& uri) {
    Once once(uri, "q");
    static_cast<void>(once.run("done", [] {}));
    const Claim mine = once.claim("released");
    once.renew();
    once.release(mine.token);
}
void claim_messages(const std::string& uri) {
    Once once(uri, "q");
    Consumer<Raw> consumer(uri, "q");
    auto guard = *consumer.next();
    once.run(guard, "done", [] {});
    const Claim other = once.claim("busy");
    auto busy = *consumer.next();
    once.run(busy, "busy", [] {});
}
/// They note how many jobs have ended, and whether anything was refused.
WorkerOptions options_that_note(std::atomic<int>& done, std::atomic<bool>& refused) {
    const auto on_event = [&](const WorkerEvent& event) {
        using enum WorkerEventKind;
        done += event.kind == succeeded || event.kind == died ? 1 : 0;
        refused = refused || (event.kind != consumer && contains(event.detail, "NOPERM"));
    };
    return {.stop_timeout = 100ms,
            .signal_handling = SignalHandling::none,
            .recheck = 10ms,
            .collect_interval = 10ms,
            .on_event = on_event};
}
void work(const std::string& uri) {
    std::atomic<int> done{0};
    std::atomic<bool> refused{false};
    Worker worker(uri, options_that_note(done, refused));
    const auto handler = [](JobContext<Raw>& job) {
        if (job->payload.bytes == "bad") {
            throw DoNotRetry("bad");
        }
        if (job->payload.bytes.size() > 1000 && job.attempt() == 1) {
            job.progress(0.5);
            job.extend_unique(2h);
            throw std::runtime_error("again");
        }
    };
    worker.handle<Raw>("q", handler, {.retry = {.backoff = backoff::fixed(1ms)}, .prefetch = 2})
        .recur<Raw>("q", {hourly()});
    orizuru::test::Running running(worker);
    const auto over = [&] { return refused || running.ended(0ms); };
    const bool all = holds_within(long_enough, [&] { return over() || done == 6; });
    // One that finishes a large job looks for the next by LMOVE, unless another thread does.
    RedisClient redis(orizuru::test::server().uri());
    static_cast<void>(holds_within(long_enough, [&] {
        if (over() || contains(redis.command({"INFO", "commandstats"}).text, "cmdstat_lmove:")) {
            return true;
        }
        const std::string large = WorkerFixture::bytes_of(make_job(Raw{std::string(100'000, 'x')}));
        redis.lpush("q", {large, large});
        return false;
    }));
    static_cast<void>(holds_within(
        long_enough, [&] { return over() || !redis.exists("orizuru:{q}:cancelled"); }));
    running.stop();
    if (refused || !all) {
        throw ReplyError("NOPERM", "of a worker");
    }
}

void produce_with_keys(const std::string& uri) {
    KeyedJobProducer<Raw>(uri, "q").push_all("a", std::vector<Raw>{{"a"}, {"b"}});
}
/// One that is dead holds up those of its key; one has no ticket; one is to die; two are a burst.
void leave_jobs_with_keys(const std::string& uri, RedisClient& redis) {
    KeyedJobProducer<Raw> producer(uri, "q");
    producer.push_all("a", std::vector<Raw>{{"dead"}, {"b"}});
    Consumer<Raw>(uri, "q").next()->bury("by one who knows of no keys");
    producer.push("c", {"bad"});
    producer.push_all("e", std::vector<Raw>{{"e"}, {"f"}});
    Job<Raw> job = make_job(Raw{"d"});
    job.key = "d";
    redis.lpush("q", WorkerFixture::bytes_of(job));
}
void work_with_keys(const std::string& uri) {
    std::atomic<int> done{0};
    std::atomic<bool> refused{false};
    Worker worker(uri, options_that_note(done, refused));
    worker.handle_keyed<Raw>("q",
                             [](const Raw& payload) {
                                 if (payload.bytes == "bad") {
                                     throw DoNotRetry("bad");
                                 }
                             },
                             {}, {.burst = 2});
    orizuru::test::Running running(worker);
    const bool all =
        holds_within(long_enough, [&] { return refused || running.ended(0ms) || done == 5; });
    running.stop();
    if (refused || !all) {
        throw ReplyError("NOPERM", "of a worker");
    }
}

/// Another process has the only slot.
void leave_limited_jobs(const std::string& uri, RedisClient& redis) {
    JobProducer<Raw> producer(uri, "q");
    producer.push({"a"});
    producer.push({"b"});
    redis.command({"ZADD", "orizuru:{q}:slots", "1", "200 other 1"});
}
void work_within_limits(const std::string& uri) {
    std::atomic<int> done{0};
    std::atomic<bool> refused{false};
    Worker worker(uri, options_that_note(done, refused));
    worker.handle<Raw>("q", [](const Raw&) {}, {.lease = 200ms})
        .limit("q", {.concurrency = 1, .rate = {{.most = 1000}}});
    orizuru::test::Running running(worker);
    const bool all =
        holds_within(long_enough, [&] { return refused || running.ended(0ms) || done == 2; });
    running.stop();
    if (refused || !all) {
        throw ReplyError("NOPERM", "of a worker");
    }
}

void create_two_shards(const std::string& uri, RedisClient& /*redis*/) {
    create_shards(uri, "q", 2);
}
void produce_over_shards(const std::string& uri) {
    ShardedProducer<Raw> producer(uri, "q");
    producer.push({"a"});
    producer.push("key", {"b"});
    producer.push_all({Raw{"c"}, Raw{"d"}});
    producer.reload();
}
void change_shards(const std::string& uri) {
    create_shards(uri, "q", 12);
    add_shards(uri, "q", 4);
    use_shards(uri, "q", 4);
    retire_shards(uri, "q");
    add_shards(uri, "q", 12); // opens them again
    static_cast<void>(shards(uri, "q"));
}

const std::string consumer_row = "`Consumer`, `MessageGuard`";
const std::vector<Row> rows{
    {"`Producer`", nothing, produce},
    {"`ShardedProducer`", create_two_shards, produce_over_shards},
    {"`create_shards`, `add_shards`, `use_shards`, `retire_shards`", nothing, change_shards},
    {"`BufferedProducer`", nothing, produce_buffered},
    {"`JobProducer`", nothing, produce_jobs},
    {"`KeyedJobProducer`", nothing, produce_with_keys},
    {"`JobGroup`", nothing, produce_groups},
    {"a push for later", nothing, produce_later},
    {"a push within a bound", leave_a_job_and_a_member, produce_within_a_bound},
    {"a unique push, `extend_unique`", nothing, produce_unique_jobs},
    {consumer_row, leave_messages, consume},
    {"`next_batch`", leave_messages, consume_batches, {consumer_row}},
    {"`retry`, `push_after` of a guard", leave_a_job_and_a_member, put_off, {consumer_row}},
    {"`ack_unique`", leave_a_job_and_a_member, ack_unique_jobs, {consumer_row}},
    {"`bury` of a member of a group", leave_a_member, bury_a_member, {consumer_row}},
    {"`Once`", nothing, claim},
    {"`Once` with a guard", leave_messages, claim_messages, {consumer_row, "`Once`"}},
    {"`GarbageCollector`", leave_a_full_dead_list, collect},
    {"`Scheduler`", leave_scheduled_jobs, schedule},
    {"`Recurring`", leave_a_recurrence, recur},
    {"`Inspector`", leave_in_all_places, inspect},
    {"`DeadList`", leave_the_dead, look_after_the_dead},
    {"`ScheduledList`", leave_scheduled_jobs, look_after_the_scheduled},
    {"`Pause`", nothing, pause},
    {"`Progress`", nothing, progress},
    {"`RateLimit`", nothing, take_permits},
    {"`Worker`", leave_jobs, work, {consumer_row, "`GarbageCollector`", "`Scheduler`"}},
    {"`handle_keyed` of a `Worker`", leave_jobs_with_keys, work_with_keys, {"`Worker`"}},
    {"`limit` of a `Worker`", leave_limited_jobs, work_within_limits, {"`Worker`"}},
};

Names without(Names names, const Names& others) {
    std::erase_if(names, [&](const auto& name) { return others.contains(name); });
    return names;
}

struct Clerk : WorkerFixture {
    ~Clerk() { redis.try_command({"ACL", "DELUSER", "clerk"}); }

    /// Whether it is refused to a user who may do everything, or everything but this.
    bool refused(const Row& row, const std::string& command) {
        return refused(row, Texts{"+@all", command.empty() ? "+@all" : "-" + command});
    }
    /// Returns whether it is refused to a user who has no other rights.
    bool refused(const Row& row, const Names& commands) {
        Texts rules{"-@all", "+auth", "+client|list"};
        for (const std::string& command : commands) {
            rules.push_back("+" + command);
        }
        return refused(row, rules);
    }
    bool refused(const Row& row, const Texts& rules) {
        redis.flushall();
        row.prepare(uri, redis);
        redis.command({"SCRIPT", "FLUSH"});
        Texts command{"ACL", "SETUSER", "clerk", "reset", "on", ">x", "~*", "&*"};
        command.insert(command.end(), rules.begin(), rules.end());
        redis.command(command);
        redis.command({"CONFIG", "RESETSTAT"});
        try {
            row.use("unix://clerk:x@" + orizuru::test::server().socket_path() +
                    "?command_timeout=300");
            return false;
        } catch (const ReplyError& error) {
            CHECK_MESSAGE(error.code() == "NOPERM", error.what());
            return true;
        }
    }
    /// The commands that Redis has run since.
    Names run() {
        static const std::regex line("cmdstat_([^:]+):calls=[1-9]");
        const std::string stats = redis.command({"INFO", "commandstats"}).text;
        Names names;
        for (std::sregex_iterator at(stats.begin(), stats.end(), line), end; at != end; ++at) {
            names.insert((*at)[1]);
        }
        return without(names, {"auth", "client|list", "config|resetstat"}); // everybody's, and ours
    }
};

std::string listed(const Names& names, const std::string& before = "") {
    std::string text = before;
    for (std::string name : names) {
        std::ranges::transform(name, name.begin(),
                               [](unsigned char c) { return c == '|' ? ' ' : std::toupper(c); });
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

TEST_CASE_FIXTURE(Clerk, "the table of rights lists what is refused to a user without it") {
    std::map<std::string, Names> run_by;
    Names candidates;
    for (const auto& [name, script] : orizuru::test::library_scripts()) {
        static const std::regex call(R"(redis\.p?call\('([A-Z]+)')");
        for (std::sregex_iterator at(script.begin(), script.end(), call), end; at != end; ++at) {
            std::string command = (*at)[1];
            std::ranges::transform(command, command.begin(),
                                   [](unsigned char c) { return std::tolower(c); });
            candidates.insert(command);
        }
    }
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK_FALSE(refused(row, ""));
        run_by[row.name] = run();
        candidates.insert(run_by[row.name].begin(), run_by[row.name].end());
    }
    std::map<std::string, Names> needed_by;
    std::map<std::string, Names> granted_by; ///< by the whole row
    std::map<std::string, Names> dispensable_for;
    std::vector<std::pair<std::string, std::string>> lines; // classes, and the rest
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Names& needed = needed_by[row.name];
        std::ranges::copy_if(candidates, std::inserter(needed, needed.end()),
                             [&](const auto& command) { return refused(row, command); });
        dispensable_for[row.name] = without(run_by[row.name], needed);
        Names more = needed;
        Names& all = granted_by[row.name];
        all = needed;
        Names dispensable = dispensable_for[row.name];
        std::string as;
        for (const std::string& base : row.bases) {
            more = without(more, needed_by.at(base));
            dispensable =
                without(without(dispensable, needed_by.at(base)), dispensable_for.at(base));
            as += (as.empty() ? "as " : ", ") + base;
            all.insert(granted_by.at(base).begin(), granted_by.at(base).end());
        }
        CHECK_FALSE(refused(row, all));
        const std::string rest = listed(more, as) + " | " + listed(dispensable);
        if (!lines.empty() && lines.back().second == rest) {
            lines.back().first += ", " + row.name;
        } else {
            lines.emplace_back(row.name, rest);
        }
    }
    std::string table = "| | needs | does without |\n|---|---|---|\n";
    for (const auto& [names, rest] : lines) {
        table += "| " + names + " | " + rest + " |\n";
    }
    std::ifstream file(source_root / "examples/core.md");
    const std::string document(std::istreambuf_iterator<char>(file), {});
    CHECK_MESSAGE(contains(document, "\n\n" + table + "\n"), "it should be:\n" << table);
}

} // namespace rights_test
