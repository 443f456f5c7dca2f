// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "this library's Ledger"
//: server = "postgres"
//: durability = "disk"
//: needs.command.redis-server = "redis-server"
//: needs.command.pg_config = "libpq-dev"
//: needs.command.psql = "postgresql"
//: needs.header."hiredis/hiredis.h" = "libhiredis-dev"
//: needs.header."msgpack.hpp" = "libmsgpack-cxx-dev"
//: needs.header."pqxx/pqxx" = "libpqxx-dev"
//: libraries = "-lhiredis -I/usr/include/postgresql -lpqxx -lpq"
//: note = "a job updates a row; both are committed together, once"
//:
//: [modes.single]
//: settings = "history of failures; submit; concurrency 10"
//: count = 4_000
//:
//: [modes.batch]
//: settings = "history of failures; submit_all 100; process_batch 100, concurrency 10"
//: count = 20_000

#include "support/client.hpp"

#include <orizuru/postgres.hpp>
#include <orizuru/worker.hpp>
#include <orizuru/worker/handle_batch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace orizuru;

struct Message {
    std::uint64_t id = 0;
    std::string name;
    MSGPACK_DEFINE(id, name)
};

Database database(const peers::Task& task) {
    Database made("host=" + task.address + " user=peer dbname=postgres");
    Schema(made).apply();
    return made;
}

void produce(const peers::Task& task) {
    Ledger<Message> ledger(database(task), task.queue, {.history = LedgerHistory::failures});
    const bool single = task.rate > 0 || task.mode == "single";
    std::vector<Message> messages(single ? 1 : 100, Message{0, "sixteen letters."});
    const peers::Production production(task);
    for (std::uint64_t id = 0; id < task.count;) {
        if (task.rate > 0) {
            production.wait_for_turn(id);
            const auto name = peers::name_now();
            messages[0].name.assign(name.data(), name.size());
        }
        messages.resize(std::min<std::uint64_t>(messages.size(), task.count - id));
        for (auto& message : messages) {
            message.id = id++;
        }
        if (single) {
            ledger.submit(messages[0]);
        } else {
            ledger.submit_all(messages);
        }
    }
    production.done();
}

/// What jobs of the worker's threads do.
class Effects {
  public:
    explicit Effects(const peers::Task& task) : m_tally(task) {}

    void begun(const Message& message) {
        const std::lock_guard lock(m_mutex);
        m_tally.handle(message.id, message.name);
    }
    [[nodiscard]] bool complete() {
        const std::lock_guard lock(m_mutex);
        return m_tally.missing() == 0;
    }
    void done() { m_tally.done(); }

    static void update(pqxx::work& transaction, const std::string& ids) {
        transaction.exec("UPDATE rows SET number = number + 1 WHERE id IN (" + ids + ")");
    }
    static std::string row(const Message& message) { return std::to_string(message.id % 1000); }

  private:
    std::mutex m_mutex;
    peers::Tally m_tally;
};

void consume(const peers::Task& task) {
    const std::string redis = "unix://" + task.address + "/redis.sock";
    Ledger<Message> ledger(database(task), task.queue);
    LedgerReconciler reconciler(database(task), redis);
    if (task.rate > 0) {
        reconciler.reconcile(); // now it is ready, too; else it would send what is measured
    }
    const std::jthread reconciling([&](const std::stop_token& token) { reconciler.run(token); });
    Effects effects(task);
    Worker worker(redis, {.concurrency = 10, .on_event = [](const WorkerEvent& event) {
                              if (event.kind == WorkerEventKind::started) {
                                  peers::ready();
                              }
                          }});
    if (task.mode == "single" || task.rate > 0) {
        worker.handle<Message>(task.queue, [&](const Message& message, JobContext<Message>& job) {
            effects.begun(message);
            ledger.run(job.id(),
                       [&](pqxx::work& tx) { Effects::update(tx, Effects::row(message)); });
            if (effects.complete()) {
                worker.stop();
            }
        });
    } else {
        worker.handle_batch<Message>(
            task.queue,
            [&](const JobBatch<Message>& batch) {
                ledger.process_batch(
                    batch, [](pqxx::work& tx, std::span<const JobContext<Message>* const> jobs) {
                        std::string rows;
                        for (const auto* job : jobs) {
                            rows += (rows.empty() ? "" : ",") + Effects::row((*job)->payload);
                        }
                        Effects::update(tx, rows);
                    });
                for (const JobContext<Message>& job : batch) {
                    effects.begun(job->payload);
                }
                if (effects.complete()) {
                    worker.stop();
                }
            },
            {.size = 100});
    }
    worker.run();
    effects.done();
}

} // namespace

int main(int argc, char** argv) { return peers::run(argc, argv, produce, consume); }
