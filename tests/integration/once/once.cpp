// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Claims of an id: the effect of each operation in each state of its record, and what Redis
// refuses.

#include "integration/once/once_fixture.hpp"
#include "support/eventually.hpp"

#include <orizuru/once.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace once_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using orizuru::Claim;
using orizuru::Once;
using orizuru::OnceToken;
using orizuru::test::eventually;
using orizuru::test::OnceFixture;
using State = Claim::State;

// The state machine: `other` has the latest token, `once` the one before it.
enum class Record { absent, held, ended, done };
enum class Act { claim, complete, release, renew };
enum class With { nothing, latest, stale, never_given };
enum class Said { yes, no, claimed, busy, done, nothing };
enum class After { same, absent, claimed_anew, held_on, done };

struct Transition {
    Record record;
    Act act;
    With token;
    Said said;
    After after;
};

const std::vector<Transition> transitions{
    {Record::absent, Act::claim, With::nothing, Said::claimed, After::claimed_anew},
    {Record::held, Act::claim, With::nothing, Said::busy, After::same},
    {Record::ended, Act::claim, With::nothing, Said::claimed, After::claimed_anew},
    {Record::done, Act::claim, With::nothing, Said::done, After::same},

    {Record::absent, Act::complete, With::latest, Said::no, After::absent},
    {Record::absent, Act::complete, With::stale, Said::no, After::absent},
    {Record::absent, Act::complete, With::never_given, Said::no, After::absent},
    {Record::held, Act::complete, With::latest, Said::yes, After::done},
    {Record::held, Act::complete, With::stale, Said::no, After::same},
    {Record::held, Act::complete, With::never_given, Said::no, After::same},
    {Record::ended, Act::complete, With::latest, Said::yes, After::done},
    {Record::ended, Act::complete, With::stale, Said::no, After::same},
    {Record::ended, Act::complete, With::never_given, Said::no, After::same},
    {Record::done, Act::complete, With::latest, Said::yes, After::same},
    {Record::done, Act::complete, With::stale, Said::no, After::same},
    {Record::done, Act::complete, With::never_given, Said::no, After::same},

    {Record::absent, Act::release, With::latest, Said::no, After::absent},
    {Record::absent, Act::release, With::stale, Said::no, After::absent},
    {Record::absent, Act::release, With::never_given, Said::no, After::absent},
    {Record::held, Act::release, With::latest, Said::yes, After::absent},
    {Record::held, Act::release, With::stale, Said::no, After::same},
    {Record::held, Act::release, With::never_given, Said::no, After::same},
    {Record::ended, Act::release, With::latest, Said::yes, After::absent},
    {Record::ended, Act::release, With::stale, Said::no, After::same},
    {Record::ended, Act::release, With::never_given, Said::no, After::same},
    {Record::done, Act::release, With::latest, Said::no, After::same},
    {Record::done, Act::release, With::stale, Said::no, After::same},
    {Record::done, Act::release, With::never_given, Said::no, After::same},

    {Record::absent, Act::renew, With::latest, Said::nothing, After::absent},
    {Record::absent, Act::renew, With::stale, Said::nothing, After::absent},
    {Record::held, Act::renew, With::latest, Said::nothing, After::held_on},
    {Record::held, Act::renew, With::stale, Said::nothing, After::same},
    {Record::ended, Act::renew, With::latest, Said::nothing, After::held_on},
    {Record::ended, Act::renew, With::stale, Said::nothing, After::same},
    {Record::done, Act::renew, With::latest, Said::nothing, After::same},
    {Record::done, Act::renew, With::stale, Said::nothing, After::same},
};

struct Machine : OnceFixture {
    OnceToken stale = claimed(once);
    OnceToken latest = succeed();
    Once third{uri, "q"}; // renews nothing of the others
    Fields before;

