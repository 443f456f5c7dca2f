// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// After a storm, when all its processes are dead: one healthy consumer and one collector finish the
// rest, and then the journals are compared with Redis' lists.

#pragma once

#include "crash/support/consumer_work.hpp"
#include "crash/support/journal.hpp"
#include "crash/support/work.hpp"
#include "support/elapsed.hpp"
#include "support/eventually.hpp"
#include "support/ledger.hpp"
#include "support/redis_client.hpp"

#include <orizuru/consumer.hpp>
#include <orizuru/garbage_collector.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/producer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace orizuru::test {

class Aftermath {
  public:
    struct Verdict {
        std::vector<std::string> wrong;
        std::size_t refused = 0; ///< settlements that did not succeed
        std::size_t pushed = 0;  ///< messages that the storm's own producers know to be in Redis
    };

    /// All journals lie in the folder.
    Aftermath(std::string uri, Keys keys, std::string folder)
        : m_uri(std::move(uri)), m_keys(std::move(keys)), m_folder(std::move(folder)) {}

    /// I5: the messages of dead consumers are back in the queue within a lease and two passes (the
    /// first may have begun just before the lease ended). Prints the time; it fails after twice
    /// that time, since others use the machine, too. The time to finish the backlog depends on its
    /// length.
    void drain();

    /// A BLMOVE that still waits in Redis would get the next message first, even when its consumer
    /// is dead and no longer registered. It must not get it.
    void outlive_ghosts();

    /// A message counts as handed out at the earliest time at which it may have been fetched: one
    /// that was fetched before another owner settled it may be handed out later.
    Verdict judge();

  private:
    static constexpr std::chrono::milliseconds due = storm_lease + 2 * storm_pass;
    static constexpr std::chrono::milliseconds latest = 2 * due;

    std::size_t finish_all();

    std::string m_uri;
    Keys m_keys;
    std::string m_folder;
    RedisClient m_redis{m_uri};
    std::vector<std::string> m_wrong;
};

inline void Aftermath::drain() {
    const std::int64_t begin = monotonic_time();
    GarbageCollector collector(m_uri, m_keys.source(), storm_collector());
    const std::jthread collecting(
        [&](const std::stop_token& stop) { collector.run(stop, storm_pass); });
    const bool all_back = holds_within(latest, [&] {
        return m_redis.command({"SCARD", m_keys.consumers()}).integer == 0 &&
               m_redis.llen(m_keys.unack()) == 0;
    });
    if (!all_back) {
        m_wrong.emplace_back("I5: what the dead held was not back in time");
    }
    std::cout << "what the dead held was back after " << (monotonic_time() - begin) / 1'000'000
              << " ms; a lease and two passes are " << due.count() << " ms" << std::endl;
    std::cout << finish_all() << " messages were left" << std::endl;
}

inline void Aftermath::outlive_ghosts() {
    GarbageCollector collector(m_uri, m_keys.source(), storm_collector());
    const bool reaped = eventually([&] {
        collector.collect();
        return m_redis.command({"SCARD", m_keys.consumers()}).integer == 0;
    });
    if (!reaped) {
        m_wrong.emplace_back("a dead consumer is still registered");
    }
    Journal journal(m_folder + "/late.journal");
    Producer<Raw> producer(m_uri, m_keys.source());
    for (std::uint64_t message = 1; message <= 20; ++message) {
        journal.write({message, Step::pushing});
        producer.push(Raw{std::to_string(message)});
        journal.write({message, Step::pushed});
    }
    finish_all();
}

/// Returns how many messages that took.
inline std::size_t Aftermath::finish_all() {
    const std::int64_t begin = monotonic_time();
    Journal journal(m_folder + "/healthy.journal");
    DeferredAcks acks(journal);
    Consumer<Raw> healthy(m_uri, m_keys.source(),
                          {.lease = storm_lease, .prefetch = 100, .ack = AckMode::deferred});
    std::size_t handled = 0;
    const bool finished = eventually([&] {
        while (auto guard = healthy.next(std::chrono::milliseconds(10))) {
            journal.write({number_in((*guard)->bytes), Step::handed_out, Place::waiting, begin});
            acks.ack(*guard);
            ++handled;
        }
        acks.flush(healthy);
        return m_redis.llen(m_keys.source()) == 0 && m_redis.llen(m_keys.unack()) == 0 &&
               m_redis.command({"SCARD", m_keys.consumers()}).integer == 1;
    });
    if (!finished) {
        m_wrong.emplace_back("I5: not everything was finished");
    }
    return handled;
}

inline Aftermath::Verdict Aftermath::judge() {
    Ledger ledger(m_keys.source(), other_queue(m_keys.source()));
    std::map<Step, std::size_t> counts;
    std::size_t pushed = 0;
    std::vector<Record> of_consumers;
    for (const auto& file : std::filesystem::directory_iterator(m_folder)) {
        if (file.path().extension() != ".journal") {
            continue;
        }
        for (const Record& record : Journal::read(file.path())) {
            ++counts[record.step];
            pushed += record.step == Step::pushed && file.path().stem() != "late" ? 1U : 0U;
            if (record.step < Step::handed_out) {
                tell(ledger, record);
            } else {
                of_consumers.push_back(record);
            }
        }
    }
    std::ranges::stable_sort(of_consumers, {}, &Record::time);
    for (const Record& record : of_consumers) {
        tell(ledger, record);
    }
    std::cout << counts[Step::pushing] + counts[Step::buffering] << " pushes begun, "
              << counts[Step::pushed] << " confirmed, " << counts[Step::handed_out]
              << " deliveries, " << counts[Step::settled] << " settled" << std::endl;
    std::ranges::copy(ledger.check(m_redis), std::back_inserter(m_wrong));
    return {std::move(m_wrong), counts[Step::not_settled], pushed};
}

} // namespace orizuru::test
