// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A Dashboard shows queues to those who may see them, and acts on the very message that was shown.

#include "integration/core/queue_fixture.hpp"
#include "support/fake_server.hpp"

#include <orizuru/detail/ops/web/listed_messages.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/ops/dashboard.hpp>
#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace dashboard_test {

using namespace std::chrono_literals;
using namespace orizuru::test;
using nlohmann::json;
using orizuru::Consumer;
using orizuru::Dashboard;
using orizuru::DashboardAccess;
using orizuru::DashboardOptions;
using orizuru::DashboardRequest;
using orizuru::DashboardResponse;
using orizuru::HttpHeaders;
using orizuru::JobProducer;
using orizuru::Raw;

constexpr const char* token = "a.token-of_the.tests";

DashboardRequest request(std::string method, const std::string& target, HttpHeaders headers) {
    const auto mark = std::min(target.find('?'), target.size());
    return {.method = std::move(method),
            .path = target.substr(0, mark),
            .query = target.substr(std::min(mark + 1, target.size())),
            .headers = std::move(headers)};
}
HttpHeaders viewer() {
    return {{"Host", "127.0.0.1:8080"}, {"Authorization", std::string("Bearer ") + token}};
}
HttpHeaders own_page() {
    HttpHeaders headers = viewer();
    headers.insert(headers.end(), {{"X-Orizuru", "1"}, {"Sec-Fetch-Site", "same-origin"}});
    return headers;
}
std::string field(const DashboardResponse& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
        if (key == name) {
            return value;
        }
    }
    return {};
}
DashboardOptions quick() {
    return {.token = token, .queues = {"q"}, .refresh = 100ms, .history_step = 100ms};
}

struct Fixture : QueueFixture {
    std::unique_ptr<Dashboard> dashboard = std::make_unique<Dashboard>(uri, quick());
    JobProducer<Raw> jobs{uri, "q"};
    std::string suspects = "orizuru:{q}:suspects";

    void with(DashboardOptions options) {
        dashboard = std::make_unique<Dashboard>(uri, std::move(options));
    }
    DashboardResponse get(const std::string& target, HttpHeaders headers = viewer()) {
        return dashboard->handle(request("GET", target, std::move(headers)));
    }
    DashboardResponse post(const std::string& target, HttpHeaders headers = own_page()) {
        return dashboard->handle(request("POST", target, std::move(headers)));
    }
    json seen(const std::string& target) {
        const DashboardResponse response = get(target);
        INFO(target << ": " << response.body);
        REQUIRE(response.status == 200);
        CHECK(field(response, "Content-Type") == "application/json");
        return json::parse(response.body);
    }
    bool done(const std::string& target) {
        const DashboardResponse response = post(target);
        INFO(target << ": " << response.body);
        REQUIRE(response.status == 200);
        return json::parse(response.body).at("done").get<bool>();
    }
    json queue(const std::string& name = "q") {
        const json rows = seen("/api/queues").at("queues");
        for (const json& row : rows) {
            if (row.at("name") == name) {
                return row;
            }
        }
        return {};
    }
    /// Whether the numbers come to be so.
    bool shows(const std::string& place, int count) {
        return eventually([&] {
            const json row = queue();
            return !row.is_null() && row.at(place) == count;
        });
    }
    json messages(const std::string& place, const std::string& more = "") {
        return seen("/api/messages?queue=q&place=" + place + more).at("messages");
    }
    std::string id_of_first(const std::string& place) {
        return messages(place).at(0).at("id").get<std::string>();
    }
    std::string all_keys() {
        std::string all;
        for (const std::string& key : redis.keys()) {
            all += key + redis.command({"DUMP", key}).text;
        }
        return all;
    }
    void bury_next(const std::string& reason = "bad") {
        Consumer<Raw> consumer(uri, "q");
        consumer.next()->bury(reason);
    }
};

