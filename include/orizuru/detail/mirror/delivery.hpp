// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A message that a consumer holds. The consumer's mirror and the message's guard share it. When
// both have let go, it is reused for another message.

#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/fifo.hpp>
#include <orizuru/detail/mirror/trial.hpp>
#include <orizuru/script.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

/// Where a settlement other than an ack takes the message.
struct Move {
    /// Tells what happens to a suspect's recoveries.
    enum class Recoveries : std::uint8_t {
        kept, ///< it goes elsewhere and is handled there
        ended ///< it is handled
    };

    Move(Script how, std::vector<std::string> key_names, std::vector<std::string> arguments,
         Recoveries then = Recoveries::kept)
        : script(std::move(how)),
          keys(std::move(key_names)),
          args(std::move(arguments)),
          recoveries(then) {}

    Script script;
    std::vector<std::string> keys;
    std::vector<std::string> args;
    Recoveries recoveries;
};

/// A guard gives a deferred ack without the lock. In a large batch, locking took an eighth of the
/// client's time per message. The guard leaves the ack at the message. A thread with the consumer's
/// lock finds it there before the next request.
class DeferredAck {
  public:
    /// The guard calls it without the lock. If it succeeds, the guard no longer keeps the consumer
    /// alive. Otherwise the guard settles under the lock.
    [[nodiscard]] bool give() noexcept {
        State expected = State::open;
        return m_state.compare_exchange_strong(expected, State::given, std::memory_order_release,
                                               std::memory_order_relaxed);
    }

    // Under the consumer's lock.

    void open() noexcept { m_state.store(State::open, std::memory_order_relaxed); }
    [[nodiscard]] bool closed() const noexcept {
        return m_state.load(std::memory_order_relaxed) == State::closed;
    }
    [[nodiscard]] bool given() const noexcept {
        return m_state.load(std::memory_order_acquire) == State::given;
    }
    /// Accepts no more acks; returns true if one was given.
    bool close() noexcept {
        return m_state.exchange(State::closed, std::memory_order_acquire) == State::given;
    }
    /// Does the same, if no guard can be giving one at this moment.
    void forget() noexcept { m_state.store(State::closed, std::memory_order_relaxed); }

  private:
    enum class State : std::uint8_t { closed, open, given };

    std::atomic<State> m_state{State::closed};
};

/// Tells a guard how far a settlement is that it has begun and does not wait for. The guard reads
/// it without the lock.
class AwaitedSettling {
  public:
    enum class Stage : std::uint8_t {
        none,
        begun,   ///< the guard asks for its end
        awaited, ///< somebody else is told of its end
        done,
        ended,    ///< not done by now, and the guard has no part in it any more
        refused,  ///< the guard is unsettled again
        abandoned ///< awaited, and the guard is gone
    };

    [[nodiscard]] Stage stage() const noexcept { return m_stage.load(std::memory_order_acquire); }
    /// The guard is settled, or will be if Redis does not refuse.
    [[nodiscard]] bool settles() const noexcept {
        const Stage now = stage();
        return now == Stage::begun || now == Stage::awaited || now == Stage::done ||
               now == Stage::ended;
    }
    /// By the guard that has begun one and asks for its end, or has heard of it.
    void begin() noexcept { m_stage.store(Stage::begun, std::memory_order_relaxed); }
    void forget() noexcept { m_stage.store(Stage::none, std::memory_order_relaxed); }
    /// By a guard that goes. Returns true if the settlement is awaited.
    [[nodiscard]] bool abandon() noexcept {
        Stage expected = Stage::awaited;
        return m_stage.compare_exchange_strong(expected, Stage::abandoned,
                                               std::memory_order_acq_rel);
    }

    // Under the consumer's lock.

    void await() noexcept { m_stage.store(Stage::awaited, std::memory_order_release); }
    /// Returns false if the guard is gone.
    bool end(Stage stage) noexcept {
        Stage expected = Stage::awaited;
        return m_stage.compare_exchange_strong(expected, stage, std::memory_order_acq_rel);
    }

  private:
    std::atomic<Stage> m_stage{Stage::none};
};

/// Hears under the consumer's lock that a message's settlement has an outcome.
class OutcomeListener {
  public:
    virtual void on_outcome() noexcept = 0;

  protected:
    OutcomeListener() = default;
    ~OutcomeListener() = default;
};

/// A held message, and others that are elsewhere in Redis, behind it, and end with it.
struct Burst {
    std::string first;             ///< the held one's name, for their settlement
    int done = 0;                  ///< those that are handled and not settled
    std::string_view payload = {}; ///< the next one's; unless any is done, that is the held one
};

struct Delivery {
    enum class State : std::uint8_t {
        held,    ///< in the list, no settlement under way
        wanted,  ///< a settlement is requested but not sent
        sent,    ///< the settlement or requeue is sent but not answered
        settled, ///< the settlement or requeue ran
        lost     ///< the lease was lost first: the message is no longer ours
    };

