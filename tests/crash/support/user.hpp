// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The actions of a library user on a Stage: repeats calls after errors, accepts doubts, and records
// each request and answer.

#pragma once

#include "crash/support/stage.hpp"

#include <orizuru/async/async_consumer.hpp>
#include <orizuru/async/async_producer.hpp>
#include <orizuru/buffered_producer.hpp>
#include <orizuru/codec.hpp>
#include <orizuru/consumer.hpp>
#include <orizuru/detail/consumer/guard_access.hpp>
#include <orizuru/detail/consumer/settlement_waiter.hpp>
#include <orizuru/error.hpp>
#include <orizuru/producer.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace orizuru::test {

using RawProducer = Producer<Raw>;
using RawConsumer = Consumer<Raw>;
using RawGuard = MessageGuard<Raw>;

inline RawProducer producer_of(Stage& stage) {
    return stage.insist([&] { return RawProducer(stage.endpoint(), stage.queue()); });
}
inline BufferedProducer<Raw> buffered_producer_of(Stage& stage,
                                                  const BufferedProducerOptions& options) {
    return stage.insist(
        [&] { return BufferedProducer<Raw>(stage.endpoint(), stage.queue(), options); });
}
inline AsyncProducer<Raw> async_producer_of(Stage& stage) {
    return stage.insist([&] { return AsyncProducer<Raw>(stage.endpoint(), stage.queue()); });
}
inline AsyncConsumer<Raw> async_consumer_of(Stage& stage, const ConsumerOptions& options) {
    return stage.insist(
        [&] { return AsyncConsumer<Raw>(stage.endpoint(), stage.queue(), options); });
}

inline RawConsumer consumer_of(Stage& stage, const ConsumerOptions& options) {
    return stage.insist([&] { return RawConsumer(stage.endpoint(), stage.queue(), options); });
}

/// With more than 1 a fetch is a script on the control connection, else BLMOVE. No lease ends while
/// the stage is patient.
inline ConsumerOptions fetching(int prefetch) {
    ConsumerOptions options;
    options.prefetch = prefetch;
    options.lease = std::chrono::minutes(2);
    return options;
}

/// Returns the next decodable message, which must come.
inline RawGuard take(Stage& stage, RawConsumer& consumer) {
    return stage.insist([&] {
        while (true) {
            try {
                if (auto guard = consumer.next(std::chrono::seconds(1))) {
                    const std::string message(guard->payload());
                    stage.hears([=](Ledger& book) { book.handed_out(message); });
                    return std::move(*guard);
                }
            } catch (const DecodeError& error) {
                const std::string message(error.payload());
                stage.hears([=](Ledger& book) { book.settled(message, Place::dead); });
            }
            stage.still_patient("no message comes");
        }
    });
}

/// False when the message comes again. True also when the lease is over and the library has given
/// up waiting: it goes on in the background, and the outcome is unknown.
template <class How>
bool settle(Stage& stage, RawGuard& guard, Place to, How how) {
    const std::string message(guard.payload());
    stage.asks([=](Ledger& book) { book.settling(message, to); });
    try {
        const bool done = how(guard);
        stage.hears([=](Ledger& book) {
            done ? book.settled(message, to) : book.not_settled(message, to);
        });
        return done;
    } catch (const ConnectionError& error) {
        stage.still_patient(error.what());
        return true;
    }
}

inline bool ack(Stage& stage, RawGuard& guard) {
    return settle(stage, guard, Place::gone, [](RawGuard& held) { return held.ack(); });
}

/// Takes messages until this many are settled.
template <class How>
void settle_each(Stage& stage, RawConsumer& consumer, std::size_t count, Place to, How how) {
    std::set<std::string> settled;
    while (settled.size() < count) {
        RawGuard guard = take(stage, consumer);
        const std::string message(guard.payload());
        if (settle(stage, guard, to, how)) {
            settled.insert(message);
        }
    }
}

inline void ack_each(Stage& stage, RawConsumer& consumer, std::size_t count) {
    settle_each(stage, consumer, count, Place::gone, [](RawGuard& guard) { return guard.ack(); });
}

/// The exception of a push says for each message that it is there, that it is not, or nothing.
inline void write_failure(Stage& stage, const Error& error, const std::vector<std::string>& batch) {
    const auto* const lost = dynamic_cast<const ConnectionError*>(&error);
    const bool not_run = lost != nullptr && !lost->in_doubt();
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const std::string& message = batch[i];
        if (i < error.pushed()) {
            stage.hears([=](Ledger& book) { book.pushed(message); });
        } else if (not_run) {
            stage.hears([=](Ledger& book) { book.not_pushed(message); });
        }
    }
}