    OnceToken succeed() {
        end_lease();
        return claimed(other);
    }
    void bring_about(Record wanted) {
        if (wanted == Record::absent) {
            redis.del(record);
        } else if (wanted == Record::ended) {
            end_lease();
        } else if (wanted == Record::done) {
            REQUIRE(third.complete(latest, "first"));
        } else {
            // So that a renewal can be seen.
            redis.command({"HSET", record, "until", std::to_string(server_ms() + 5000)});
        }
        before = fields();
    }
    Said act(Act what, With with) {
        const OnceToken token = with == With::latest  ? latest
                                : with == With::stale ? stale
                                                      : OnceToken{.id = "id", .fence = 7};
        switch (what) {
        case Act::claim: {
            const State state = third.claim("id").state;
            return state == State::claimed ? Said::claimed
                   : state == State::busy  ? Said::busy
                                           : Said::done;
        }
        case Act::complete:
            return third.complete(token, "second") ? Said::yes : Said::no;
        case Act::release:
            return third.release(token) ? Said::yes : Said::no;
        case Act::renew:
            (with == With::latest ? other : once).renew();
            return Said::nothing;
        }
        return Said::nothing;
    }
    bool is_now(After after) {
        Fields now = fields();
        switch (after) {
        case After::same:
            return now == before;
        case After::absent:
            return now.empty();
        case After::claimed_anew:
            return now["state"] == "claimed" && std::stoull(now["fence"]) > latest.fence &&
                   until() > server_ms() + 20'000 && now["nonce"] != before["nonce"];
        case After::held_on:
            return now["state"] == "claimed" && now["fence"] == before["fence"] &&
                   until() > server_ms() + 20'000;
        case After::done:
            return now == Fields{{"state", "done"},
                                 {"fence", std::to_string(latest.fence)},
                                 {"result", "second"}};
        }
        return false;
    }
};

TEST_CASE("in each state of a record each operation has its effect, by the latest token alone") {
    for (const Transition& transition : transitions) {
        CAPTURE(static_cast<int>(transition.record));
        CAPTURE(static_cast<int>(transition.act));
        CAPTURE(static_cast<int>(transition.token));
        Machine machine;
        machine.bring_about(transition.record);
        CHECK(machine.act(transition.act, transition.token) == transition.said);
        CHECK(machine.is_now(transition.after));
    }
}