    std::string payload;
    std::unique_ptr<Move> move;   ///< the wanted settlement; null = ack
    std::shared_ptr<Trial> trial; ///< a suspect's
    std::string refusal;          ///< why Redis refused the settlement; then the state is held
    OutcomeListener* listener = nullptr; ///< to be told once of the outcome, if there is one
    std::uint64_t version = 0;           ///< the settling request's, once sent
    State state = State::held;
    DeferredAck deferred_ack; ///< needs no lock, as the next; all else but reading the payload does
    AwaitedSettling settling;
    std::unique_ptr<const Burst> burst; ///< for its guard, without the lock
    /// Others wait for its end; only its worker may end it then.
    enum class Awaited : std::uint8_t { by_nobody, by_key, by_group, by_burst };
    Awaited awaited = Awaited::by_nobody;
    bool queued = false;     ///< a move that is wanted and not sent
    bool taken = false;      ///< by the thread in `next`; has a guard or will get one
    bool deferred = false;   ///< an accepted ack whose outcome no thread awaits
    bool unattended = false; ///< no thread awaits the outcome: on_event gets it
    int failures = 0;        ///< times that the settlement failed for a reason of its own

    // Only the thread in `next` uses these, without the lock.
    int shortages = 0; ///< times in a row that there was no memory to decode it
    TimePoint not_before = TimePoint::min(); ///< later after any shortage of memory

    /// There was no memory to hand it out.
    [[nodiscard]] bool postponed() const noexcept { return not_before != TimePoint::min(); }
    void forget_shortages() noexcept {
        shortages = 0;
        not_before = TimePoint::min();
    }
    void tell_outcome() noexcept {
        if (listener != nullptr) {
            std::exchange(listener, nullptr)->on_outcome();
        }
    }
    /// Makes it as new, except for the payload.
    void reset() noexcept {
        move.reset();
        trial.reset();
        refusal.clear();
        version = 0;
        state = State::held;
        deferred_ack.forget();
        settling.forget();
        listener = nullptr;
        awaited = Awaited::by_nobody;
        burst.reset();
        taken = queued = deferred = unattended = false;
        failures = 0;
        forget_shortages();
    }
};

/// A shared pointer that knows whether it is the only owner; if so, its thread may write.
class DeliveryPtr {
  public:
    DeliveryPtr() noexcept = default;
    DeliveryPtr(std::nullptr_t) noexcept {}
    [[nodiscard]] static DeliveryPtr make() { return DeliveryPtr(new Shared); }

    DeliveryPtr(const DeliveryPtr& other) noexcept : m_shared(other.m_shared) {
        if (m_shared != nullptr) {
            m_shared->owners.fetch_add(1, std::memory_order_relaxed);
        }
    }
    DeliveryPtr(DeliveryPtr&& other) noexcept : m_shared(std::exchange(other.m_shared, nullptr)) {}
    DeliveryPtr& operator=(const DeliveryPtr& other) noexcept { return *this = DeliveryPtr(other); }
    DeliveryPtr& operator=(DeliveryPtr&& other) noexcept {
        DeliveryPtr taken(std::move(other));
        std::swap(m_shared, taken.m_shared);
        return *this;
    }
    ~DeliveryPtr() {
        if (m_shared != nullptr) {
            let_go(m_shared);
        }
    }

    /// Makes a second owner where there is only one; costs no atomic read-modify-write.
    [[nodiscard]] DeliveryPtr second() const noexcept {
        m_shared->owners.store(2, std::memory_order_relaxed);
        return DeliveryPtr(m_shared);
    }

    [[nodiscard]] Delivery& operator*() const noexcept { return *m_shared; }
    [[nodiscard]] Delivery* operator->() const noexcept { return m_shared; }
    [[nodiscard]] explicit operator bool() const noexcept { return m_shared != nullptr; }
    friend bool operator==(const DeliveryPtr&, const DeliveryPtr&) noexcept = default;

    /// If true, everything that earlier owners did happened before this.
    [[nodiscard]] bool unique() const noexcept {
        return m_shared->owners.load(std::memory_order_acquire) == 1;
    }

  private:
    struct Shared : Delivery {
        std::atomic<int> owners{1};
    };

    explicit DeliveryPtr(Shared* shared) noexcept : m_shared(shared) {}

    // Not inlined, so that the destructors of null pointers are: most were moved from.
    [[gnu::noinline]] static void let_go(Shared* shared) noexcept {
        if (shared->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete shared;
        }
    }

    Shared* m_shared = nullptr;
};

class DeliveryPool {
  public:
    /// Makes a message of these bytes. Swaps them for memory that `payload` can use again.
    [[nodiscard]] DeliveryPtr make(std::string& payload) {
        DeliveryPtr message = spare();
        message->payload.swap(payload);
        return message;
    }

    /// Takes a message that the mirror has let go; a guard may still use its payload.
    void recycle(DeliveryPtr&& message) noexcept {
        message->move.reset();
        message->trial.reset();
        if (m_spare.size() >= most_kept || message->payload.capacity() > largest_kept) {
            return;
        }
        try {
            m_spare.push_back(std::move(message));
        } catch (...) { // NOLINT(bugprone-empty-catch)
            // Not keeping one only costs an allocation later.
        }
    }

  private:
    // Two batches of the largest size, 8 MiB at the most.
    static constexpr std::size_t most_kept = 2000;
    static constexpr std::size_t largest_kept = 4096;

    DeliveryPtr spare() {
        while (!m_spare.empty()) {
            DeliveryPtr message = m_spare.pop_front();
            if (message.unique()) {
                message->reset();
                return message;
            }
        }
        return DeliveryPtr::make();
    }

    Fifo<DeliveryPtr> m_spare;
};

} // namespace orizuru::detail
