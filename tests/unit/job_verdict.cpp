// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "crash/support/job_verdict.hpp"

#include "crash/support/job_journal.hpp"
#include "support/posix.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace job_verdict_test {

using namespace orizuru::test;

constexpr std::uint64_t plain_job = 3;
constexpr std::uint64_t limited_job = 2;
constexpr std::uint64_t killed = 70;
constexpr std::uint64_t alive = 71;

/// The life of one job, as its processes wrote it down.
class Life {
  public:
    explicit Life(std::uint64_t job) : m_job(job) {
        then({.step = JobStep::pushing, .clock = 1000});
        then({.step = JobStep::pushed});
    }
    Life& begun(int attempt, std::uint64_t serial, std::int64_t clock) {
        return then({.step = JobStep::started,
                     .held = true,
                     .attempt = attempt,
                     .body = static_cast<std::uint64_t>(attempt),
                     .serial = serial,
                     .clock = clock});
    }
    Life& ended(JobStep step, int attempt, std::uint64_t serial, std::int64_t clock = 0) {
        return then({.step = step, .attempt = attempt, .serial = serial, .clock = clock});
    }
    [[nodiscard]] std::vector<std::string> judged() const {
        const TempDir folder;
        {
            JobJournal journal(folder.path() + "/a.journal");
            journal.write(m_records);
        }
        return JobVerdict(folder.path(), {killed}).judge();
    }

  private:
    Life& then(JobRecord record) {
        record.job = m_job;
        record.time = static_cast<std::int64_t>(m_records.size());
        m_records.push_back(record);
        return *this;
    }

    std::uint64_t m_job;
    std::vector<JobRecord> m_records;
};

TEST_CASE("an attempt follows one that has failed, and not before its time") {
    Life life(plain_job);
    life.begun(1, alive, 1000).ended(JobStep::failing, 1, alive, 1100).begun(2, alive, 1100);
    CHECK(life.ended(JobStep::done, 2, alive).judged().empty());

    Life early(plain_job);
    early.begun(1, alive, 1000).ended(JobStep::failing, 1, alive, 1100).begun(2, alive, 1050);
    const auto wrong = early.ended(JobStep::done, 2, alive).judged();
    REQUIRE(wrong.size() == 1);
    CHECK(wrong.front().starts_with("job 3, attempt 2 came 50 ms before its time\n"));

    Life sudden(plain_job);
    sudden.begun(1, alive, 1000).ended(JobStep::done, 1, alive).begun(2, alive, 1100);
    const auto again = sudden.ended(JobStep::done, 2, alive).judged();
    REQUIRE(again.size() == 1);
    CHECK(again.front().starts_with("job 3, attempt 2 follows one that has not failed\n"));
}

TEST_CASE("each process that was killed with an attempt uses up one more") {
    Life life(plain_job);
    life.begun(1, killed, 1000).begun(1, alive, 1000).ended(JobStep::failing, 1, alive, 1100);
    CHECK(life.begun(3, alive, 1100).ended(JobStep::done, 3, alive).judged().empty());

    Life uncounted(plain_job);
    uncounted.begun(1, killed, 1000).begun(1, alive, 1000).ended(JobStep::failing, 1, alive, 1100);
    const auto wrong = uncounted.begun(2, alive, 1100).ended(JobStep::done, 2, alive).judged();
    REQUIRE(wrong.size() == 1);
    CHECK(wrong.front().starts_with("job 3, attempt 2: 3 was to come\n"));
}

TEST_CASE("a run that was done in time may be too late when its worker looks at the clock") {
    Life late(limited_job);
    late.begun(1, alive, 1000).ended(JobStep::done, 1, alive, 1150).begun(2, alive, 1150);
    CHECK(late.ended(JobStep::done, 2, alive, 1300).judged().empty());

    Life early(limited_job);
    early.begun(1, alive, 1000).ended(JobStep::done, 1, alive, 1150).begun(2, alive, 1140);
    CHECK(early.ended(JobStep::done, 2, alive, 1300).judged().size() == 1);

    Life in_time(limited_job);
    in_time.begun(1, alive, 1000).ended(JobStep::done, 1, alive, 1150);
    in_time.ended(JobStep::in_time, 1, alive).begun(2, alive, 1150);
    CHECK(in_time.ended(JobStep::done, 2, alive, 1300).judged().size() == 1);
}

TEST_CASE("an attempt that ended because its worker stopped died with nobody, and counts as none") {
    Life life(limited_job);
    life.begun(1, killed, 1000).ended(JobStep::stopping, 1, killed, 1150);
    life.ended(JobStep::in_time, 1, killed).begun(1, alive, 1000);
    life.ended(JobStep::failing, 1, alive, 1450).begun(2, alive, 1450);
    CHECK(life.ended(JobStep::done, 2, alive, 1600).judged().empty());

    Life used_up(limited_job);
    used_up.begun(1, alive, 1000).ended(JobStep::stopping, 1, alive, 1150);
    used_up.ended(JobStep::in_time, 1, alive).begun(2, alive, 1150);
    CHECK(used_up.ended(JobStep::done, 2, alive, 1300).judged().size() == 1);

    Life early(limited_job);
    early.begun(1, alive, 1000).ended(JobStep::stopping, 1, alive, 1150);
    early.ended(JobStep::in_time, 1, alive).begun(1, alive, 1200);
    early.ended(JobStep::failing, 1, alive, 1450).begun(2, alive, 1200);
    CHECK(early.ended(JobStep::done, 2, alive, 1600).judged().size() == 1);
}

TEST_CASE("a job that was pushed and never done is lost") {
    const auto wrong = Life(plain_job).begun(1, killed, 1000).judged();
    REQUIRE(wrong.size() == 1);
    CHECK(wrong.front().starts_with("LOST job 3 with 1 attempts seen\n"));
    CHECK(wrong.front().find("started, held, attempt 1, process 70 (killed)") != std::string::npos);
}

} // namespace job_verdict_test