TEST_CASE_FIXTURE(OnceFixture, "a claim of a claimed id returns until when, by Redis' clock") {
    const std::int64_t since = server_ms();
    claimed(once);
    const Claim busy = other.claim("id");
    CHECK(busy.state == State::busy);
    CHECK(busy.until.time_since_epoch().count() == until());
    CHECK(until() >= since + 30'000);
    CHECK(until() <= server_ms() + 30'000);
    CHECK(busy.busy_for <= 30s);
    CHECK(busy.busy_for > 20s);
    CHECK(other.claim("another").state == State::claimed);
}

TEST_CASE_FIXTURE(OnceFixture, "a claim of a done id gets its result, any bytes or none") {
    const std::string bytes("\0\r\n\xff", 4);
    CHECK(once.complete(claimed(once), bytes));
    const Claim done = other.claim("id");
    CHECK(done.state == State::done);
    CHECK(done.result == bytes);
    CHECK(once.complete(claimed(once, "plain")));
    CHECK(other.claim("plain").result == std::nullopt);
    CHECK(once.complete(claimed(once, "empty"), ""));
    CHECK(other.claim("empty").result == "");
}

TEST_CASE_FIXTURE(OnceFixture, "a lease ends by itself, by Redis' clock") {
    Once brief(uri, "q", {.lease = 1s});
    const auto begun = std::chrono::steady_clock::now();
    const OnceToken first = claimed(brief);
    CHECK(eventually([this] { return other.claim("id").state == State::claimed; }));
    CHECK(std::chrono::steady_clock::now() - begun >= 990ms); // its clock has milliseconds
    CHECK_FALSE(brief.complete(first));
    CHECK(state() == "claimed");
}

TEST_CASE_FIXTURE(OnceFixture, "no command tells Redis a time of this host") {
    redis.command({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
    redis.command({"SLOWLOG", "RESET"});
    const OnceToken token = claimed(once);
    once.renew();
    once.complete(token);
    once.release(token);
    const auto commands = redis.command({"SLOWLOG", "GET", "-1"}).elements;
    redis.command({"CONFIG", "SET", "slowlog-log-slower-than", "10000"});
    int scripts = 0;
    for (const auto& entry : commands) {
        const auto& words = entry.elements.at(3).elements;
        if (words.at(0).text != "EVAL") {
            continue;
        }
        ++scripts;
        for (std::size_t i = 2; i < words.size(); ++i) {
            const std::string& word = words[i].text;
            const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
            // Keys, their number, the lease, the time of remembering, the token, the call's nonce.
            CHECK((!digits || word == "1" || word == "2" || word == "30000" || word == "86400000" ||
                   word == std::to_string(token.fence)));
        }
    }
    CHECK(scripts == 4);
}

TEST_CASE_FIXTURE(OnceFixture,
                  "what is done is remembered for as long as asked, a claim for as long "
                  "after its lease") {
    Once own(uri, "q", {.lease = 10s, .remember = 1h});
    const auto lasts = [this](std::chrono::milliseconds time) {
        return ttl() <= time.count() && ttl() > time.count() - 5000;
    };
    const OnceToken token = claimed(own);
    CHECK(lasts(1h + 10s));
    redis.command({"PEXPIRE", record, "5000"});
    own.renew();
    CHECK(lasts(1h + 10s));
    CHECK(own.complete(token));
    CHECK(lasts(1h));
    redis.command({"PEXPIRE", record, "1"});
    CHECK(eventually([this] { return other.claim("id").state == State::claimed; }));
}

TEST_CASE_FIXTURE(OnceFixture, "fencing tokens rise from claim to claim, for all holders and ids") {
    std::vector<std::uint64_t> fences_seen;
    for (int i = 0; i < 100; ++i) {
        const OnceToken token = claimed(i % 2 == 0 ? once : other, std::to_string(i % 10));
        fences_seen.push_back(token.fence);
        CHECK((i % 3 == 0 ? once.complete(token) : once.release(token)));
        redis.del("orizuru:{q}:once:" + std::to_string(i % 10));
    }
    CHECK(std::ranges::adjacent_find(fences_seen, std::greater_equal<>()) == fences_seen.end());
    CHECK(std::to_string(fences_seen.back()) == redis.command({"GET", fences}).text);
}

TEST_CASE_FIXTURE(OnceFixture, "fencing tokens rise when Redis was emptied meanwhile, and when its "
                               "clock was set back") {
    const OnceToken before = claimed(once);
    redis.flushall();
    const OnceToken after = claimed(other);
    CHECK(after.fence > before.fence);
    CHECK_FALSE(once.complete(before));
    CHECK(other.complete(after));
    const std::uint64_t ahead = after.fence + 3'600'000'000;
    redis.set(fences, std::to_string(ahead));
    CHECK(claimed(once, "later").fence == ahead + 1);
}

TEST_CASE_FIXTURE(OnceFixture, "a renewal is one script for all claims that are held, and asks for "
                               "nothing that is over") {
    const auto scripts = [this] { return info("commandstats", "cmdstat_eval:calls"); };
    for (int i = 0; i < 120; ++i) {
        claimed(once, std::to_string(i));
    }
    const OnceToken done = claimed(once, "done");
    const OnceToken released = claimed(once, "released");
    const OnceToken lost = claimed(once);
    CHECK(once.complete(done));
    CHECK(once.release(released));
    redis.del(record);
    const OnceToken taken = claimed(other);
    redis.command({"CONFIG", "RESETSTAT"});
    once.renew();
    CHECK(scripts() == 2);
    CHECK(info("commandstats", "cmdstat_hset:calls") == 120);
    CHECK(other.complete(taken));
    redis.flushall();
    once.renew();
    CHECK(scripts() == 5); // one of them had completed
    once.renew();
    CHECK(scripts() == 5);
}

TEST_CASE_FIXTURE(OnceFixture, "a key of the wrong type in between does not keep others from being "
                               "renewed") {
    claimed(once, "bad");
    claimed(once);
    redis.del("orizuru:{q}:once:bad");
    redis.set("orizuru:{q}:once:bad", "x");
    end_lease();
    once.renew();
    CHECK(until() > server_ms());
    CHECK(redis.command({"GET", "orizuru:{q}:once:bad"}).text == "x");
}

} // namespace once_test
