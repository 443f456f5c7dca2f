// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages of a ledger's jobs that are lost while Redis keeps the ledger's mark: they were removed
// or buried. Messages that are only late are left alone.

#include "integration/postgres/ledger_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/detail/postgres/statement.hpp>
#include <orizuru/jobs/job.hpp>
#include <orizuru/postgres/ledger.hpp>
#include <orizuru/postgres/ledger_reconciler.hpp>
#include <orizuru/postgres/schema.hpp>
#include <orizuru/producer.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>
#include <msgpack.hpp>
#include <pqxx/pqxx>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace ledger_losses_test {

using namespace orizuru;
using namespace orizuru::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

using Outcomes = std::vector<LedgerOutcome>;

struct Losing : LedgerFixture {
    Ledger<std::string> ledger{database, "q", options()};

    std::vector<std::string> submit(int count) {
        std::vector<std::string> jobs;
        pqxx::work transaction(postgres_connection);
        for (int i = 0; i < count; ++i) {
            jobs.push_back(ledger.submit(transaction, "x" + std::to_string(i)));
        }
        transaction.commit();
        return jobs;
    }
    std::string submit_one() { return submit(1)[0]; }
    /// Ids of the jobs in the queue, the next to be served first.
    std::vector<std::string> queued() {
        Scratch scratch;
        std::vector<std::string> jobs;
        for (const std::string& message : waiting()) {
            jobs.push_back(Codec<Job<std::string>>::decode(message, scratch).id);
        }
        return jobs;
    }
    LedgerReconcilerOptions searching(std::chrono::milliseconds sweep = 100ms) {
        LedgerReconcilerOptions chosen = reconciling();
        chosen.sweep = sweep;
        chosen.retry.backoff = backoff::fixed({});
        return chosen;
    }
    std::jthread running(const LedgerReconcilerOptions& chosen) {
        return std::jthread([=, this](const std::stop_token& token) {
            LedgerReconciler(database, uri, chosen).run(token);
        });
    }
    /// One pass of a reconciler that has not searched before.
    Reconciled pass(std::chrono::milliseconds backoff = {}) {
        LedgerReconcilerOptions chosen = searching();
        chosen.retry.backoff = backoff::fixed(backoff);
        return LedgerReconciler(database, uri, chosen).reconcile();
    }
    /// One pass of a reconciler with a sweep of a minute; returns how many messages it has sent
    /// again.
    std::uint64_t lost_in_minutes() {
        return LedgerReconciler(database, uri, searching(1min)).reconcile().lost;
    }
    void reconcile_only() { LedgerReconciler(database, uri, reconciling()).reconcile(); }
    /// Makes it look as if all jobs so far had been submitted and sent this much earlier.
    void let_pass(const std::string& time) {
        sql("ALTER TABLE orizuru_ledger DISABLE TRIGGER USER; "
            "UPDATE orizuru_ledger SET sent_at = sent_at - interval '" +
            time + "', created_at = created_at - interval '" + time +
            "'; ALTER TABLE orizuru_ledger ENABLE TRIGGER USER");
    }
    /// Has a program that cannot read them bury all messages of the queue.
    int bury_all() {
        const auto before = redis.llen(dead);
        const auto all = redis.llen("q");
        Consumer<Job<std::vector<int>>> older(uri, "q");
        const auto bury_those_at_hand = [&] {
            while (true) {
                try {
                    if (!older.next(0ms)) {
                        return;
                    }
                } catch (const DecodeError&) { // NOLINT(bugprone-empty-catch)
                }
            }
        };
        CHECK(eventually([&] {
            bury_those_at_hand();
            return redis.llen(dead) == before + all;
        }));
        return static_cast<int>(all);
    }
    std::int64_t redis_ms() {
        const Reply time = Connection(Endpoint(uri)).command({}, "TIME");
        return std::stoll(time.elements[0].text) * 1000 + std::stoll(time.elements[1].text) / 1000;
    }
    void die(const std::string& payload, const std::string& reason, std::int64_t time) {
        msgpack::sbuffer entry;
        msgpack::packer packer(entry);
        packer.pack_array(4);
        packer.pack(1);
        packer.pack(payload);
        packer.pack(reason);
        packer.pack(time);
        redis.command({"LPUSH", dead, std::string(entry.data(), entry.size())});
    }
    std::string message(const std::string& id) {
        return pqxx::nontransaction(postgres_connection)
            .exec("SELECT encode(payload, 'hex') FROM orizuru_ledger WHERE id = '" + id + "'")[0][0]
            .as<std::string>();
    }
    std::string bytes_of(const std::string& id) { return detail::from_hex(message(id)); }
    std::string error(const std::string& id) { return ledger.find(id)->error; }
    int jobs_in(const std::string& state) {
        return number("SELECT count(*) FROM orizuru_ledger WHERE state = '" + state + "'");
    }
};

