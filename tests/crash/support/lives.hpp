// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The lives of a crowd's processes, beside what Redis says of their deaths. A collector that takes
// a consumer's messages leaves a fence in the same step: it tells who was taken for dead, and when.
// Only then a message that has not been settled comes to another consumer, or is buried.

#pragma once

#include "crash/support/journal.hpp"
#include "crash/support/late_times.hpp"
#include "crash/support/work.hpp"
#include "crash/support/write_outages.hpp"
#include "support/fault_run.hpp"
#include "support/redis_client.hpp"

#include <orizuru/detail/redis/limits.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

/// For one thread.
class Lives {
  public:
    /// The processes note their late times in the folder.
    Lives(std::string folder, FaultReport& report)
        : m_folder(std::move(folder)), m_report(report) {}

    void began(const Work& work) { m_lives[work.name()].serial = work.serial; }
    void ended(const Work& work) { m_lives[work.name()].end = monotonic_time(); }
    /// The process, or its connections, stood still since then.
    void hampered(const Work& work, std::int64_t since) {
        m_lives[work.name()].hampered.push_back({since, monotonic_time()});
    }

    /// Returns in words who was taken for dead at this Redis and lived: its process had neither
    /// been hampered nor late meanwhile. One whose connection broke shortly before an outage or in
    /// it may have to recover: it does not beat until then, and hears late that it was reaped. The
    /// pauses between its attempts grow. Counts the others for the report.
    [[nodiscard]] std::vector<std::string> judge(RedisClient& redis, const WriteOutages& outages);

  private:
    static constexpr std::int64_t lease = std::chrono::nanoseconds(storm_lease).count();
    /// A heartbeat bears a pause of a twelfth of the lease more than the longest that is no outage.
    static constexpr std::int64_t bearable = lease / 12;
    static constexpr std::int64_t longest_gap = lease * 5 / 12;
    /// Between two attempts of the library.
    static constexpr std::int64_t longest_pause =
        std::chrono::nanoseconds(std::chrono::seconds(5)).count();

    using Spans = std::vector<Span>;
    using LateBySerial = std::map<std::uint64_t, std::vector<LateTime>>;

    struct Life {
        std::uint64_t serial = 0;
        std::optional<std::int64_t> end = {};
        Spans hampered = {};
    };
    struct Reaping {
        std::string id;
        std::int64_t time = 0;
    };

    static std::vector<Reaping> reapings(RedisClient& redis);
    [[nodiscard]] LateBySerial late_times() const;
    /// How much of the span the process was late.
    static std::int64_t within(const Span& span, const LateBySerial& late, std::uint64_t serial);
    static bool was_hampered(const Life& life, const Span& unheard, const Spans& outages);
    /// When the process heard that a consumer of its had been taken for dead.
    static std::optional<std::int64_t> missed_at(const Life& life, const LateBySerial& late,
                                                 std::int64_t time);
    static bool may_recover(const Life& life, const LateBySerial& late, const Span& unheard,
                            const Spans& outages);
    static std::string words(const Reaping& reaping, std::int64_t lateness, const Spans& outages);

    std::string m_folder;
    FaultReport& m_report;
    LateTimes m_own_times{m_folder + "/own.late", 0};
    std::map<std::string, Life, std::less<>> m_lives; ///< by the name in Redis
};

inline std::vector<std::string> Lives::judge(RedisClient& redis, const WriteOutages& outages) {
    std::vector<std::string> wrong;
    const LateBySerial late = late_times();
    for (const Reaping& reaping : reapings(redis)) {
        const auto known =
            m_lives.find(std::string_view(reaping.id).substr(0, reaping.id.find(':')));
        if (known == m_lives.end()) {
            continue;
        }
        const Life& life = known->second;
        const Span unheard{reaping.time - lease, reaping.time};
        const std::int64_t lateness =
            std::max(within(unheard, late, life.serial), within(unheard, late, 0));
        if (life.end && *life.end <= reaping.time) {
            m_report.came("dead consumer reaped");
        } else if (life.end && *life.end <= reaping.time + lease) {
            m_report.came("consumer reaped that was about to die"); // its last late time is unknown
        } else if (was_hampered(life, unheard, outages.past())) {
            m_report.came("living consumer reaped that was hampered");
        } else if (lateness >= bearable) {
            m_report.came("living consumer reaped that was late");
        } else if (const auto missed = missed_at(life, late, reaping.time); !missed) {
            m_report.came("registration reaped that its process had given up");
        } else if (*missed > reaping.time + lease / 2 ||
                   may_recover(life, late, unheard, outages.past())) {
            m_report.came("living consumer reaped that was to recover from an outage");
        } else {
            wrong.push_back(words(reaping, lateness, outages.past()));
        }
    }
    return wrong;
}