/// Pushes new messages until this many at once are confirmed.
template <class How>
void push_confirmed(Stage& stage, std::size_t count, How how) {
    stage.insist([&] {
        std::vector<std::string> batch;
        for (std::size_t i = 0; i < count; ++i) {
            const std::string message = batch.emplace_back(stage.new_message());
            stage.asks([=](Ledger& book) { book.pushing(message); });
        }
        try {
            how(batch);
        } catch (const Error& error) {
            write_failure(stage, error, batch);
            throw;
        }
        for (const std::string& message : batch) {
            stage.hears([=](Ledger& book) { book.pushed(message); });
        }
    });
}

/// Returns the lost connection that an AsyncProducer told of; nothing if the message was pushed.
/// Made anew by the thread that is told: how exceptions are shared, sanitizers do not see.
inline std::optional<ConnectionError> loss_of(const std::exception_ptr& error) {
    if (!error) {
        return std::nullopt;
    }
    try {
        std::rethrow_exception(error);
    } catch (const ConnectionError& lost) {
        return ConnectionError(lost.what(), lost.in_doubt() ? ConnectionError::Outcome::in_doubt
                                                            : ConnectionError::Outcome::not_run);
    }
}

/// Pushes this many new messages at once, each of which is told by itself, until all are confirmed.
inline void push_each(Stage& stage, AsyncProducer<Raw>& producer, std::size_t count) {
    stage.insist([&] {
        std::vector<std::pair<std::string, std::future<std::optional<ConnectionError>>>> pushed;
        for (std::size_t i = 0; i < count; ++i) {
            const std::string message = stage.new_message();
            const auto told = std::make_shared<std::promise<std::optional<ConnectionError>>>();
            stage.asks([=](Ledger& book) { book.pushing(message); });
            producer.push(Raw{message}, [told](const std::exception_ptr& error) {
                told->set_value(loss_of(error));
            });
            pushed.emplace_back(message, told->get_future());
        }
        std::optional<ConnectionError> failure;
        for (auto& [message, told] : pushed) {
            const auto lost = told.get();
            if (!lost) {
                stage.hears([message = message](Ledger& book) { book.pushed(message); });
            } else if (!lost->in_doubt()) {
                stage.hears([message = message](Ledger& book) { book.not_pushed(message); });
            }
            failure = lost ? lost : failure;
        }
        if (failure) {
            throw ConnectionError(*failure);
        }
    });
}

/// Does the same as `take` for a consumer that tells of its messages.
inline RawGuard take(Stage& stage, AsyncConsumer<Raw>& consumer) {
    const auto told = std::make_shared<std::promise<RawGuard>>();
    consumer.next([told](std::optional<RawGuard> guard, const std::exception_ptr& error) {
        guard ? told->set_value(std::move(*guard)) : told->set_exception(error);
    });
    std::future<RawGuard> taken = told->get_future();
    while (taken.wait_for(std::chrono::seconds(1)) != std::future_status::ready) {
        stage.still_patient("no message comes");
    }
    RawGuard guard = taken.get();
    const std::string message(guard.payload());
    stage.hears([=](Ledger& book) { book.handed_out(message); });
    return guard;
}

/// Settles a guard without waiting for it; `finish` waits.
class AwaitedSettling {
  public:
    /// `compose` returns how.
    template <class Compose>
    AwaitedSettling(Stage& stage, RawGuard& guard, Place to, Compose compose)
        : m_stage(stage), m_message(guard.payload()), m_to(to) {
        auto waiter = std::make_unique<Waiter>();
        m_told = waiter->told.get_future();
        m_stage.asks([message = m_message, to](Ledger& book) { book.settling(message, to); });
        detail::GuardCore& core = detail::GuardAccess::core(guard);
        core.begin(compose(core), std::move(waiter));
    }

    [[nodiscard]] const std::string& message() const noexcept { return m_message; }
    /// As `settle` returns.
    bool finish() {
        const End end = m_told.get();
        if (end.lost) {
            m_stage.still_patient(end.lost->what());
            return true;
        }
        m_stage.hears([message = m_message, to = m_to, done = end.done](Ledger& book) {
            done ? book.settled(message, to) : book.not_settled(message, to);
        });
        return end.done;
    }

  private:
    struct End {
        bool done;
        std::optional<ConnectionError> lost;
    };
    struct Waiter final : detail::SettlementWaiter {
        bool end(bool done, std::exception_ptr error) noexcept override {
            told.set_value({done, loss_of(error)});
            return true;
        }
        std::promise<End> told;
    };

    Stage& m_stage;
    std::string m_message;
    Place m_to;
    std::future<End> m_told;
};

} // namespace orizuru::test
