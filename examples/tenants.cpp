// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Charges the orders of 50 tenants: each one's in their order, side by side and fair, with at most
// 100 calls a second to the bank by all processes. At night each tenant gets a bill, and when all
// have theirs, one report follows.
//
//     tenants redis://127.0.0.1 add            pushes 6 orders of each tenant, the night's bills,
//     and
//                                              a copy of everything; prints the id of that
//     tenants redis://127.0.0.1 cancel 5f0c…   cancels the copy, which runs and runs
//     tenants redis://127.0.0.1                works, until Ctrl-C
//
// prints nothing while it works: what is done is in the sets {shop}charged, {shop}billed and
// {shop}reports. Kill it in the middle, and start it again: each order is charged once, none before
// the one in front of it.

#include "tenants.hpp"

#include <orizuru/jobs.hpp>
#include <orizuru/jobs/group.hpp>
#include <orizuru/keyed.hpp>
#include <orizuru/limits/rate_limit.hpp>
#include <orizuru/ops/inspector.hpp>
#include <orizuru/worker.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

namespace {

using tenants::Order;

constexpr int tenant_count = 50;
constexpr int order_count = 6;

/// Sets in Redis, for several threads.
class Books {
  public:
    explicit Books(const std::string& url) : m_connection(url) {}

    void add(const std::string& set, const std::string& member) {
        const std::lock_guard lock(m_mutex);
        m_connection.command(set, "SADD", set, member);
    }
    void charge(const Order& order) {
        const std::string of = std::to_string(order.tenant) + "/";
        const std::string before = of + std::to_string(order.number - 1);
        const std::lock_guard lock(m_mutex);
        if (order.number > 1 &&
            m_connection.command("{shop}charged", "SISMEMBER", "{shop}charged", before).integer !=
                1) {
            throw orizuru::DoNotRetry("charged before " + before);
        }
        m_connection.command("{shop}charged", "SADD", "{shop}charged",
                             of + std::to_string(order.number));
    }

  private:
    std::mutex m_mutex;
    orizuru::Connection m_connection;
};

void add(const std::string& url) {
    orizuru::KeyedJobProducer<Order> orders(url, "{shop}orders");
    for (int number = 1; number <= order_count; ++number) {
        for (int tenant = 1; tenant <= tenant_count; ++tenant) {
            orders.push(std::to_string(tenant), {tenant, number});
        }
    }
    orizuru::JobGroup night(url, "{shop}bills",
                            {.then = orizuru::GroupThen("{shop}reports", std::string("tonight"))});
    for (int tenant = 1; tenant <= tenant_count; ++tenant) {
        night.push("{shop}bills", tenant);
    }
    night.commit();
    orizuru::JobProducer<std::string> copies(url, "{shop}copies");
    std::cout << *copies.push("/everything") << std::endl;
}

int work(const std::string& url) {
    Books books(url);
    orizuru::RateLimit calls(url, "{shop}bank", {.most = 100, .per = std::chrono::seconds(1)});
    orizuru::Worker worker(url, {.concurrency = 8, .scheduler = orizuru::SchedulerOptions()});
    worker
        .handle_keyed<Order>(
            "{shop}orders",
            tenants::charge_orders([&] { return calls.take(); },
                                   [&](const Order& order) { books.charge(order); }),
            {.retry = tenants::when_the_bank_is_free(), .lease = std::chrono::seconds(1)})
        .handle<int>("{shop}bills",
                     [&](int tenant) { books.add("{shop}billed", std::to_string(tenant)); },
                     {.lease = std::chrono::seconds(1)})
        .handle<std::string>("{shop}reports",
                             [&](const std::string& night, orizuru::JobContext<std::string>& job) {
                                 books.add("{shop}reported",
                                           night + " " + job.attributes().at("group_jobs"));
                             },
                             {.lease = std::chrono::seconds(1)})
        .handle<std::string>("{shop}copies", tenants::copy_everything,
                             {.concurrency = 1, .lease = std::chrono::seconds(1)});
    return worker.run();
}

} // namespace

int main(int argc, char* argv[]) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    try {
        if (arguments.size() == 2 && arguments[1] == "add") {
            add(arguments[0]);
        } else if (arguments.size() == 3 && arguments[1] == "cancel") {
            orizuru::Inspector(arguments[0]).cancel("{shop}copies", arguments[2], "by mistake");
        } else if (arguments.size() == 1) {
            return work(arguments[0]);
        } else {
            std::cerr << "usage: tenants REDIS [add | cancel ID]\n";
            return 1;
        }
    } catch (const std::exception& error) {
        std::cerr << "tenants: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