/// Redis has taken writes for half a lease at least, but for outages shorter than a gap: what was
/// over before that had time to beat.
inline bool Lives::was_hampered(const Life& life, const Span& unheard, const Spans& outages) {
    const bool is_whole = std::ranges::none_of(outages, [&](const Span& one) {
        return unheard.meets(one) && one.end - one.begin <= longest_gap;
    });
    const Span heedful{is_whole ? unheard.end - lease / 2 : unheard.begin, unheard.end};
    return std::ranges::any_of(life.hampered, [&](const Span& one) { return heedful.meets(one); });
}

/// A registration that Redis has held may run when the process has long made another one: then
/// nobody beats for it, and nobody misses it.
inline std::optional<std::int64_t> Lives::missed_at(const Life& life, const LateBySerial& late,
                                                    std::int64_t time) {
    if (const auto found = late.find(life.serial); found != late.end()) {
        for (const LateTime& one : found->second) {
            if (one.kind == LateTime::Kind::robbed && one.span.begin >= time) {
                return one.span.begin;
            }
        }
    }
    return std::nullopt;
}

/// Not each break is told: none while an earlier one is not repaired.
inline bool Lives::may_recover(const Life& life, const LateBySerial& late, const Span& unheard,
                               const Spans& outages) {
    Spans broken = life.hampered;
    if (const auto found = late.find(life.serial); found != late.end()) {
        std::int64_t since = 0;
        int count = 0; // of the process's consumers
        for (const LateTime& one : found->second) {
            if (one.kind == LateTime::Kind::broken && count++ == 0) {
                since = one.span.begin;
            } else if (one.kind == LateTime::Kind::repaired && count > 0 && --count == 0) {
                broken.push_back({since, one.span.begin});
            }
        }
        if (count > 0) {
            broken.push_back({since, unheard.end});
        }
    }
    return std::ranges::any_of(outages, [&](const Span& outage) {
        const bool is_last = outage.meets({unheard.begin - lease, unheard.end});
        const Span heedful{outage.begin - lease, is_last ? unheard.end : outage.end};
        return outage.meets({unheard.begin - longest_pause, unheard.end}) &&
               std::ranges::any_of(broken, [&](const Span& one) { return heedful.meets(one); });
    });
}

inline std::string Lives::words(const Reaping& reaping, std::int64_t lateness,
                                const Spans& outages) {
    constexpr std::int64_t millisecond = 1'000'000;
    std::ostringstream text;
    text << "ALIVE " << reaping.id << " was reaped, late by " << lateness / millisecond << " ms";
    for (const Span& one : outages) {
        if (one.meets({reaping.time - 2 * lease, reaping.time})) {
            text << ", an outage of " << (one.end - one.begin) / millisecond << " ms having ended "
                 << (reaping.time - one.end) / millisecond << " ms before";
        }
    }
    return text.str();
}

inline std::int64_t Lives::within(const Span& span, const LateBySerial& late,
                                  std::uint64_t serial) {
    std::int64_t sum = 0;
    if (const auto found = late.find(serial); found != late.end()) {
        for (const LateTime& one : found->second) {
            sum += std::max<std::int64_t>(0, span.common(one.span));
        }
    }
    return sum;
}

/// All that Redis still knows of.
inline std::vector<Lives::Reaping> Lives::reapings(RedisClient& redis) {
    constexpr const char* fences = R"lua(
local fences = {}
for _, key in ipairs(redis.call('KEYS', 'orizuru:*:processing:*')) do
    if redis.call('TYPE', key).ok == 'string'
        and string.find(redis.call('GET', key), '^reaped ') then
        fences[#fences + 1] = key
        fences[#fences + 1] = redis.call('PTTL', key)
    end
end
return fences
)lua";
    constexpr std::string_view middle = ":processing:";
    const Answer found = redis.command({"EVAL", fences, "0"});
    const std::int64_t now = monotonic_time();
    std::vector<Reaping> all;
    for (std::size_t i = 0; i + 1 < found.elements.size(); i += 2) {
        const std::string& key = found.elements[i].text;
        const auto age =
            detail::fence_time - std::chrono::milliseconds(found.elements[i + 1].integer);
        all.push_back({key.substr(key.find(middle) + middle.size()),
                       now - std::chrono::nanoseconds(age).count()});
    }
    return all;
}

inline Lives::LateBySerial Lives::late_times() const {
    LateBySerial all;
    for (const auto& file : std::filesystem::directory_iterator(m_folder)) {
        if (file.path().extension() == ".late") {
            for (const LateTime& late : JournalOf<LateTime>::read(file.path())) {
                all[late.serial].push_back(late);
            }
        }
    }
    return all;
}

} // namespace orizuru::test