TEST_CASE_FIXTURE(Losing, "a job whose message is gone alone is sent again, and runs once") {
    const auto thread = running(searching(200ms));
    const auto jobs = submit(3);
    REQUIRE(eventually([&] { return redis.llen("q") == 3; }));
    redis.del("q");
    CHECK(eventually([&] { return redis.llen("q") == 3; }));
    CHECK(queued() == jobs);
    CHECK(handle_all(ledger) == Outcomes(3, LedgerOutcome::completed));
    CHECK(jobs_in("completed") == 3);
}

TEST_CASE_FIXTURE(Losing, "a job whose message is gone is sent again although others are served") {
    const std::string lost = submit_one();
    reconcile_only();
    redis.del("q");
    const std::string later = submit_one();
    reconcile_only();
    CHECK(eventually([&] {
        pass();
        return redis.llen("q") == 2;
    }));
    CHECK(queued() == std::vector{later, lost});
}

TEST_CASE_FIXTURE(Losing, "a job whose message an older consumer has buried fails with its "
                          "reason, try by try") {
    const std::string id = submit_one();
    reconcile_only();
    CHECK(bury_all() == 1);
    const Reconciled first = pass(1s);
    CHECK(first.buried == 1);
    CHECK(first.sent == 0);
    CHECK(state(id) == "failed");
    CHECK(contains(error(id), "undecodable: std::vector<int"));
    CHECK(contains(error(id), "is read from an array, the payload is "));
    CHECK(changes(id) == ">pending pending>running running>failed");
    const LedgerChange failed = ledger.history(id).back();
    CHECK(failed.note == error(id));
    CHECK(failed.who.starts_with("reconciler:"));
    CHECK(ledger.find(id)->attempt == 1);
    CHECK(*ledger.find(id)->due - failed.at >= 990ms);
    CHECK(pass().sent == 0);
    CHECK(eventually([&] { return pass().sent == 1; }));
    CHECK(bury_all() == 1);
    CHECK(pass().sent == 1); // the second try has failed and is due
    CHECK(bury_all() == 1);
    CHECK(pass().died == 1);
    CHECK(pass().died == 0);
    CHECK(state(id) == "dead");
    CHECK(ledger.find(id)->attempt == 3);
    CHECK(redis.llen(dead) == 3);
    CHECK(redis.llen("q") == 0);
    CHECK(count(LedgerEventKind::buried) == 2);
    CHECK(count(LedgerEventKind::died) == 1);
}

TEST_CASE_FIXTURE(Losing, "a job whose message is buried for longer than it may fail is dead") {
    const std::string id = submit_one();
    reconcile_only();
    LedgerReconcilerOptions chosen = searching();
    chosen.retry.retry_for = 1ms;
    CHECK(bury_all() == 1);
    CHECK(LedgerReconciler(database, uri, chosen).reconcile().buried == 1);
    CHECK(bury_all() == 1);
    CHECK(
        eventually([&] { return LedgerReconciler(database, uri, chosen).reconcile().died == 1; }));
    CHECK(ledger.find(id)->attempt == 2);
}

