// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "support/old_envelope.hpp"

#include <orizuru/codec.hpp>
#include <orizuru/detail/jobs/envelope_id.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/detail/jobs/own_lock.hpp>
#include <orizuru/jobs/job.hpp>

#include <doctest/doctest.h>
#include <msgpack.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace job_test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using namespace std::string_view_literals;
using orizuru::Codec;
using orizuru::Job;
using orizuru::JobTime;
using orizuru::make_job;
using orizuru::Raw;
using orizuru::Scratch;
using orizuru::test::OldJob;

struct NotDefault {
    explicit NotDefault(int number) : value(number) {}
    int value;
};

} // namespace job_test

template <>
struct orizuru::Codec<job_test::NotDefault> {
    static std::string encode(const job_test::NotDefault& object) {
        return std::to_string(object.value);
    }
    static job_test::NotDefault decode(std::string_view bytes) {
        return job_test::NotDefault(std::stoi(std::string(bytes)));
    }
};

namespace job_test {

static_assert(orizuru::MessageEncodable<Job<Raw>> && orizuru::MessageDecodable<Job<Raw>>);
static_assert(orizuru::MessageEncodable<Job<std::string>>);
static_assert(orizuru::MessageDecodable<Job<NotDefault>>);
static_assert(!orizuru::MessageEncodable<Job<std::istringstream>>);

template <class T>
std::string encoded(const Job<T>& job) {
    std::string bytes;
    Codec<Job<T>>::encode(job, bytes);
    return bytes;
}

template <class T>
Job<T> decoded(std::string_view bytes) {
    Scratch scratch;
    return Codec<Job<T>>::decode(bytes, scratch);
}

Job<Raw> some_job() {
    return {.id = "id",
            .attempt = 3,
            .first_enqueued_at = JobTime(1ms),
            .enqueued_at = JobTime(-2ms),
            .first_failed_at = JobTime(5ms),
            .expires_at = JobTime(300ms),
            .last_error = "no luck",
            .unique_id = "u",
            .unique_queue = "q",
            .payload = {"\0x"s}};
}

// As the comment of job.hpp has it.
const std::string some_bytes =
    "\x9b\x01\xa2id\x03\x01\xfe\x05\xcd\x01\x2c\xa7no luck\xa1u\xa1q\xc4\x02\0x"s;

std::string why_refused(std::string_view bytes) {
    try {
        static_cast<void>(decoded<Raw>(bytes));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "not refused";
}

TEST_CASE("a job's id is read from the beginning of its envelope, whatever follows") {
    using orizuru::detail::envelope_id;
    using orizuru::detail::longest_envelope_start;
    for (const std::size_t size : {1U, 31U, 32U, 255U, 256U, 512U}) {
        Job<std::string> job = make_job("x"s);
        job.id = std::string(size, 'i');
        for (const std::uint64_t version : {1ULL, 200ULL, 70'000ULL, ~0ULL}) {
            job.version = version;
            const std::string bytes = encoded(job);
            CHECK(envelope_id(bytes) == job.id);
            CHECK(envelope_id(bytes.substr(0, longest_envelope_start)) == job.id);
            for (std::size_t cut = 0; cut < bytes.find(job.id) + size; ++cut) {
                CHECK_FALSE(envelope_id(std::string_view(bytes).substr(0, cut)));
            }
        }
    }
    CHECK(envelope_id("\xdd\0\0\0\x02\x01\xa1x"sv) == "x");
    CHECK(envelope_id("\xdc\0\x02\x01\xa1x"sv) == "x");
    for (const std::string_view no :
         {""sv, "\x9b"sv, "\x9b\x01"sv, "\x9b\x01\xa0"sv, "\x9b\xc0\xa1x"sv, "\x9b\x01\xc4\x01x"sv,
          "\x81\x01\xa1x"sv, "\xdd\0\0"sv, "\x9b\xcf\0\0"sv, "\x9b\x01\xdb\xff\xff\xff\xffx"sv}) {
        CHECK_FALSE(envelope_id(no));
    }
    CHECK_FALSE(envelope_id("\x9b\x01\xda\x02\x01" + std::string(513, 'i')));
}

TEST_CASE("an envelope has the documented bytes, and comes back as it was") {
    CHECK(encoded(some_job()) == some_bytes);
    const auto job = decoded<Raw>(some_bytes);
    CHECK(job.id == "id");
    CHECK(job.attempt == 3);
    CHECK(job.first_enqueued_at == JobTime(1ms));
    CHECK(job.enqueued_at == JobTime(-2ms));
    CHECK(job.first_failed_at == JobTime(5ms));
    CHECK(job.expires_at == JobTime(300ms));
    CHECK(job.last_error == "no luck");
    CHECK(job.unique_id == "u");
    CHECK(job.unique_queue == "q");
    CHECK(job.payload.bytes == "\0x"s);
    CHECK(job.version == 1);
    CHECK(job.later.empty());
}

TEST_CASE("a new job has an id of its own, of 32 hexadecimal digits, and is tried the first time") {
    std::set<std::string> ids;
    const JobTime before = orizuru::job_time();
    for (int i = 0; i < 100; ++i) {
        const auto job = make_job(Raw{"x"});
        CHECK(job.id.size() == 32);
        CHECK(job.id.find_first_not_of("0123456789abcdef") == std::string::npos);
        ids.insert(job.id);
        CHECK(job.attempt == 1);
        CHECK(job.first_enqueued_at >= before);
        CHECK(job.enqueued_at == job.first_enqueued_at);
        CHECK_FALSE(job.first_failed_at);
        CHECK_FALSE(job.expires_at);
    }
    CHECK(ids.size() == 100);
}

TEST_CASE("a job expires at its time, and without one never") {
    const auto job = make_job(Raw{"x"}, 5ms);
    CHECK_FALSE(job.expired(job.enqueued_at + 4ms));
    CHECK(job.expired(job.enqueued_at + 5ms));
    CHECK_FALSE(make_job(Raw{"x"}).expired(JobTime::max()));
}

TEST_CASE("the fields and the version of a newer envelope come back as they were") {
    std::string newer = "\xdc\0\x14"s + some_bytes.substr(1) +
                        "\x2a\xc0\xc0\xc0\xc0\xc0\x2a\x92\xc0\xa1z\x81\xa1k\xc4\x01\xff"s;
    newer.at(3) = '\x02';
    auto job = decoded<Raw>(newer);
    CHECK(job.version == 2);
    CHECK(job.ledger_attempt == 42);
    CHECK(job.later.size() == 3);
    CHECK(encoded(job) == newer);
    job.attempt = 4;
    std::string again = newer;
    again.at(7) = '\x04';
    CHECK(encoded(job) == again);
}

TEST_CASE("attributes, a kind and max_attempts lie behind the payload, and nothing when there are "
          "none") {
    const auto with = [](std::size_t fields, const std::string& later) {
        std::string bytes = some_bytes + later;
        bytes.at(0) = static_cast<char>(0x90 + fields);
        return bytes;
    };
    auto job = some_job();
    job.attributes = {{"trace", "0af7"}, {"b", ""}};
    const std::string attributes = "\x82\xa1"
                                   "b\xa0\xa5trace\xa4"
                                   "0af7"s;
    CHECK(encoded(job) == with(12, attributes));
    CHECK(decoded<Raw>(encoded(job)).attributes == job.attributes);
    job.kind = "charge";
    CHECK(encoded(job) == with(13, attributes + "\xa6"
                                                "charge"));
    job.max_attempts = 300;
    CHECK(encoded(job) == with(14, attributes + "\xa6"
                                                "charge\xcd\x01\x2c"));
    job.attributes.clear();
    CHECK(encoded(job) == with(14, "\xc0\xa6"
                                   "charge\xcd\x01\x2c"));
    const auto back = decoded<Raw>(encoded(job));
    CHECK(back.kind == "charge");
    CHECK(back.max_attempts == 300);
    CHECK(back.attributes.empty());
    job.kind.clear();
    CHECK(encoded(job) == with(14, "\xc0\xc0\xcd\x01\x2c"));
    CHECK(decoded<Raw>(encoded(job)).kind.empty());
    job.max_attempts.reset();
    CHECK(encoded(job) == some_bytes);
    job.ledger_attempt = 3;
    job.kind = "k";
    CHECK(encoded(job) == with(13, "\x03\xa1k"));
    CHECK(decoded<Raw>(encoded(job)).ledger_attempt == 3);
    CHECK(decoded<Raw>(with(14, "\xc0\xc0\xc0")).later.empty());
    job = some_job();
    job.key = "tenant 7";
    CHECK(encoded(job) == with(15, "\xc0\xc0\xc0\xa8"
                                   "tenant 7"));
    CHECK(decoded<Raw>(encoded(job)).key == "tenant 7");
    CHECK(decoded<Raw>(encoded(job)).ticket.empty());
    job.ticket = "t";
    const std::string sixteen =
        "\xdc\0\x10"s + some_bytes.substr(1) + "\xc0\xc0\xc0\xa8tenant 7\xa1t";
    CHECK(encoded(job) == sixteen);
    CHECK(decoded<Raw>(sixteen).ticket == "t");
    job.key.clear(); // of a ticket alone, too
    CHECK(decoded<Raw>(encoded(job)).ticket == "t");
    job.ticket.clear();
    job.group = "g";
    const std::string seventeen =
        "\xdc\0\x11"s + some_bytes.substr(1) + "\xc0\xc0\xc0\xc0\xc0\xa1g";
    CHECK(encoded(job) == seventeen);
    CHECK(decoded<Raw>(seventeen).group == "g");
    CHECK(decoded<Raw>(sixteen).group.empty());
}

/// Jobs with and without each of the fields behind the payload.
std::vector<Job<Raw>> jobs_with_later_fields() {
    orizuru::JobAttributes many;
    for (int i = 0; i < 64; ++i) {
        many[std::to_string(100 + i)] = std::string(253, 'x');
    }
    std::vector<Job<Raw>> jobs;
    for (const auto& attributes :
         {orizuru::JobAttributes(), orizuru::JobAttributes{{"trace", "0af7"}}, many}) {
        for (const std::string kind : {"", "charge"}) {
            for (const auto most : {std::optional<int>(), std::optional(300)}) {
                for (const std::string key : {"", "tenant 7"}) {
                    auto& job = jobs.emplace_back(some_job());
                    job.attributes = attributes;
                    job.kind = kind;
                    job.max_attempts = most;
                    job.key = key;
                    job.ticket = kind.empty() ? key : "";
                    job.group = most ? key : "";
                }
            }
        }
    }
    return jobs;
}

TEST_CASE(
    "a worker that knows eleven fields tries a newer job again, and all the others are kept") {
    for (const Job<Raw>& job : jobs_with_later_fields()) {
        auto old = OldJob::read(encoded(job));
        CHECK(old.payload == job.payload.bytes);
        CHECK(old.unique_id == job.unique_id);
        old.fail("old and tired", 400);
        const auto again = decoded<Raw>(old.bytes());
        CHECK(again.attempt == job.attempt + 1);
        CHECK(again.enqueued_at == JobTime(400ms));
        CHECK(again.last_error == "old and tired");
        auto expected = job;
        expected.attempt = again.attempt;
        expected.enqueued_at = again.enqueued_at;
        expected.last_error = again.last_error;
        CHECK(again.attributes == job.attributes);
        CHECK(again.kind == job.kind);
        CHECK(again.max_attempts == job.max_attempts);
        CHECK(encoded(again) == encoded(expected));
    }
}

TEST_CASE("a job of a worker that knows eleven fields is read, and goes back to it as it was") {
    OldJob old{.id = "id", .attempt = 2, .first_enqueued_at = 1, .payload = "x"};
    auto job = decoded<Raw>(old.bytes());
    CHECK(job.attempt == 2);
    CHECK(job.payload.bytes == "x");
    CHECK(job.attributes.empty());
    CHECK(job.kind.empty());
    CHECK_FALSE(job.max_attempts);
    CHECK(encoded(job) == old.bytes());
    CHECK(OldJob::read(encoded(job)).later.empty());
    old.later = {"\x07"}; // a Ledger's mark, as it was written before
    job = decoded<Raw>(old.bytes());
    CHECK(job.ledger_attempt == 7);
    CHECK(encoded(job) == old.bytes());
}

TEST_CASE("the kind is read without the payload") {
    msgpack::zone zone;
    const auto kind_of = [&zone](std::string_view bytes) {
        return orizuru::detail::envelope_kind(bytes, zone);
    };
    auto job = some_job();
    CHECK(kind_of(encoded(job)).empty());
    job.attributes = {{"a", "b"}};
    CHECK(kind_of(encoded(job)).empty());
    job.kind = "charge";
    CHECK(kind_of(encoded(job)) == "charge");
    job.later = {"\x01", "\x02", "\x03"};
    CHECK(kind_of(encoded(job)) == "charge"); // an array of more than 15
    for (const std::string& no : {""s, "hello"s, "\x9d"s, "\xdc\0"s, "\xdd\0\0\0\x0d"s}) {
        CHECK(kind_of(no).empty());
    }
}

TEST_CASE("attributes, a kind and max_attempts that cannot be are neither written nor read") {
    const auto why = [](const auto& change) {
        auto job = some_job();
        change(job);
        try {
            static_cast<void>(encoded(job));
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return "written"s;
    };
    const std::string too_many = "a job's attributes must be at most 64, and at most 16384 bytes: "
                                 "these are ";
    const auto fill = [](Job<Raw>& job, int count, std::size_t size) {
        for (int i = 0; i < count; ++i) {
            job.attributes[std::to_string(100 + i)] = std::string(size, 'x');
        }
    };
    CHECK(why([&](auto& job) { fill(job, 64, 253); }) == "written");
    CHECK(why([&](auto& job) { fill(job, 65, 1); }) == too_many + "65, 260 bytes");
    CHECK(why([&](auto& job) { fill(job, 64, 254); }) == too_many + "64, 16448 bytes");
    CHECK(why([](auto& job) { job.attributes[""] = "x"; }) == "a job's attribute has no name");
    const std::string no_kind = "a job's kind must have at most 100 bytes and no control character";
    CHECK(why([](auto& job) { job.kind = std::string(100, 'k'); }) == "written");
    CHECK(why([](auto& job) { job.kind = std::string(101, 'k'); }) == no_kind);
    for (const char letter : {'\0', '\n', '\x1f', '\x7f'}) {
        CHECK(why([&](auto& job) { job.kind = letter; }) == no_kind);
    }
    CHECK(why([](auto& job) { job.kind = "\xc3\xa9 ~"; }) == "written");
    CHECK(why([](auto& job) { job.max_attempts = 0; }) == "a job's max_attempts must be 1 or more");

    const auto why_refused_with = [](std::size_t fields, const std::string& later) {
        std::string bytes = some_bytes + later;
        bytes.at(0) = static_cast<char>(0x90 + fields);
        return why_refused(bytes);
    };
    CHECK(why_refused_with(12, "\xa1x") == "the job's envelope has attributes that are no map");
    CHECK(why_refused_with(12, "\x81\xa1x\x01") ==
          "the job's envelope has an attribute that is no text");
    CHECK(why_refused_with(12, "\x81\x01\xa1x") ==
          "the job's envelope has an attribute that is no text");
    CHECK(why_refused_with(12, "\x81\xa0\xa1x") == "a job's attribute has no name");
    CHECK(why_refused_with(13, "\xc0\x01") == "the job's envelope has a kind that is no text");
    CHECK(why_refused_with(13, "\xc0\xa1\n") == no_kind);
    CHECK(why_refused_with(14, "\xc0\xc0\xa1x") ==
          "the job's envelope has a max_attempts that cannot be");
    CHECK(why_refused_with(14, "\xc0\xc0\0"s) ==
          "the job's envelope has a max_attempts that cannot be");
    CHECK(why_refused_with(15, "\xc0\xc0\xc0\x01") ==
          "the job's envelope has a key that is no text");
    CHECK(why_refused_with(15, "\xc0\xc0\xc0\xda\x02\x01" + std::string(513, 'k')) ==
          "a job's key must have at most 512 bytes");
    CHECK(why([](auto& job) { job.key = std::string(513, 'k'); }) ==
          "a job's key must have at most 512 bytes");
    CHECK(why([](auto& job) { job.key = std::string(512, 'k'); }) == "written");
}

TEST_CASE("an envelope that is none is refused with what it lacks") {
    const auto no_envelope = [](const std::string& why) {
        return "no job envelope (" + why +
               "): push jobs by orizuru::JobProducer, or as README's \"Other languages\" says";
    };
    CHECK(why_refused("\x01") == no_envelope("the payload is no array"));
    CHECK(why_refused("") == no_envelope("an empty payload"));
    CHECK(why_refused("hello") == no_envelope("bytes behind the value"));
    CHECK(why_refused("\x92\x07\x91\xa3tea") == no_envelope("it has no id"));
    CHECK(why_refused("\x90") == no_envelope("it has too few fields"));
    const auto with = [](std::size_t at, char byte) {
        std::string bytes = some_bytes;
        bytes.at(at) = byte;
        return bytes;
    };
    CHECK(why_refused(with(1, '\0')) == no_envelope("it has an unknown version"));
    CHECK(why_refused(with(1, '\xff')) == no_envelope("it has an unknown version"));
    CHECK(why_refused("\x9b\x01\xa0\x03\x01\xfe\xc0\xc0\xa0\xa0\xa0\xc4\0"s) ==
          no_envelope("it has no id"));
    CHECK(why_refused(with(5, '\0')) == "the job's envelope has no attempt");
    CHECK(why_refused(with(6, '\xc0')) == "the job's envelope has a time that is no number");
    CHECK(why_refused("\x9a\x01\xa1i\x03\x01\xfe\xc0\xc0\xa0\xa0\xa0"s) ==
          "the job's envelope has too few fields");
    CHECK(why_refused("\x9b\x01\xa1i\x03\x01\xfe\xc0\xc0\xa0\xc0\xa0\xc4\0"s) ==
          "the job's envelope has no unique_id or a longer one");
    CHECK(why_refused("\x9b\x01\xa1i\x03\x01\xfe\xc0\xc0\xa0\xa0\xa0\xa0"s) ==
          "the job's envelope has no payload");
    CHECK(why_refused(
              "\x9b\x01\xa1i\x03\xcf\0\0\xe6\x77\xd2\x1f\xdc\0\x01\xc0\xc0\xa0\xa0\xa0\xc4\0"s) ==
          "the job's envelope has a time beyond the year 9999");
    CHECK(why_refused("\x9b\x01\xa1i\x03\x01\xfe\xc0\xc0\xa0\xa0\xa1{\xc4\0"s) ==
          "the job's envelope has a unique_queue that cannot be");
    for (std::size_t size = 0; size < some_bytes.size(); ++size) {
        CAPTURE(size);
        CHECK(why_refused(std::string_view(some_bytes).substr(0, size)) != "not refused");
    }
}

TEST_CASE("a job that is to expire in ages expires at the end of the year 9999") {
    const auto job = make_job(Raw{"x"}, std::chrono::milliseconds::max());
    CHECK(job.expires_at == JobTime(253'402'300'799'999ms));
    CHECK(decoded<Raw>(encoded(job)).expires_at == job.expires_at);
    CHECK(decoded<Raw>(encoded(make_job(Raw{"x"}, std::chrono::milliseconds::min())))
              .expired(orizuru::job_time()));
}

TEST_CASE("the time and the lock of a job are read from the beginning of its envelope") {
    using orizuru::detail::envelope_time;
    using orizuru::detail::own_lock;
    const orizuru::Keys keys("q");
    for (const std::int64_t ms : {0LL, 127LL, 128LL, 255LL, 65'536LL, 1'700'000'000'000LL, -1LL,
                                  -33LL, -129LL, -40'000LL, -3'000'000'000LL}) {
        CAPTURE(ms);
        for (const bool failed : {false, true}) {
            Job<Raw> job = make_job(Raw{std::string(100, 'x')});
            job.enqueued_at = JobTime(std::chrono::milliseconds(ms));
            job.unique_id = "u";
            job.unique_queue = "other";
            if (failed) {
                job.first_failed_at = job.enqueued_at;
                job.last_error = std::string(300, 'e');
            }
            const std::string bytes = encoded(job);
            CHECK(envelope_time(bytes) == job.enqueued_at);
            const auto lock = own_lock(bytes, keys);
            REQUIRE(lock);
            CHECK(lock->key == "orizuru:{other}:unique:u");
            CHECK(lock->value == "ack " + job.id);
            std::size_t last_without_time = 0;
            std::size_t last_without_lock = 0;
            for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
                const std::string_view beginning = std::string_view(bytes).substr(0, cut);
                if (const auto time = envelope_time(beginning)) {
                    CHECK(*time == job.enqueued_at);
                } else {
                    last_without_time = cut;
                }
                if (const auto part = own_lock(beginning, keys)) {
                    CHECK(part->key == lock->key);
                } else {
                    last_without_lock = cut;
                }
            }
            CHECK(last_without_time < last_without_lock);
            CHECK(last_without_lock < bytes.size() - 100);
        }
    }
    CHECK_FALSE(own_lock(encoded(make_job(Raw{"no lock"})), keys));
    Job<Raw> job = make_job(Raw{"x"});
    job.unique_id = "u";
    job.unique_queue = "other";
    std::string impossible = encoded(job);
    impossible[impossible.find("other")] = '{'; // a name that no queue can have
    CHECK_FALSE(own_lock(impossible, keys));
    for (const std::string_view no :
         {"", "x", "\x9b", "\x9b\x01", "\xdd\xff\xff\xff\xff\x01\xdb",
          "\x9b\x01\xa1x\x01\x01\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
          "\x9b\x01\xa1x\x01\x01\xd3\x80\x01\x01\x01\x01\x01\x01\x01"}) {
        CHECK_FALSE(envelope_time(no));
        CHECK_FALSE(own_lock(no, keys));
    }
}

TEST_CASE("a version or a later field that no reader would take is not written") {
    auto job = some_job();
    job.version = 0;
    CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
    job.version = 2;
    for (const std::string& field : {""s, "\xc1"s, "\x01\x02"s, "\xa2x"s}) {
        job.later = {"\x01", field};
        CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
    }
}

TEST_CASE("an id, an attempt or a time that no reader would take is not written") {
    for (const std::string& id : {""s, std::string(513, 'i')}) {
        auto job = some_job();
        job.id = id;
        CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
    }
    auto job = some_job();
    job.attempt = 0;
    CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
    job = some_job();
    job.unique_id = std::string(513, 'u');
    CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
    job = some_job();
    job.unique_queue = "{";
    CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
    for (const orizuru::JobTime time : {orizuru::JobTime::min(), orizuru::JobTime::max()}) {
        job = some_job();
        job.first_enqueued_at = time;
        CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
        job = some_job();
        job.enqueued_at = time;
        CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
        job = some_job();
        job.first_failed_at = time;
        CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
        job = some_job();
        job.expires_at = time;
        CHECK_THROWS_AS(static_cast<void>(encoded(job)), std::invalid_argument);
    }
}

TEST_CASE("a long error is cut at 10,000 bytes, and within no character") {
    const auto written = [](const std::string& error) {
        auto job = some_job();
        job.last_error = error;
        return decoded<Raw>(encoded(job)).last_error;
    };
    CHECK(written(std::string(10'000, 'e')) == std::string(10'000, 'e'));
    CHECK(written(std::string(10'001, 'e')) == std::string(10'000, 'e'));
    for (const std::string character : {"é", "鶴", "\xf0\x9f\xa6\xa2"}) {
        for (std::size_t before = 9'996; before <= 10'000; ++before) {
            const std::string error = std::string(before, 'e') + character + character;
            const std::string text = written(error);
            CAPTURE(before);
            CHECK(text.size() <= 10'000);
            CHECK(text.size() > 10'000 - character.size());
            CHECK((text.size() - before) % character.size() == 0);
            CHECK(error.starts_with(text));
        }
    }
}

TEST_CASE("of an error each byte that is no UTF-8 is written as a replacement character") {
    const auto written = [](const std::string& error) {
        auto job = some_job();
        job.last_error = error;
        return decoded<Raw>(encoded(job)).last_error;
    };
    const std::string none = "\xef\xbf\xbd";
    CHECK(written("caf\xe9 closed") == "caf" + none + " closed");
    for (const std::string& text :
         {"a\0b"s, "é"s, "鶴"s, "\xf0\x9f\xa6\xa2"s, "\xc2\x80"s, "\xe0\xa0\x80"s, "\xed\x9f\xbf"s,
          "\xee\x80\x80"s, "\xef\xbf\xbf"s, "\xf0\x90\x80\x80"s, "\xf4\x8f\xbf\xbf"s}) {
        CHECK(written(text + text) == text + text);
    }
    for (const std::string& bytes :
         {"\x80"s, "\xc1\xbf"s, "\xe0\x9f\xbf"s, "\xed\xa0\x80"s, "\xf0\x8f\xbf\xbf"s,
          "\xf4\x90\x80\x80"s, "\xf5\x80"s, "\xff"s, "\xe9\xb6"s, "\xf0\x9f\xa6"s, "\xc3"s}) {
        CAPTURE(bytes.size());
        std::string replaced;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            replaced += none;
        }
        CHECK(written(bytes) == replaced);
        CHECK(written(bytes + "x") == replaced + "x");
    }
    CHECK(written(std::string(20'000, '\x80')).size() == 9'999);
}

TEST_CASE("a payload without a default constructor and one with a Codec of msgpack come through") {
    CHECK(decoded<NotDefault>(encoded(make_job(NotDefault(42)))).payload.value == 42);
    const std::vector<std::string> names{"a", "b"};
    CHECK(decoded<std::vector<std::string>>(encoded(make_job(names))).payload == names);
}

} // namespace job_test
