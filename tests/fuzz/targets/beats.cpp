// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The thread that keeps a consumer's lease, whose beats are answered by anything: nothing but 1
// and 3 renews the lease, nothing but another number leads to a recovery, and after anything else
// it beats again. (That these do is in tests/integration/leases.cpp: on a busy machine a reply of
// here may come too late, and counts for nothing.)
//
// input: the replies.

#include "input.hpp"
#include "replies.hpp"
#include "support/fake_server.hpp"
#include "target.hpp"

#include <orizuru/consumer_options.hpp>
#include <orizuru/detail/base/identity.hpp>
#include <orizuru/detail/base/wake.hpp>
#include <orizuru/detail/consumer/heartbeat.hpp>
#include <orizuru/detail/consumer/lane.hpp>
#include <orizuru/detail/consumer/link.hpp>
#include <orizuru/detail/mirror/mirror.hpp>
#include <orizuru/detail/mirror/scripts.hpp>
#include <orizuru/detail/redis/event_queue.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/reply.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace beats_target {

using namespace orizuru::detail;
using namespace orizuru::test;
using namespace std::chrono_literals;
using orizuru::ConsumerOptions;
using orizuru::Reply;

/// Answers beats from the input and keeps what was said.
class Replies {
  public:
    void begin(Input& input) {
        const std::lock_guard lock(m_mutex);
        m_input = &input;
        m_said.clear();
    }
    /// When there is nothing more to say, or nobody to say it to.
    std::vector<Reply> await_end() {
        std::unique_lock lock(m_mutex);
        m_ended.wait(lock, [this] { return m_input == nullptr; });
        return m_said;
    }

    std::optional<std::string> answer(const std::vector<std::string>& argv) {
        const std::lock_guard lock(m_mutex);
        if (argv[0] == "PING") {
            return "+PONG\r\n";
        }
        const bool beat = argv[0] == "EVAL" && argv[1] == beat_script();
        if (m_input == nullptr || m_input->empty() || m_said.size() == most || !beat) {
            m_input = nullptr;
            m_ended.notify_one();
            return std::nullopt;
        }
        m_said.push_back(
            any_reply(*m_input, [](Input& input) { return std::string(input.below(3), 'a'); }));
        return written(m_said.back());
    }

  private:
    static constexpr std::size_t most = 8; // each takes a third of a lease

    std::mutex m_mutex;
    std::condition_variable m_ended;
    Input* m_input = nullptr;
    std::vector<Reply> m_said;
};

Mirror registered_mirror() {
    Mirror mirror(orizuru::Keys("queue"), 30s, [] { return make_identity("consumer"); });
    std::string unsent;
    mirror.send_start(unsent);
    mirror.on_start({Reply::Type::integer, 1, {}, {}});
    return mirror;
}

const orizuru::test::Target target("beats", [](Input input) {
    static Replies replies;
    static FakeServer server([](const auto& argv) { return replies.answer(argv); });
    replies.begin(input);
    std::atomic<std::ptrdiff_t> renewals{0};
    const ConsumerOptions options{.lease = 9ms, .on_beat = [&] { ++renewals; }};
    const auto heartbeat =
        std::make_shared<Heartbeat>(std::make_shared<Link>(server.uri(), deadline_in(10s)));
    Lane lane(
        heartbeat->link(), [] { return registered_mirror(); }, EventQueue("queue", {}));
    std::optional<Heartbeat::Member> member(std::in_place, heartbeat, nullptr, lane, options);
    const std::vector<Reply> said = replies.await_end();
    member.reset();

    const auto renews = [](const Reply& reply) {
        return is_number(reply, 1, 1) || is_number(reply, 3, 3);
    };
    check(renewals <= std::ranges::count_if(said, renews), "1 and 3 alone renew a lease");
    const bool told = !said.empty() && said.back().is(Reply::Type::integer) && !renews(said.back());
    check(lane.mirror().running() || told, "another number alone leads to a recovery");
});

} // namespace beats_target