TEST_CASE_FIXTURE(Losing, "a job whose message was buried by hand comes again, and runs once") {
    const std::string id = submit_one();
    reconcile_only();
    CHECK(Consumer<Job<std::string>>(uri, "q").next(0ms)->bury("no \xff\0 money"s));
    pass();
    CHECK(error(id) == "no \xef\xbf\xbd\xef\xbf\xbd money");
    pass();
    CHECK(handle_all(ledger) == Outcomes{LedgerOutcome::completed});
    for (int i = 0; i < 3; ++i) {
        pass();
    }
    CHECK(state(id) == "completed");
    CHECK(effects(id) == 1);
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(Losing, "a backlog that is long is not sent again, however old it is") {
    const auto jobs = submit(1500);
    reconcile_only();
    submit(500);
    reconcile_only();
    let_pass("1 h");
    const std::string late = submit_one();
    reconcile_only();
    for (int i = 0; i < 3; ++i) {
        CHECK(pass().sent == 0);
    }
    CHECK(redis.llen("q") == 2001);
    CHECK(queued().back() == late);
    CHECK(number("SELECT count(*) FROM orizuru_ledger_queue WHERE gone_before IS NOT NULL") == 0);
}

TEST_CASE_FIXTURE(Losing,
                  "a backlog is left alone when an old message has come back to its front") {
    const std::string first = submit_one();
    reconcile_only();
    {
        Consumer<Job<std::string>> consumer(uri, "q");
        auto held = consumer.next(0ms);
        submit(3);
        reconcile_only();
        CHECK(ledger.run(first, fail) == LedgerOutcome::failed);
        reconcile_only(); // the first one again, behind the others
        let_pass("1 h");
        held->release();
    }
    CHECK(queued().front() == first);
    CHECK(pass().sent == 0);
    CHECK(redis.llen("q") == 5);
}

TEST_CASE_FIXTURE(Losing, "a message that was sent a moment ago is not taken for lost") {
    submit(2);
    reconcile_only();
    redis.del("q");
    LedgerReconciler patient(database, uri, searching(1min));
    CHECK(patient.reconcile().sent == 0);
    let_pass("61 s");
    CHECK(patient.reconcile().sent == 0); // it searches once in a sweep
    CHECK(LedgerReconciler(database, uri, searching(1min)).reconcile().lost == 2);
    CHECK(redis.llen("q") == 2);
    CHECK(count(LedgerEventKind::message_lost) == 2);
    CHECK(count(LedgerEventKind::redis_lost) == 0);
}

TEST_CASE_FIXTURE(Losing, "all of a long queue that was removed comes again, each job once, by "
                          "several reconcilers") {
    const auto jobs = submit(3500);
    reconcile_only();
    redis.del("q");
    let_pass("1 h");
    const auto first = running(searching());
    const auto second = running(searching());
    const auto third = running(searching());
    CHECK(eventually([&] { return redis.llen("q") >= 3500; }));
    // A reconciler that sends again does so in each sweep.
    CHECK_FALSE(eventually([&] { return redis.llen("q") > 3500; }, 1s));
    const auto again = queued();
    CHECK(std::set(again.begin(), again.end()) == std::set(jobs.begin(), jobs.end()));
    CHECK(count(LedgerEventKind::message_lost) == 3500);
}

TEST_CASE_FIXTURE(Losing, "one sweep finds all of a long queue that was removed") {
    submit(2500);
    reconcile_only();
    redis.del("q");
    let_pass("2 h");
    const auto thread = running(searching(1h));
    CHECK(eventually([&] { return redis.llen("q") == 2500; }));
}

TEST_CASE_FIXTURE(Losing, "a job that runs, is finished or waits for its try is not sent again") {
    const auto jobs = submit(3);
    reconcile_only();
    redis.del("q");
    let_pass("1 h");
    LedgerOptions slow = options();
    slow.retry.backoff = backoff::fixed(1h);
    CHECK(Ledger<std::string>(database, "q", slow).run(jobs[0], fail) == LedgerOutcome::failed);
    CHECK(ledger.run(jobs[1], effect(jobs[1])) == LedgerOutcome::completed);
    CHECK(ledger.run(jobs[2], [&](pqxx::work& tx) {
        effect(jobs[2])(tx);
        CHECK(pass().sent == 0);
    }) == LedgerOutcome::completed);
    CHECK(redis.llen("q") == 0);
}

TEST_CASE_FIXTURE(Losing, "a job that a consumer holds and has not claimed still runs once") {
    const std::string id = submit_one();
    reconcile_only();
    Consumer<Job<std::string>> slow(uri, "q");
    auto held = slow.next(0ms);
    let_pass("1 h");
    CHECK(pass().lost == 1);
    CHECK(handle_all(ledger) == Outcomes{LedgerOutcome::completed});
    CHECK(ledger.process(*held, [&](pqxx::work& tx, const std::string&) { effect(id)(tx); }) ==
          LedgerOutcome::repeated);
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(Losing, "copies of one try's message, buried one after the other, are one failed "
                          "try") {
    const std::string id = submit_one();
    reconcile_only();
    Consumer<Job<std::string>> slow(uri, "q");
    std::vector<MessageGuard<Job<std::string>>> copies;
    copies.push_back(*slow.next(0ms));
    while (copies.size() < 3) {
        let_pass("1 h");
        REQUIRE(pass().lost == 1);
        copies.push_back(*slow.next(0ms));
    }
    const auto counted = [&] {
        const auto before = redis_ms();
        REQUIRE(eventually([&] { return redis_ms() > before; }));
        return pass().buried;
    };
    for (std::uint64_t expected : {1, 0, 0}) {
        copies.back().bury("PostgreSQL is away");
        copies.pop_back();
        CHECK(counted() == expected);
        pass(); // the next try is due
        CHECK(state(id) == "pending");
        CHECK(ledger.find(id)->attempt == 1);
        CHECK(redis.llen("q") == 1);
    }
    CHECK(changes(id) == ">pending pending>running running>failed failed>pending");
    CHECK(handle_all(ledger) == Outcomes{LedgerOutcome::completed});
    CHECK(effects(id) == 1);
}

TEST_CASE_FIXTURE(Losing,
                  "a try's message that is buried counts, whatever copies of the try before "
                  "are buried behind it") {
    const std::string id = submit_one();
    reconcile_only();
    Consumer<Job<std::string>> slow(uri, "q");
    auto first = *slow.next(0ms);
    let_pass("1 h");
    CHECK(pass().lost == 1);
    CHECK(bury_all() == 1);
    CHECK(pass().sent == 1); // the first try has failed and is due
    CHECK(bury_all() == 1);
    first.bury("PostgreSQL is away");
    const auto before = redis_ms();
    REQUIRE(eventually([&] { return redis_ms() > before; }));
    CHECK(pass(1h).buried == 1);
    CHECK(ledger.find(id)->attempt == 2);
    CHECK(contains(error(id), "undecodable: std::vector<int"));
    CHECK(contains(error(id), "is read from an array, the payload is "));
}

TEST_CASE_FIXTURE(Losing, "a try fails as often as a Worker that cannot run the job buries its "
                          "message, and the last one is the end") {
    const std::string id = submit_one();
    const WorkerOptions fast{.concurrency = 1,
                             .signal_handling = SignalHandling::none,
                             .recheck = 20ms,
                             .scheduler = SchedulerOptions{},
                             .collect_interval = std::nullopt};
    Worker worker(uri, fast);
    worker.handle<std::string>(
        "q", [](const std::string& /*payload*/) { throw std::runtime_error("PostgreSQL is away"); },
        {.retry = {.max_attempts = 3, .backoff = backoff::fixed({})}});
    const Running run(worker);
    const auto thread = running(searching());
    CHECK(eventually([&] { return state(id) == "dead"; }));
    CHECK(ledger.find(id)->attempt == 3);
    CHECK(error(id) == "PostgreSQL is away");
    CHECK(count(LedgerEventKind::buried) == 2);
}

TEST_CASE_FIXTURE(Losing, "a message that is not lost, and that nobody claims, is sent again after "
                          "twice the time each time, and not less than once an hour") {
    const std::string id = submit_one();
    reconcile_only();
    redis.del("q"); // as if a consumer held it
    const auto sent_after = [&](const std::string& least) {
        let_pass(least + " seconds");
        CHECK(lost_in_minutes() == 0);
        let_pass("10 seconds");
        CHECK(lost_in_minutes() == 1);
        CHECK(redis.llen("q") == 1);
        redis.del("q");
    };
    for (const char* const seconds : {"51", "111", "231", "471", "951", "1911", "3591", "3591"}) {
        CAPTURE(seconds);
        sent_after(seconds);
    }
    CHECK(number("SELECT count(*) FROM orizuru_ledger WHERE state = 'pending'") == 1);
    // A claim is a sign of life: the waits begin anew.
    CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    reconcile_only();
    redis.del("q");
    sent_after("51");
    sent_after("111");
}

TEST_CASE_FIXTURE(Losing,
                  "an unclaimed job that was lost with all of Redis is sent as if it were new") {
    submit_one();
    reconcile_only();
    for (int i = 0; i < 3; ++i) {
        redis.del("q");
        let_pass("1 h");
        CHECK(lost_in_minutes() == 1);
    }
    redis.flushall();
    reconcile_only();
    CHECK(redis.llen("q") == 1);
    redis.del("q");
    let_pass("61 s");
    CHECK(lost_in_minutes() == 1);
}

TEST_CASE_FIXTURE(Losing,
                  "an entry of the dead list counts for the try that it has ended, and once") {
    const std::string id = submit_one();
    reconcile_only();
    CHECK(bury_all() == 1);
    redis.command({"RPUSH", "q", bytes_of(id)}); // a copy, which runs before a reconciler looks
    CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    const auto before = redis_ms();
    CHECK(eventually([&] { return redis_ms() > before; }));
    reconcile_only();
    CHECK(redis.llen("q") == 2);
    for (int i = 0; i < 3; ++i) {
        sql("UPDATE orizuru_ledger_queue SET dead_seen = 0"); // as if no reconciler had looked
        CHECK(pass().buried == 0);
    }
    CHECK(state(id) == "pending");
    CHECK(ledger.find(id)->attempt == 1);
}

TEST_CASE_FIXTURE(Losing, "one of several reconcilers counts an entry of the dead list") {
    const auto jobs = submit(200);
    reconcile_only();
    CHECK(bury_all() == 200);
    {
        auto chosen = searching();
        chosen.retry.backoff = backoff::fixed(1h);
        const auto first = running(chosen);
        const auto second = running(chosen);
        CHECK(eventually([&] { return jobs_in("failed") == 200; }));
    }
    CHECK(number("SELECT sum(attempt) FROM orizuru_ledger") == 200);
    CHECK(count(LedgerEventKind::buried) == 200);
}

TEST_CASE_FIXTURE(Losing, "all of a long dead list is read, a thousand entries at a time") {
    submit(2500);
    reconcile_only();
    CHECK(bury_all() == 2500);
    CHECK(pass(1h).buried == 2500);
    CHECK(jobs_in("failed") == 2500);
    CHECK(redis.llen(dead) == 2500);
}

TEST_CASE_FIXTURE(Losing, "entries of the dead list are not read again") {
    reconcile_only();
    const auto reads = [this] { return info("commandstats", "cmdstat_lindex:calls"); };
    const auto at_first = reads();
    const auto moment = redis_ms();
    for (int i = 0; i < 3000; ++i) {
        die("x", "y", moment);
    }
    CHECK(eventually([&] { return redis_ms() > moment; }));
    pass();
    const auto before = reads();
    CHECK(before - at_first > 1000);
    pass();
    CHECK(reads() - before <= 3);
    const std::string id = submit_one();
    reconcile_only();
    CHECK(bury_all() == 1);
    const auto then = reads();
    CHECK(pass(1h).buried == 1);
    CHECK(reads() - then <= 6);
}

TEST_CASE_FIXTURE(Losing, "entries of one millisecond are all read, and so are those that follow") {
    const auto jobs = submit(2500);
    reconcile_only();
    redis.del("q");
    const auto time = redis_ms();
    for (const std::string& id : jobs) {
        die(bytes_of(id), "no", time + 1);
    }
    REQUIRE(eventually([&] { return redis_ms() > time + 2; }));
    sql("UPDATE orizuru_ledger SET sent_at = clock_timestamp() + interval '1 h'");
    pass(1h);
    CHECK(jobs_in("failed") >= 1000);
    sql("UPDATE orizuru_ledger_queue SET dead_seen = 0");
    const std::string late = submit_one();
    reconcile_only();
    CHECK(bury_all() == 1);
    pass(1h);
    CHECK(state(late) == "failed");
}

TEST_CASE_FIXTURE(Losing, "a future time on the dead list does not hide later entries") {
    die("x", "y", redis_ms() + 3'600'000);
    pass();
    sql("UPDATE orizuru_ledger_queue SET dead_seen = 4102444800000"); // 2100
    pass();
    const std::string id = submit_one();
    reconcile_only();
    const auto moment = redis_ms();
    CHECK(eventually([&] { return redis_ms() > moment; }));
    CHECK(bury_all() == 1);
    CHECK(pass(1h).buried == 1);
    CHECK(state(id) == "failed");
}

TEST_CASE_FIXTURE(Losing, "a foreign element on the dead list does no harm") {
    const std::string id = submit_one();
    reconcile_only();
    const auto now = redis_ms();
    redis.command({"LPUSH", dead, "no entry"});
    redis.command({"LPUSH", dead, ""});
    const std::string envelope = bytes_of(id);
    for (const std::string& payload :
         {""s, "x"s, "\x9b"s, "\x9b\x01"s, "\x9b\x01\xa0"s, "\x9b\x01\xa5xy"s, "\x9b\x01\xa3x\0y"s,
          "\x9b\x01\xa2\xff\xfe"s, "\x9b\xc0\xa1x"s, "\xdd\0\0"s, "\x9b\x01\xdb\xff\xff\xff\xffx"s,
          "\x9b\x01\xa8{\"a,\\b}"s}) {
        die(payload, "{\"\\,NULL}\0"s, now);
    }
    redis.command({"LPUSH", dead, std::string(300'000, '\x94')});
    CHECK(pass().buried == 0);
    CHECK(bury_all() == 1);
    CHECK(pass(1h).buried == 1);
    CHECK(state(id) == "failed");
}

TEST_CASE_FIXTURE(Losing, "the number of a try is read however it is written, and what is none is "
                          "of no try but the first") {
    const std::string id = submit_one();
    reconcile_only();
    CHECK(ledger.run(id, fail) == LedgerOutcome::failed);
    reconcile_only();
    const std::string fields = bytes_of(id).substr(1);
    const auto buried = [&](const std::string& envelope) {
        const auto before = redis_ms();
        die(envelope, "no", before);
        REQUIRE(eventually([&] { return redis_ms() > before; }));
        return pass(1h).buried;
    };
    for (const std::string& none :
         {""s, "\x02"s, "\xff"s, "\xc0"s, "\xa1\x01"s, "\xc1"s, "\x91\x01"s, "\xcd\0"s,
          "\xce\0\0\0"s, "\xcf\0\0\0\0\0\0\0\x01"s, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"s,
          "\xcb\0\0\0\0\0\0\0\0"s, "\xce\xff\xff\xff\xff"s}) {
        CAPTURE(detail::to_hex(none));
        CHECK(buried('\x9c' + fields + none) == 0);
    }
    CHECK(buried("\xdc\0\x0c"s + fields + "\xcd\0\x01\x05"s) == 1);
    CHECK(ledger.find(id)->attempt == 2);
    CHECK(state(id) == "failed");
}

TEST_CASE_FIXTURE(Losing, "a try beyond the hundredth counts as any other") {
    LedgerOptions often = options();
    often.retry.max_attempts = 100'000;
    Ledger<std::string> patient(database, "q", often);
    for (const std::string attempt : {"127", "128", "300", "70000"}) {
        const std::string id = patient.submit("x");
        sql("ALTER TABLE orizuru_ledger DISABLE TRIGGER USER; UPDATE orizuru_ledger SET attempt "
            "= " +
            attempt + " WHERE id = '" + id + "'; ALTER TABLE orizuru_ledger ENABLE TRIGGER USER");
        reconcile_only();
        CHECK(bury_all() == 1);
        CHECK(pass(1h).buried == 1);
        CHECK(patient.find(id)->attempt == std::stoi(attempt) + 1);
    }
}

TEST_CASE_FIXTURE(Losing, "large messages on the dead list are not sent over, and are looked at") {
    const std::string small = submit_one();
    const std::string large = ledger.submit(std::string(6 << 20, 'x'));
    const std::string other = ledger.submit(std::string(6 << 20, 'x'));
    reconcile_only();
    CHECK(bury_all() == 3);
    const auto before = info("stats", "total_net_output_bytes");
    CHECK(pass(1h).buried == 3);
    CHECK(info("stats", "total_net_output_bytes") - before < 1 << 20);
}

TEST_CASE_FIXTURE(Losing, "a locked job is looked at again when it is free") {
    const auto jobs = submit(2);
    reconcile_only();
    CHECK(bury_all() == 2);
    {
        pqxx::connection connection(database.conninfo());
        pqxx::work holder(connection);
        holder.exec("SELECT FROM orizuru_ledger WHERE id = '" + jobs[0] + "' FOR UPDATE");
        CHECK(pass(1h).buried == 1);
        CHECK(state(jobs[1]) == "failed");
    }
    CHECK(pass(1h).buried == 1);
    CHECK(state(jobs[0]) == "failed");
}

TEST_CASE_FIXTURE(Losing, "a queue that cannot be searched still gets its jobs") {
    redis.command({"SET", dead, "no list"});
    submit(1);
    LedgerReconciler reconciler(database, uri, searching());
    CHECK(contains(message_of<ReplyError>([&] { reconciler.reconcile(); }), "WRONGTYPE"));
    CHECK(redis.llen("q") == 1);
    const auto thread = running(searching());
    submit(1);
    CHECK(eventually([&] { return redis.llen("q") == 2; }));
    CHECK(eventually([&] { return count(LedgerEventKind::failed) >= 2; }));
}

TEST_CASE_FIXTURE(Losing, "after a loss of all of Redis a search finds nothing besides") {
    submit(3);
    reconcile_only();
    let_pass("1 h");
    redis.flushall();
    const Reconciled found = pass();
    CHECK(found.sent == 3);
    CHECK(found.lost == 0);
    CHECK(redis.llen("q") == 3);
}

TEST_CASE_FIXTURE(Losing, "after PostgreSQL's clock was set back, jobs are not sent for ever") {
    submit(2500);
    reconcile_only();
    redis.del("q");
    sql("UPDATE orizuru_ledger_queue SET gone_before = clock_timestamp() + interval '1 h'");
    CHECK(pass().sent == 2500);
    CHECK(pass().sent == 0);
    // A job that was submitted at a future time is served next.
    redis.del("q");
    sql("ALTER TABLE orizuru_ledger DISABLE TRIGGER USER; UPDATE orizuru_ledger SET created_at = "
        "clock_timestamp() + interval '1 h', sent_at = clock_timestamp(); "
        "ALTER TABLE orizuru_ledger ENABLE TRIGGER USER");
    redis.command({"LPUSH", "q", bytes_of(text("SELECT min(id) FROM orizuru_ledger"))});
    CHECK(pass().sent == 0);
}

TEST_CASE_FIXTURE(Losing, "a message that is no job is no reason to send anything again") {
    submit(1);
    reconcile_only();
    let_pass("1 h");
    redis.del("q");
    redis.command({"LPUSH", "q", "no job"});
    CHECK(pass().sent == 0);
    redis.del("q");
    CHECK(pass().lost == 1);
}

TEST_CASE("tables of the version before are searched from their upgrade on") {
    const std::string conninfo = new_database();
    const Database database(conninfo);
    pqxx::connection connection(conninfo);
    const auto sql = [&](const std::string& statements) {
        return pqxx::nontransaction(connection).exec(statements);
    };
    sql(sql_of_version(database, 3));
    sql("INSERT INTO orizuru_ledger (id, queue, payload, max_attempts, sent_epoch) "
        "VALUES ('sent', 'q', 'x', 3, 1), ('new', 'q', 'y', 3, 0)");
    CHECK(Schema(database).apply() == 3);
    CHECK(sql("SELECT id FROM orizuru_ledger WHERE sent_at <= clock_timestamp()")[0][0]
              .as<std::string>() == "sent");
    CHECK(sql("SELECT FROM orizuru_ledger WHERE sent_at IS NULL").size() == 1);
}

} // namespace ledger_losses_test
