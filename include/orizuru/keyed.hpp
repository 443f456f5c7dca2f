// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue whose jobs have keys: those of one key are handled one after the other, in the order in
// which they were pushed, by whichever process; those of different keys at once, in turns.
//
//     orizuru::KeyedJobProducer<Order> producer("redis://localhost", "orders");
//     producer.push(order.customer, order);
//
//     worker.handle_keyed<Order>("orders", [](const Order& order) { ship(order); });
//
// One job of each key is in the queue, or held, or waits for its next try; all others wait behind
// it. So a failure holds up its key and no other, and a customer with 100,000 jobs holds up nobody:
// the next job of a key goes behind the jobs of all others. The order of a key is that in which
// Redis got the pushes.
//
// A job that goes to the dead list leaves the order, and so do those that a person removes or moves
// elsewhere: the next one follows. When it is redriven it goes behind all that wait for its key.
//
// As every job, one may run twice after a crash, and while a lease is lost two of a key may run at
// once: JobRun::lease_valid says so, and Once (once.hpp) fences what must not happen then.

#if __cplusplus < 202002L
#error "orizuru needs C++20: -std=c++20, or cpp_std=c++20 in Meson"
#else

#include <orizuru/keyed/handle_keyed.hpp>
#include <orizuru/keyed/keyed_job_producer.hpp>
#include <orizuru/keyed/keyed_options.hpp>

#endif
