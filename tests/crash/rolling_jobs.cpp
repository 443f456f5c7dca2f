// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A storm of SIGKILL over workers of version 0.1.0 and of today, which serve one queue, while
// producers of both push jobs of all sorts. Each job is done, with its attributes and its kind;
// each attempt is numbered on from the one before, whichever version that was; those that die are
// redriven by the two in turns; no lock, no schedule and no list is left. Without the history of
// git there is no such version: then the exit status is 77.
//
// usage: rolling_jobs [--seed N] [--size KILLS]

#include "crash/support/deployed_jobs.hpp"
#include "crash/support/fault_program.hpp"
#include "crash/support/older_version.hpp"
#include "crash/support/worker_storm.hpp"
#include "support/elapsed.hpp"
#include "support/fault_run.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rolling_jobs_test {

using namespace std::chrono_literals;
using namespace orizuru::test;

class Storm {
  public:
    Storm(const FaultOptions& options, std::string old)
        : m_old(std::move(old)),
          m_storm(options, {"q"}, [this](const std::string& uri, const std::string& diary) {
              return live(::getpid() % 2 == 0, {"work", uri, diary});
          }) {}

    int run() {
        m_storm.rage([this] {
            if (m_storm.redis().llen("q") < 50) {
                push(5);
            }
        });
        await([this] { return drained() && count("dead") == m_pushed; }, "not all is done");
        RedisClient(m_storm.diary_uri()).command({"SET", "mercy", "1"});
        for (bool by_old = true; count("dead") > 0; by_old = !by_old) {
            call(by_old, {"redrive", m_storm.uri(), "10"}, "redrives");
        }
        await([this] { return drained() && done().size() == m_expected.size(); },
              "what was redriven is not done");
        judge();
        return m_storm.report().finish(m_storm.kinds(
            {"pushes of 0.1.0", "pushes of today", "redrives of 0.1.0", "redrives of today"}));
    }

  private:
    /// In a process of its own.
    int live(bool is_old, std::vector<std::string> words) {
        if (!is_old) {
            return DeployedJobs::run(words[0], words[1], words[2],
                                     words.size() > 3 ? words[3] : "");
        }
        words.insert(words.begin(), m_old);
        std::vector<char*> arguments;
        for (std::string& word : words) {
            arguments.push_back(word.data());
        }
        arguments.push_back(nullptr);
        ::execv(m_old.c_str(), arguments.data());
        return 98;
    }
    void call(bool is_old, const std::vector<std::string>& words, const std::string& what) {
        const pid_t process = WorkerStorm::begin([&] { return live(is_old, words); });
        int status = 0;
        ::waitpid(process, &status, 0);
        if (status != 0) {
            m_storm.report().violation(what + " have failed");
        }
        m_storm.report().came(what + (is_old ? " of 0.1.0" : " of today"));
    }
    void push(int count) {
        call(m_storm.below(2) == 0,
             {"push", m_storm.uri(), std::to_string(m_pushed), std::to_string(count)}, "pushes");
        for (const int end = m_pushed + count; m_pushed < end; ++m_pushed) {
            for (const char letter : DeployedJobs::letters) {
                m_expected.insert(std::to_string(m_pushed) + letter);
            }
        }
    }
    template <class Condition>
    void await(Condition condition, const std::string& otherwise) {
        const bool holds = holds_within(120s, [&] {
            m_storm.renew();
            return condition();
        });
        if (!holds) {
            m_storm.report().violation(otherwise);
        }
    }
    std::int64_t count(const std::string& place) {
        return m_storm.redis().llen("orizuru:{q}:" + place);
    }
    bool drained() {
        RedisClient redis = m_storm.redis();
        const auto lists = redis.keys("orizuru:{q}:processing:*");
        return redis.llen("q") == 0 && count("unack") == 0 && count("suspects") == 0 &&
               !redis.exists("orizuru:{q}:scheduled") &&
               std::ranges::all_of(lists, [&](const std::string& list) {
                   return redis.type(list) == "string" || redis.llen(list) < 2;
               });
    }
    std::set<std::string> done() {
        const auto members = m_storm.diary().command({"SMEMBERS", "done"}).elements;
        std::set<std::string> all;
        for (const Answer& member : members) {
            all.insert(member.text);
        }
        return all;
    }
    void judge() {
        if (done() != m_expected) {
            m_storm.report().violation("what was pushed and what was done differ");
        }
        for (const Answer& wrong : m_storm.diary().command({"SMEMBERS", "wrong"}).elements) {
            m_storm.report().violation(wrong.text + " was not what it was before");
        }
        for (const std::string& lock : m_storm.redis().keys("orizuru:{q}:unique:*")) {
            m_storm.report().violation(lock + " is left");
        }
        std::cout << m_expected.size() << " jobs" << std::endl;
    }

    const std::string m_old;
    WorkerStorm m_storm;
    std::set<std::string> m_expected;
    int m_pushed = 0;
};

int run(int count, char** arguments) {
    return run_fault_program([&] {
        const FaultOptions options(count, arguments,
                                   {{"seed", "1"}, {"size", "60"}, {"failovers", "0"}});
        const OlderVersion old("deployed_jobs");
        if (old.missing()) {
            std::cout << *old.missing() << std::endl;
            return 77;
        }
        return Storm(options, old.program()).run();
    });
}

const FaultProgram program("rolling_jobs", &run);

} // namespace rolling_jobs_test