TEST_CASE_FIXTURE(Fixture, "the page's files need no token, have no data and forbid all others") {
    for (const std::string path :
         {"/", "/page.css", "/icon.svg", "/page.js", "/api.js", "/elements.js", "/message.js",
          "/queue.js", "/queues.js", "/waits.js"}) {
        CAPTURE(path);
        const DashboardResponse response = get(path, {{"Host", "localhost"}});
        CHECK(response.status == 200);
        CHECK(response.body.size() > 100);
        const std::string policy = field(response, "Content-Security-Policy");
        CHECK(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
        CHECK(contains(policy, "frame-ancestors 'none'"));
        CHECK(contains(policy, "require-trusted-types-for 'script'"));
        CHECK(field(response, "X-Content-Type-Options") == "nosniff");
        CHECK(field(response, "Referrer-Policy") == "no-referrer");
        CHECK(field(response, "Cache-Control") == "no-store");
        CHECK(post(path).status == 405);
        // It makes no markup of texts.
        for (const char* const sink : {"innerHTML", "outerHTML", "insertAdjacentHTML",
                                       "document.write", "eval(", "<script>", "style="}) {
            CHECK_FALSE(contains(response.body, sink));
        }
    }
    CHECK(get("/nothing").status == 404);
    CHECK(get("/../etc/passwd").status == 404);
}

TEST_CASE_FIXTURE(Fixture, "all queues are shown with their numbers, whoever asks for them") {
    push({"dead", "a", "b"});
    bury_next();
    jobs.push({"later"}, {.delay = 1h});
    redis.lpush(suspects, {"c", "d", "e"});
    redis.command({"SADD", "orizuru:queues", "other", "q"});
    REQUIRE(shows("waiting", 2));
    REQUIRE(eventually([&] { return !queue("other").is_null(); })); // it looks for names first
    const json state = seen("/api/queues");
    CHECK(state.at("redis") == uri);
    CHECK(state.at("failure") == "");
    CHECK(state.at("writes") == true);
    CHECK(state.at("queues").size() == 2); // once each
    CHECK(queue().at("scheduled") == 1);
    CHECK(queue().at("dead") == 1);
    CHECK(queue().at("suspected") == 3);
    CHECK(state.at("sums").at("suspected") == 3);
    CHECK(queue().at("paused") == false);
    CHECK(queue("other").at("waiting") == 0);
    CHECK(seen("/api/queue?queue=q").at("waiting") == 2);
    CHECK(seen("/api/queue?queue=unknown").at("waiting") == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "of large messages a page has few, and the next one has those behind them") {
    Texts names;
    for (char name = 'a'; name < 'u'; ++name) { // twenty, of 5 MiB
        names.push_back(std::string(1, name));
        push({name + std::string(5 << 20, '.')});
    }
    redis.command({"CONFIG", "RESETSTAT"});
    Texts seen_names;
    int pages = 0;
    for (std::int64_t first = 0; first >= 0 && pages < 20; ++pages) {
        const json page =
            seen("/api/messages?queue=q&place=waiting&first=" + std::to_string(first));
        for (const json& row : page.at("messages")) {
            seen_names.push_back(row.at("preview").get<std::string>().substr(0, 1));
        }
        CHECK(page.at("messages").size() <= 3);
        first = page.at("more") == true
                    ? first + static_cast<std::int64_t>(page.at("messages").size())
                    : -1;
    }
    CHECK(seen_names == names);
    CHECK(info("commandstats", "cmdstat_lrange:calls") >= 20); // one in each answer of Redis
}

TEST_CASE_FIXTURE(Fixture,
                  "a message of 60 MiB has a page of its own, so that each that is shown can "
                  "be had") {
    constexpr std::size_t large = 60 << 20;
    push({"before", std::string(large, '.'), "behind"});
    for (int first = 0; const std::size_t size : {std::size_t{6}, large, std::size_t{6}}) {
        const json page =
            seen("/api/messages?queue=q&place=waiting&first=" + std::to_string(first++));
        REQUIRE(page.at("messages").size() == 1);
        CHECK(page.at("more") == (first < 3));
        const json& row = page.at("messages").at(0);
        CHECK(row.at("size") == size);
        CHECK(row.at("preview").get<std::string>().size() <= 200);
        CHECK(get("/api/payload?id=" + row.at("id").get<std::string>()).body.size() == size);
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "of dead messages with an error, those are shown that can be had together") {
    push({"first", std::string(40 << 20, '.'), "last"});
    Consumer<Raw> consumer(uri, "q", {.max_payload = 64 << 20});
    for (int i = 0; i < 3; ++i) {
        consumer.next()->bury("why");
    }
    const json page = seen("/api/messages?queue=q&place=dead&reason=why");
    CHECK(page.at("more") == true);
    REQUIRE(page.at("messages").size() == 1);
    const std::string id = page.at("messages").at(0).at("id").get<std::string>();
    CHECK(get("/api/payload?id=" + id).body == "last");
}

TEST_CASE_FIXTURE(Fixture, "of thousands of queues a page is shown, with the sums of all") {
    Texts words{"SADD", "orizuru:queues"};
    for (int i = 0; i < 3000; ++i) {
        words.push_back("customer-" + std::to_string(10'000 + i));
    }
    redis.command(words);
    redis.command({"RPUSH", "customer-10007", "a", "b"});
    redis.command({"RPUSH", "customer-12999", "a"});
    redis.command({"HSET", "orizuru:{customer-12999}:counts", "succeeded", "5"});
    REQUIRE(eventually([&] { return seen("/api/queues").at("all") == 3001; }));
    REQUIRE(eventually([&] { return seen("/api/queues").at("sums").at("waiting") == 3; }));
    const json first = seen("/api/queues");
    CHECK(first.at("count") == 3001);
    CHECK(first.at("queues").size() == 50);
    CHECK(first.at("queues").at(49).at("name") == "customer-10049");
    CHECK(get("/api/queues").body.size() < 16'000);
    const json second = seen("/api/queues?first=50");
    CHECK(second.at("first") == 50);
    CHECK(second.at("queues").at(0).at("name") == "customer-10050");
    CHECK(seen("/api/queues?first=3000").at("queues").size() == 1);
    CHECK(seen("/api/queues?first=9000").at("queues").empty());
    CHECK(seen("/api/queues?most=0").at("queues").empty());
    CHECK(seen("/api/queues?most=9000").at("queues").size() == 50);
    CHECK(get("/api/queues?first=-1").status == 400);

    const json chosen = seen("/api/queues?filter=TOMER-129");
    CHECK(chosen.at("count") == 100);
    CHECK(chosen.at("all") == 3001);
    CHECK(chosen.at("sums").at("waiting") == 1);
    CHECK(chosen.at("queues").at(0).at("name") == "customer-12900");
    const json only = seen("/api/queues?queue=customer-12999");
    CHECK(only.at("count") == 1);
    CHECK(only.at("queues").at(0).at("waiting") == 1);
    CHECK(seen("/api/queues?queue=customer").at("count") == 0);

    const auto line = [&](const std::string& query) { return seen("/api/history" + query); };
    CHECK(eventually([&] { return line("?queue=customer-12999").at("lastStep") == 0; }));
    CHECK(line("").at("queues").size() == 50);
    CHECK(line("?filter=12999").at("queues").size() == 1);
    redis.command({"HSET", "orizuru:{customer-12999}:counts", "succeeded", "12"});
    CHECK(eventually([&] { return line("?filter=-129&most=0").at("lastStep") == 7; }));

    // A pass over all asks Redis little.
    const std::int64_t before = info("commandstats", "cmdstat_eval_ro:calls");
    const int sample = seen("/api/queues").at("sample").get<int>();
    int passes = 0;
    REQUIRE(eventually([&] {
        passes = seen("/api/queues").at("sample").get<int>() - sample;
        return passes >= 3;
    }));
    CHECK((info("commandstats", "cmdstat_eval_ro:calls") - before) / passes <= 2 * 62);
}

TEST_CASE_FIXTURE(Fixture,
                  "the keys of a queue are shown with the job that is out, and its groups") {
    orizuru::KeyedJobProducer<Raw> keyed(uri, "q");
    keyed.push_all("a\x9b", std::vector<Raw>(3, Raw{"out"})); // no UTF-8
    for (int i = 0; i < 50; ++i) {
        keyed.push(std::to_string(i), Raw{"x"});
    }
    orizuru::JobGroup group(uri, "q", {.then = orizuru::GroupThen("q", Raw{"then"})});
    group.push("q", Raw{"member"});
    REQUIRE(shows("keys", 51));
    CHECK(queue().at("behind") == 2);
    REQUIRE(shows("groups", 1));
    CHECK(seen("/api/queues").at("sums").at("behind") == 2);
    const json keys = seen("/api/keys?queue=q");
    CHECK(keys.at("more") == true);
    REQUIRE(keys.at("rows").size() == 50);
    CHECK(keys.at("rows")[0] == json{{"key", "a%9B"}, {"name", "a\ufffd"}, {"behind", 2}});
    CHECK(seen("/api/keys?queue=q&first=50").at("rows").size() == 1);
    CHECK(seen("/api/keys?queue=q&first=50").at("more") == false);
    const json out = seen("/api/key?queue=q&key=a%9B").at("messages");
    REQUIRE(out.size() == 1);
    CHECK(out[0].at("place") == "waiting");
    CHECK(seen("/api/message?id=" + out[0].at("id").get<std::string>()).at("job").at("key") ==
          "a\ufffd");
    CHECK(seen("/api/key?queue=q&key=none").at("messages").empty());
    const json groups = seen("/api/groups?queue=q");
    CHECK(groups.at("more") == false);
    REQUIRE(groups.at("rows").size() == 1);
    CHECK(groups.at("rows")[0].at("name") == group.id());
    CHECK(groups.at("rows")[0].at("stage") == "open");
    CHECK(groups.at("rows")[0].at("pending") == 1);
    CHECK(groups.at("rows")[0].at("expiresIn") > 86'000'000);
    CHECK(groups.at("rows")[0].at("then") == "q");
    CHECK(get("/api/keys?queue=q&first=x").status == 400);
    CHECK(get("/api/keys").status == 400);
}

TEST_CASE_FIXTURE(Fixture, "the dead are chosen by their error, and all that are shown run again") {
    const auto die = [&](const Texts& names, const std::string& reason) {
        push(names);
        for (std::size_t i = 0; i < names.size(); ++i) {
            bury_next(reason);
        }
    };
    die({"a", "b"}, "no such user:\n  42");
    die({"c"}, "time-out");
    die({"d"}, "No such user: 7");
    const auto previews = [&](const json& listed) {
        Texts found;
        for (const json& row : listed.at("messages")) {
            found.push_back(row.at("preview").get<std::string>());
        }
        return found;
    };
    const std::string target = "/api/messages?queue=q&place=dead&reason=no%20SUCH%20user:%20";
    const json listed = seen(target);
    CHECK(previews(listed) == Texts{"d", "b", "a"});
    CHECK(listed.at("count") == 3);
    CHECK(listed.at("allCounted") == true);
    CHECK(listed.at("more") == false);
    CHECK(seen("/api/messages?queue=q&place=dead&reason=nobody").at("count") == 0);
    CHECK(get("/api/messages?queue=q&place=waiting&reason=x").status == 400);
    CHECK(post("/api/run-all?queue=q&place=waiting").status == 400);
    CHECK(post("/api/run-all?queue=q&place=dead&until=x").status == 400);

    // Who dies after the list was shown stays.
    const std::string until = std::to_string(listed.at("until").get<std::int64_t>());
    REQUIRE(eventually([&] { return std::to_string(server_ms()) > until; }));
    die({"e"}, "no such user: 8");
    const std::string filter = "queue=q&place=dead&reason=no%20such%20user&until=" + until;
    const json ran = json::parse(post("/api/run-all?" + filter).body);
    CHECK(ran.at("changed") == 3);
    CHECK(ran.at("more") == false);
    CHECK(waiting() == Texts{"a", "b", "d"});
    CHECK(previews(seen("/api/messages?queue=q&place=dead")) == Texts{"e", "c"});
    CHECK_FALSE(done("/api/run-all?" + filter));
    CHECK(done("/api/clear?queue=q&place=dead&reason=time"));
    CHECK(previews(seen("/api/messages?queue=q&place=dead")) == Texts{"e"});
    CHECK(done("/api/run-all?queue=q&place=dead"));
    CHECK(waiting() == Texts{"a", "b", "d", "e"});
}

TEST_CASE_FIXTURE(Fixture, "very many dead are counted as far as there is time, and run in parts") {
    const std::string entry =
        "\x94\x02" + msgpack_bin32("a") + msgpack_bin32("bad") + msgpack_u64(1);
    for (int i = 0; i < 5; ++i) {
        redis.lpush(dead, Texts(5'000, entry));
    }
    const json listed = seen("/api/messages?queue=q&place=dead&reason=good");
    CHECK(listed.at("count") == 0);
    CHECK(listed.at("allCounted") == false); // those in the middle are not looked at
    std::uint64_t sum = 0;
    const bool all = eventually([&] {
        const json step = json::parse(post("/api/run-all?queue=q&place=dead&reason=bad").body);
        sum += step.at("changed").get<std::uint64_t>();
        return step.at("more") == false;
    });
    CHECK(all);
    CHECK(sum == 25'000);
    CHECK(redis.llen("q") == 25'000);
}

TEST_CASE_FIXTURE(Fixture, "what workers have reported is shown as lines, days and rows") {
    const auto line = [&] { return seen("/api/history").at("queues").value("q", json::object()); };
    REQUIRE(eventually([&] { return line().value("done", json::array()).size() > 1; }));
    CHECK(line().at("failed").is_null());
    orizuru::Worker worker(uri, {.signal_handling = orizuru::SignalHandling::none,
                                 .on_event = [](const orizuru::WorkerEvent&) {}});
    worker.handle<Raw>("q",
                       [](const Raw& raw) {
                           if (raw.bytes == "bad") {
                               throw std::runtime_error("bad");
                           }
                       },
                       {.retry = {.max_attempts = 1}});
    for (const char* const text : {"a", "b", "c", "bad"}) {
        jobs.push({text});
    }
    {
        const std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
        REQUIRE(eventually([&] { return redis.llen(dead) == 1 && redis.llen("q") == 0; }));
        const json rows = seen("/api/workers").at("workers");
        CHECK(rows.size() <= 1);
    } // it reports at its end
    CHECK(eventually([&] {
        const json history = line();
        int done = 0;
        for (const json& point : history.at("done")) {
            done += point.is_null() ? 0 : point.get<int>();
        }
        return done == 3 && history.at("failed") == 0.25;
    }));
    const json days = seen("/api/days?queue=q").at("days");
    REQUIRE(days.size() == 30);
    CHECK(days.back().at("done") == 3);
    CHECK(days.back().at("failed") == 1);
    CHECK(days.at(0).at("done") == 0);
    redis.flushall();
    CHECK(eventually([&] { return line().at("done").back() == 0; }));
}

TEST_CASE_FIXTURE(Fixture, "each worker is shown with its own report, if it has sent one") {
    for (const std::string id : {"a", "b", "c", "d"}) {
        add_dead_consumer(id, {});
    }
    redis.command({"HSET", "orizuru:{q}:worker:b", "running", "2", "threads", "3"});
    redis.command({"HSET", "orizuru:{q}:worker:d", "running", "4", "threads", "5"});
    redis.command({"HSET", "orizuru:{q}:worker:e", "running", "6", "threads", "7"});
    const json rows = seen("/api/workers?queue=q").at("workers");
    REQUIRE(rows.size() == 4);
    const std::vector<json> threads{nullptr, 3, nullptr, 5};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(rows.at(i).at("id") == std::string(1, static_cast<char>('a' + i)));
        CHECK(rows.at(i).at("threads") == threads.at(i));
    }
}

TEST_CASE_FIXTURE(Fixture, "a queue that Redis refuses is named, and the others are shown") {
    redis.set("q", "a text of somebody's");
    redis.command({"SADD", "orizuru:queues", "r"});
    CHECK(eventually(
        [&] { return !queue().is_null() && queue().at("error") != "" && !queue("r").is_null(); }));
    CHECK(contains(queue().at("error").get<std::string>(), "q"));
    CHECK(queue("r").at("error") == "");
    CHECK(seen("/api/queues").at("failure") == "");
}

TEST_CASE_FIXTURE(Fixture, "names and payloads of any bytes come through as they are") {
    const std::string name = "<img src=x onerror=alert(1)>\xff&%/\x1b\"";
    const std::string key = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%FF%26%25%2F%1B%22";
    redis.lpush(name, {"</script><b>\xfe"});
    redis.command({"SADD", "orizuru:queues", name});
    json found;
    CHECK(eventually([&] {
        const json rows = seen("/api/queues").at("queues");
        for (const json& row : rows) {
            found = row.at("key") == key ? row : found;
        }
        return !found.is_null();
    }));
    CHECK(found.at("name") == "<img src=x onerror=alert(1)>\uFFFD&%/\x1b\"");
    CHECK(found.at("waiting") == 1);
    const json row = seen("/api/messages?queue=" + key + "&place=waiting").at("messages").at(0);
    CHECK(row.at("preview") == "</script><b>\uFFFD");
    CHECK(done("/api/pause?queue=" + key));
    CHECK(redis.exists("orizuru:{" + name + "}:paused"));
    CHECK(done("/api/remove?id=" + row.at("id").get<std::string>()));
    CHECK(redis.llen(name) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a message is shown with all that is known of it") {
    jobs.push({"a job"}, {.expires_after = 1h, .max_attempts = 7, .unique = "u"});
    bury_next("too bad");
    push({"plain"});
    const json row = messages("dead").at(0);
    CHECK(row.at("preview") == "a job");
    CHECK(row.at("reason") == "too bad");
    const json whole = seen("/api/message?id=" + row.at("id").get<std::string>());
    CHECK(whole.at("payload").at("text") == "a job");
    CHECK(whole.at("payload").at("hex") == "61206a6f62");
    CHECK(whole.at("job").at("attempt") == 1);
    CHECK(whole.at("job").at("maxAttempts") == 7);
    CHECK(whole.at("job").at("uniqueId") == "u");
    CHECK(whole.at("job").at("expiresAt").get<std::int64_t>() > server_ms());
    CHECK(whole.at("time").get<std::int64_t>() <= server_ms());
    CHECK_FALSE(messages("waiting").at(0).contains("job"));
    CHECK(get("/api/messages?queue=q&place=nowhere").status == 400);
    CHECK(get("/api/messages?queue=q&place=waiting&first=-1").status == 400);
    CHECK(get("/api/messages?queue=q&place=waiting&first=999999").status == 400);
    CHECK(get("/api/messages?queue=%7B&place=waiting").status == 400);
    CHECK(get("/api/messages?queue=%zz&place=waiting").status == 400);
    CHECK(get("/api/messages?place=waiting").status == 400);
    CHECK(get("/api/message?id=1").status == 404);
}

TEST_CASE_FIXTURE(Fixture, "a job is found by its id, wherever it is") {
    const std::string id = *jobs.push({"sought"}, {.delay = 1h});
    jobs.push({"other"});
    const json found = seen("/api/find?queue=q&job=" + id).at("messages");
    REQUIRE(found.size() == 1);
    CHECK(found.at(0).at("preview") == "sought");
    CHECK(found.at(0).at("place") == "scheduled");
    CHECK(done("/api/run?id=" + found.at(0).at("id").get<std::string>()));
    CHECK(redis.llen("q") == 2);
    CHECK(seen("/api/find?queue=q&job=none").at("messages").empty());
    CHECK(get("/api/find?queue=q&job=").status == 400);
}

TEST_CASE_FIXTURE(Fixture, "of very many messages with one id, or large ones, some are shown") {
    std::size_t most = 100;
    int copies = 101;
    std::string payload = "x";
    SUBCASE("all that are shown") { copies = 100; }
    SUBCASE("many") {}
    SUBCASE("large") {
        copies = 12;
        most = 8;
        payload.resize(1 << 20, 'x');
    }
    const std::string id = *jobs.push({payload});
    for (int i = 1; i < copies; ++i) {
        redis.lpush("q", {waiting().front()});
    }
    const json found = seen("/api/find?queue=q&job=" + id);
    CHECK(found.at("messages").size() == most);
    CHECK(found.at("more") == (copies != 100));
}

TEST_CASE_FIXTURE(Fixture, "msgpack is shown as JSON, and what is neither it nor text as bytes") {
    const std::string nested = std::string(99, '\x91') + '\xc0';
    const std::string too_deep = std::string(4000, '\x91') + '\xc0';
    push({std::string("\x82\xa1"
                      "a\x93\x01\x02\xc3\xa1"
                      "b\xa1x",
                      11),
          "\xc1\xff", "text\n", nested, too_deep});
    std::vector<json> payloads;
    for (const json& row : messages("waiting")) {
        payloads.push_back(
            seen("/api/message?id=" + row.at("id").get<std::string>()).at("payload"));
    }
    REQUIRE(payloads.size() == 5);
    CHECK(payloads[0].at("kind") == "msgpack");
    CHECK(json::parse(payloads[0].at("text").get<std::string>()) ==
          json({{"a", {1, 2, true}}, {"b", "x"}}));
    CHECK(payloads[1].at("kind") == "bytes");
    CHECK(payloads[1].at("hex") == "c1ff");
    CHECK(payloads[2] == json({{"kind", "text"}, {"text", "text\n"}, {"hex", "746578740a"}}));
    CHECK(payloads[3].at("kind") == "msgpack");
    CHECK(json::parse(payloads[3].at("text").get<std::string>()) == json::from_msgpack(nested));
    CHECK(payloads[4].at("kind") == "bytes"); // as the reader's stack is only so deep
}

TEST_CASE_FIXTURE(Fixture, "of a large payload 4 KiB are shown, and all is downloaded as a file") {
    const std::string large(1 << 20, 'x');
    push({large, large + "1", large + "2", "y"});
    push(Texts(20, large + "3"));
    const json rows = messages("waiting");
    CHECK(rows.size() < 24); // it stops when that is enough for the memory
    CHECK(rows.at(0).at("size") == large.size());
    CHECK(rows.at(0).at("preview").get<std::string>().size() <= 200);
    const std::string id = rows.at(0).at("id").get<std::string>();
    const json whole = seen("/api/message?id=" + id);
    CHECK(whole.at("payload").at("text").get<std::string>() == large.substr(0, 4096));
    CHECK(whole.at("payload").at("hex").get<std::string>().size() == 8192);
    const DashboardResponse file = get("/api/payload?id=" + id);
    CHECK(file.status == 200);
    CHECK(field(file, "Content-Type") == "application/octet-stream");
    CHECK(field(file, "Content-Disposition").starts_with("attachment"));
    CHECK(file.body == large);
}

TEST_CASE_FIXTURE(Fixture, "each step acts on the message that was shown, once") {
    push({"a", "b", "c"});
    const json rows = messages("waiting");
    const auto id = [&](std::size_t row) { return rows.at(row).at("id").get<std::string>(); };
    SUBCASE("remove") {
        CHECK(done("/api/remove?id=" + id(1)));
        CHECK(waiting() == Texts{"a", "c"});
        CHECK_FALSE(done("/api/remove?id=" + id(1)));
        CHECK(waiting() == Texts{"a", "c"});
    }
    SUBCASE("run") {
        CHECK(done("/api/run?id=" + id(2)));
        CHECK(waiting() == Texts{"c", "a", "b"});
    }
    SUBCASE("what others have taken is told") {
        CHECK(Consumer<Raw>(uri, "q").next()->ack());
        CHECK_FALSE(done("/api/run?id=" + id(0)));
        CHECK(waiting() == Texts{"b", "c"});
    }
    SUBCASE("what a consumer holds is its own") {
        Consumer<Raw> consumer(uri, "q");
        const auto guard = consumer.next();
        const json held_rows = messages("held");
        CHECK(held_rows.at(0).at("consumer") == consumer.name());
        const std::string held_id = held_rows.at(0).at("id").get<std::string>();
        CHECK(held_id != id(0));
        CHECK(post("/api/remove?id=" + held_id).status == 400);
        CHECK(post("/api/run?id=" + held_id).status == 400);
        CHECK(held() == Texts{"a"});
        const json workers = seen("/api/workers?queue=q").at("workers");
        REQUIRE(workers.size() == 1);
        CHECK(workers.at(0).at("id") == consumer.name());
        CHECK(workers.at(0).at("held") == 1);
        CHECK(eventually([&] { return seen("/api/workers").at("workers").size() == 1; }));
    }
    SUBCASE("a job is cancelled, wherever it is") {
        CHECK(post("/api/cancel?id=" + id(0)).status == 400); // no job
        const std::string held_job = *orizuru::JobProducer<Raw>(uri, "r").push({"x"});
        orizuru::JobProducer<Raw>(uri, "r").push({"y"});
        Consumer<Raw> consumer(uri, "r");
        const auto guard = consumer.next();
        const auto first_in = [&](const std::string& place) {
            const json all = seen("/api/messages?queue=r&place=" + place).at("messages");
            return all.at(0).at("id").get<std::string>();
        };
        CHECK(done("/api/cancel?id=" + first_in("held")));
        CHECK(redis.exists("orizuru:{r}:cancelled"));
        const std::string waiting_id = first_in("waiting");
        CHECK(done("/api/cancel?id=" + waiting_id + "&reason=sold%20out"));
        CHECK(redis.llen("orizuru:{r}:dead") == 1);
        CHECK_FALSE(done("/api/cancel?id=" + waiting_id));
    }
    SUBCASE("dead ones run and go, too") {
        bury_next();
        CHECK(done("/api/run?id=" + id_of_first("dead")));
        CHECK(waiting() == Texts{"b", "c", "a"});
        bury_next();
        CHECK(done("/api/remove?id=" + id_of_first("dead")));
        CHECK(redis.llen(dead) == 0);
    }
    SUBCASE("suspected ones run, move and go, too") {
        redis.lpush(suspects, {"d", "e", "f"});
        redis.command({"HSET", "orizuru:{q}:recoveries", "3c363836cf4e16666669a25da280a1865c2d2874",
                       "2"}); // of "d"
        CHECK(messages("suspected").size() == 3);
        CHECK(messages("suspected").at(0).at("blamed") == 2);
        CHECK(messages("suspected").at(1).at("blamed") == 0);
        redis.command(
            {"HSET", "orizuru:{q}:recoveries", "3c363836cf4e16666669a25da280a1865c2d2874", "3"});
        CHECK(eventually([&] { return messages("suspected").at(0).at("blamed") == 3; }));
        CHECK(done("/api/run?id=" + id_of_first("suspected")));
        CHECK(waiting() == Texts{"d", "a", "b", "c"});
        CHECK(done("/api/move?id=" + id_of_first("suspected") + "&to=r"));
        CHECK(redis.lrange("r") == Texts{"e"});
        CHECK(done("/api/remove?id=" + id_of_first("suspected")));
        CHECK(redis.llen(suspects) == 0);
    }
    SUBCASE("move") {
        CHECK(done("/api/move?id=" + id(0) + "&to=r%20s"));
        CHECK(waiting() == Texts{"b", "c"});
        CHECK(redis.lrange("r s") == Texts{"a"});
        CHECK_FALSE(done("/api/move?id=" + id(0) + "&to=r%20s"));
        CHECK(post("/api/move?id=" + id(1) + "&to=").status == 400);
        CHECK(post("/api/move?id=" + id(1)).status == 400);
        CHECK(waiting() == Texts{"b", "c"});
    }
    SUBCASE("clear removes the dead, and nothing else") {
        bury_next();
        bury_next();
        CHECK(post("/api/clear?queue=q&place=waiting").status == 400);
        CHECK(post("/api/clear?queue=q").status == 400);
        CHECK(redis.llen(dead) == 2);
        CHECK(done("/api/clear?queue=q&place=dead"));
        CHECK(redis.llen(dead) == 0);
        CHECK_FALSE(done("/api/clear?queue=q&place=dead"));
        CHECK(waiting() == Texts{"c"});
    }
    CHECK(post("/api/remove?id=0-0").status == 404);
    CHECK(post("/api/remove").status == 400);
    CHECK(post("/api/destroy?queue=q").status == 404);
}

TEST_CASE_FIXTURE(Fixture, "many dead are removed in short steps, and those who die later stay") {
    const auto bury = [&](const std::string& payload, std::int64_t time) {
        return "\x94\x02" + msgpack_bin32(payload) + msgpack_bin32("bad") +
               msgpack_u64(static_cast<std::uint64_t>(time));
    };
    const Texts some(10'000, bury("x", 1));
    for (int i = 0; i < 5; ++i) {
        redis.lpush(dead, some);
    }
    std::string target = "/api/clear?queue=q&place=dead";
    const auto step = [&] { return json::parse(post(target).body); };
    const Stopwatch stopwatch;
    const json first = step();
    CHECK(stopwatch.elapsed() < 2s);
    REQUIRE(first.value("more", false));
    CHECK(first.at("done") == true);
    CHECK(first.at("changed") == 50'000 - redis.llen(dead));
    redis.command({"LTRIM", dead, "0", "149"});
    redis.lpush(dead, {bury("later", server_ms() + 1000)});
    target += "&until=" + std::to_string(first.at("until").get<std::int64_t>());
    const json last = step();
    CHECK(last.at("more") == false);
    CHECK(last.at("changed") == 150);
    CHECK(redis.llen(dead) == 1);
    CHECK(step().at("done") == false);
    CHECK(messages("dead").at(0).at("preview") == "later");
    target = "/api/clear?queue=q&place=dead&until=x";
    CHECK(post(target).status == 400);
    CHECK(redis.llen(dead) == 1);
}

TEST_CASE_FIXTURE(Fixture, "a queue is paused and resumed, and the next sample shows it") {
    for (const bool paused : {true, false}) {
        const json answer =
            json::parse(post(paused ? "/api/pause?queue=q" : "/api/resume?queue=q").body);
        CHECK(redis.exists("orizuru:{q}:paused") == paused);
        const auto sample = [&] { return seen("/api/queues").at("sample").get<int>(); };
        CHECK(eventually([&] { return sample() >= answer.at("sample").get<int>(); }));
        CHECK(queue().at("paused") == paused);
    }
    redis.command({"SADD", "orizuru:queues", "r"});
    CHECK(done("/api/forget?queue=r"));
    CHECK_FALSE(done("/api/forget?queue=r"));
}

TEST_CASE_FIXTURE(Fixture, "without the token there is nothing, and guessing it is slow") {
    const auto status = [&](const std::string& authorization) {
        HttpHeaders headers{{"Host", "localhost:1"}};
        if (!authorization.empty()) {
            headers.emplace_back("Authorization", authorization);
        }
        return get("/api/queues", headers).status;
    };
    for (int i = 0; i < 20; ++i) {
        CHECK(status("") == 401); // no guess
    }
    const std::string right = token;
    CHECK(status("Bearer " + right) == 200);
    const Texts wrong{"Bearer " + right.substr(1),
                      "Bearer " + right + "x",
                      "Bearer ",
                      "bearer " + right,
                      right,
                      "Bearer " + std::string(right.size(), 'x')};
    for (const std::string& guess : wrong) {
        CHECK(status(guess) == 401);
    }
    int refused = 0;
    for (int i = 0; i < 30; ++i) {
        refused += status("Bearer x") == 429 ? 1 : 0;
    }
    CHECK(refused >= 19);
    CHECK(status("Bearer " + right) == 200); // nobody locks the owner out
    CHECK(eventually([&] { return status("Bearer x") == 401; }));
    HttpHeaders twice = viewer();
    twice.push_back(twice.back());
    CHECK(get("/api/queues", twice).status == 401);
    CHECK(post("/api/pause?queue=q", {{"Host", "localhost"}}).status == 401);
}

TEST_CASE("a token is made when none is given, and one that is too easy is refused") {
    const Dashboard one(server().uri());
    const Dashboard other(server().uri());
    CHECK(is_hex(one.token(), 32));
    CHECK(one.token() != other.token());
    CHECK(one.link("http://localhost:1") == "http://localhost:1/#token=" + one.token());
    CHECK_THROWS_AS(Dashboard(server().uri(), {.token = "short"}), std::invalid_argument);
    CHECK_THROWS_AS(Dashboard(server().uri(), {.token = "with a space in the middle"}),
                    std::invalid_argument);
    CHECK_THROWS_AS(Dashboard(server().uri(), {.refresh = 1ms}), std::invalid_argument);
    CHECK_THROWS_AS(Dashboard(server().uri(), {.history_step = 1ms}), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "a name of somebody else's that leads here is refused") {
    const auto status = [&](const std::string& path, const std::string& host) {
        HttpHeaders headers = viewer();
        headers[0].second = host;
        return get(path, headers).status;
    };
    for (const std::string path : {"/", "/api/queues"}) {
        for (const std::string host :
             {"evil.example", "evil.example:8080", "localhost.evil.example",
              "127.0.0.1.evil.example", "", "[::2]:8080", "10.0.0.1"}) {
            CAPTURE(host);
            CHECK(status(path, host) == 403);
        }
        for (const std::string host :
             {"[::1].evil.example", "[::1]evil.example:80", "[::1]:80.evil.example", "[::1",
              "127.0.0.1:80.evil.example", "localhost:x", "localhost:80:80",
              "localhost@evil.example", "evil@localhost", "localhost/", "localhost.", " localhost",
              "localhost:123456", ":80", "[localhost]", "::1"}) {
            CAPTURE(host);
            CHECK(status(path, host) == 403);
        }
        for (const std::string host : {"localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8080"}) {
            CHECK(status(path, host) == 200);
        }
        CHECK(get(path, {}).status == 403);
    }
    DashboardOptions options = quick();
    for (const std::string host :
         {"http://queues.example", "queues.example:80", "a b", "", "[::1"}) {
        options.hosts = {"queues.example", host};
        CHECK(contains(message_of<std::invalid_argument>([&] { with(options); }), "hosts"));
    }
    options.hosts = {"Queues.example", "[2001:db8::1]"};
    with(options);
    CHECK(status("/", "queues.example:443") == 200);
    CHECK(status("/", "evil.example") == 403);
}

TEST_CASE_FIXTURE(Fixture, "only a page of ours takes steps") {
    push({"a"});
    const std::string before = all_keys();
    const auto status = [&](const HttpHeaders& more) {
        HttpHeaders headers = viewer();
        headers.insert(headers.end(), more.begin(), more.end());
        return post("/api/pause?queue=q", headers).status;
    };
    CHECK(status({}) == 403);
    CHECK(status({{"X-Orizuru", "1"}}) == 403);
    CHECK(status({{"Sec-Fetch-Site", "same-origin"}}) == 403);
    CHECK(status({{"X-Orizuru", "1"}, {"Sec-Fetch-Site", "cross-site"}}) == 403);
    CHECK(status({{"X-Orizuru", "1"}, {"Sec-Fetch-Site", "same-site"}}) == 403);
    CHECK(status({{"X-Orizuru", "1"}, {"Sec-Fetch-Site", "none"}}) == 403);
    CHECK(status({{"X-Orizuru", "1"}, {"Origin", "http://evil.example"}}) == 403);
    for (const std::string origin : {"null", "evil://127.0.0.1:8080", "http://127.0.0.1:8080/",
                                     "x http://127.0.0.1:8080", "http://http://127.0.0.1:8080"}) {
        CHECK(status({{"X-Orizuru", "1"}, {"Origin", origin}}) == 403);
    }
    CHECK(get("/api/pause?queue=q", own_page()).status == 404);
    CHECK(dashboard->handle(request("OPTIONS", "/api/pause?queue=q", own_page())).status == 405);
    CHECK(dashboard->handle(request("PUT", "/api/pause?queue=q", own_page())).status == 405);
    CHECK(all_keys() == before);
    // Without TLS and from another host, browsers say no more than this.
    CHECK(status({{"X-Orizuru", "1"}, {"Origin", "http://127.0.0.1:8080"}}) == 200);
}

TEST_CASE_FIXTURE(Fixture, "who may only look takes no steps") {
    push({"a"});
    DashboardOptions options = quick();
    SUBCASE("nobody may, when it is read-only: there are no such routes") {
        options.read_only = true;
        with(options);
        const std::string id = id_of_first("waiting");
        for (const std::string step :
             {"pause?queue=q", "resume?queue=q", "forget?queue=q", "nothing?queue=q",
              "run-all?queue=q&place=dead", "clear?queue=q&place=dead"}) {
            CHECK(post("/api/" + step).status == 404);
        }
        CHECK(post("/api/remove?id=" + id).status == 404);
        CHECK(post("/api/run?id=" + id).status == 404);
        CHECK(seen("/api/queues").at("writes") == false);
    }
    SUBCASE("a login of the server's says who may") {
        options.authorize = [](const DashboardRequest& request) {
            const auto user = request.header("x-user");
            return user == "reader"   ? DashboardAccess::read
                   : user == "writer" ? DashboardAccess::write
                                      : DashboardAccess::none;
        };
        with(options);
        const auto as = [](const std::string& user, HttpHeaders headers) {
            std::erase_if(headers, [](const auto& one) { return one.first == "Authorization"; });
            headers.emplace_back("X-User", user);
            return headers;
        };
        CHECK(get("/api/queues", as("nobody", viewer())).status == 401);
        const DashboardResponse state = get("/api/queues", as("reader", viewer()));
        CHECK(state.status == 200);
        CHECK(json::parse(state.body).at("writes") == false);
        CHECK(post("/api/pause?queue=q", as("reader", own_page())).status == 403);
        CHECK(post("/api/pause?queue=q", as("writer", viewer())).status == 403);
        CHECK_FALSE(redis.exists("orizuru:{q}:paused"));
        CHECK(post("/api/pause?queue=q", as("writer", own_page())).status == 200);
        CHECK(seen("/api/queues").at("writes") == true); // by the token
        CHECK(done("/api/resume?queue=q"));
    }
    CHECK(waiting() == Texts{"a"});
    CHECK_FALSE(redis.exists("orizuru:{q}:paused"));
}

TEST_CASE_FIXTURE(Fixture, "payloads are hidden or shown by a function of the user's") {
    push({"card 4111"});
    DashboardOptions options = quick();
    const auto leaks = [&](const std::string& target) {
        return contains(get(target).body, "4111") || contains(get(target).body, "34313131");
    };
    SUBCASE("hidden") { options.show_payloads = false; }
    SUBCASE("redacted") {
        options.format_payload = [](std::string_view queue, std::string_view payload) {
            return std::string(queue) + ": " + std::string(payload.substr(0, 5)) + "***";
        };
    }
    SUBCASE("a formatter that throws") {
        options.format_payload = [](std::string_view, std::string_view) -> std::string {
            throw std::runtime_error("no card");
        };
    }
    with(options);
    const std::string id = id_of_first("waiting");
    CHECK_FALSE(leaks("/api/messages?queue=q&place=waiting"));
    CHECK_FALSE(leaks("/api/message?id=" + id));
    CHECK(get("/api/payload?id=" + id).status == 404);
    const json whole = seen("/api/message?id=" + id);
    if (options.format_payload) {
        const std::string shown = whole.at("payload").at("text").get<std::string>();
        CHECK((shown == "q: card ***" || shown == "cannot be shown: no card"));
    } else {
        CHECK_FALSE(whole.contains("payload"));
    }
}

TEST_CASE("Redis that is away is told, without its password, and is back by itself") {
    RedisServer own({"--requirepass", "s3cret"});
    const std::string uri = "unix://:s3cret@" + own.socket_path();
    Dashboard dashboard(uri, quick());
    const auto ask = [&](const std::string& target) {
        const DashboardResponse response = dashboard.handle(request("GET", target, viewer()));
        CHECK_FALSE(contains(response.body, "s3cret"));
        return std::pair(response.status, json::parse(response.body));
    };
    const auto failure = [&] { return ask("/api/queues").second.at("failure") != ""; };
    CHECK(eventually([&] { return ask("/api/queues").second.at("sample") > 0 && !failure(); }));
    own.kill();
    CHECK(eventually(failure));
    CHECK(ask("/api/queues").second.at("queues").size() == 1); // as they were
    const Stopwatch stopwatch;
    CHECK(ask("/api/messages?queue=q&place=waiting").first == 503);
    CHECK(dashboard.handle(request("POST", "/api/pause?queue=q", own_page())).status == 503);
    CHECK(stopwatch.elapsed() < 1s);
    own.restart();
    CHECK(eventually([&] { return !failure(); }));
    CHECK(ask("/api/messages?queue=q&place=waiting").first == 200);
}

TEST_CASE_FIXTURE(Fixture, "who may not read the list of queues sees those that are named") {
    push({"a"});
    redis.command({"SADD", "orizuru:queues", "other"});
    redis.command({"ACL", "SETUSER", "viewer", "reset", "on", ">open-sesame", "~q",
                   "~orizuru:{q}:*", "+@all"});
    Dashboard narrow("unix://viewer:open-sesame@" + server().socket_path(), quick());
    const auto ask = [&](const std::string& target) {
        const DashboardResponse response = narrow.handle(request("GET", target, viewer()));
        CHECK_FALSE(contains(response.body, "open-sesame"));
        return std::pair(response.status, json::parse(response.body));
    };
    REQUIRE(eventually([&] { return ask("/api/queues").second.at("sample") > 0; }));
    const json state = ask("/api/queues").second;
    CHECK(state.at("failure") == "");
    CHECK(contains(state.value("notice", ""), "orizuru:queues"));
    CHECK(contains(state.value("notice", ""), "NOPERM"));
    REQUIRE(state.at("queues").size() == 1);
    CHECK(state.at("queues").at(0).at("waiting") == 1);
    CHECK(state.at("age").is_number());
    CHECK(ask("/api/messages?queue=q&place=waiting").first == 200);
    CHECK(narrow.handle(request("POST", "/api/pause?queue=q", own_page())).status == 200);
    // The right may come later.
    redis.command({"ACL", "SETUSER", "viewer", "~*"});
    CHECK(eventually([&] {
        const json now = ask("/api/queues").second;
        return now.at("notice") == "" && now.at("queues").size() == 2;
    }));
    redis.command({"ACL", "DELUSER", "viewer"});
}

TEST_CASE_FIXTURE(Fixture, "the end waits for one command, however many queues there are") {
    std::atomic<int> asked = 0;
    const FakeServer slow(
        [&](const Texts& argv) -> std::optional<std::string> {
            if (argv.front() == "EVAL_RO") {
                ++asked;
                std::this_thread::sleep_for(50ms);
            }
            return FakeServer::pass;
        },
        server().socket_path());
    DashboardOptions options = quick();
    for (int i = 0; i < 100; ++i) {
        options.queues.push_back("q" + std::to_string(i));
    }
    auto other = std::make_unique<Dashboard>(slow.uri(), options);
    REQUIRE(eventually([&] { return asked > 1; }));
    const Stopwatch stopwatch;
    other.reset();
    CHECK(stopwatch.elapsed() < 1s);
    CHECK(asked < 50);
}

TEST_CASE("Redis that refuses the password is told without it") {
    RedisServer own({"--requirepass", "s3cret"});
    Dashboard dashboard("unix://:wr0ng@" + own.socket_path(), quick());
    std::string body;
    CHECK(eventually([&] {
        body = dashboard.handle(request("GET", "/api/queues", viewer())).body;
        return json::parse(body).at("failure") != "";
    }));
    CHECK_FALSE(contains(body, "wr0ng"));
}

TEST_CASE_FIXTURE(Fixture, "ten viewers cost Redis as much as one") {
    for (int i = 0; i < 100; ++i) {
        redis.command({"SADD", "orizuru:queues", "q" + std::to_string(i)});
    }
    DashboardOptions options = quick();
    options.history_step = 1h;
    with(options);
    REQUIRE(eventually([&] { return seen("/api/queues").at("all") == 101; }));
    redis.command({"CONFIG", "RESETSTAT"});
    const auto begin = std::chrono::steady_clock::now();
    {
        std::vector<std::jthread> viewers;
        for (int i = 0; i < 10; ++i) {
            viewers.emplace_back([&] {
                for (int polls = 0; polls < 30; ++polls) {
                    CHECK(get("/api/queues").status == 200);
                    CHECK(get("/api/messages?queue=q&place=waiting").status == 200);
                    std::this_thread::sleep_for(10ms);
                }
            });
        }
    }
    const auto passes = (std::chrono::steady_clock::now() - begin) / 100ms + 2;
    const auto calls = [&](const std::string& command) {
        return info("commandstats", "cmdstat_" + command + ":calls");
    };
    CHECK(calls("eval_ro") <= 3 * passes);
    CHECK(calls("time") <= 3 * passes);
    CHECK(eventually([&] { return !seen("/api/queues").empty() && calls("smembers") > 0; }));
    CHECK(calls("lrange") <= 2 * passes); // each half of that time
}

TEST_CASE("messages that are listed make room for those that are listed later") {
    orizuru::detail::web::ListedMessages listed(1000, 4);
    const auto message = [](const std::string& bytes) {
        return orizuru::PlacedMessage{orizuru::Place::waiting, bytes, bytes};
    };
    const std::string a = listed.keep("q", message("a")).first;
    CHECK(listed.keep("q", message("a")).first == a);
    CHECK(listed.keep("r", message("a")).first != a);
    CHECK(listed.find(a)->message.bytes == "a");
    const std::string large = listed.keep("q", message(std::string(900, 'x'))).first;
    CHECK(listed.find(a) == nullptr);
    CHECK(listed.find(large) != nullptr); // the newest stays, however large
    const std::string b = listed.keep("q", message("b")).first;
    CHECK(listed.find(large) == nullptr);
    for (const char* const text : {"c", "d", "e"}) {
        static_cast<void>(listed.keep("q", message(text)));
    }
    CHECK(listed.find(b) != nullptr);
    static_cast<void>(listed.keep("q", message("b")));
    static_cast<void>(listed.keep("q", message("f")));
    CHECK(listed.find(b) != nullptr); // seen again
    CHECK(listed.keep("q", message("a")).first != a);
}

} // namespace dashboard_test
