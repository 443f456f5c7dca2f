// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Takes the answers to LPUSHes, and those to the WAITs behind them.

namespace orizuru::detail {

inline Reply* PushPipeline::send_and_look() {
    try {
        send();
    } catch (const ConnectionError&) {
        return last_words();
    }
    return stream().next_reply();
}

/// Call it in the handler of an exception of `send`. Returns the server's answers from before it
/// closed the connection, the last of which says why; rethrows when there are no more.
inline Reply* PushPipeline::last_words() {
    try {
        stream().fill();
    } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        // It is the failure that is being handled.
    }
    Reply* const reply = stream().next_reply();
    if (reply == nullptr) {
        throw;
    }
    return reply;
}

inline std::optional<Reply> PushPipeline::next() {
    std::optional<Reply> waited;
    auto answer = guarded([&, this]() -> std::optional<Reply> {
        Reply* arrived = send_and_look();
        if (const auto length = m_flights[0].length) {
            m_pushed = Reply{Reply::Type::integer, static_cast<std::int64_t>(*length), {}, {}};
        }
        if (arrived == nullptr) {
            return std::nullopt;
        }
        const bool whole = m_flights[0].sent();
        // Behind an error to a command that was cut off comes nothing.
        const bool last = !m_wait.wanted() || m_pushed ||
                          (!whole && arrived->is(Reply::Type::error)) || refuses_a_length(*arrived);
        if (!last) {
            check_reply(*arrived);
            m_pushed = std::move(*arrived);
            arrived = stream().next_reply();
        }
        if (arrived == nullptr) {
            return std::nullopt;
        }
        if (m_pushed) {
            waited = std::exchange(*arrived, *std::exchange(m_pushed, {}));
        }
        Reply reply = std::move(*arrived);
        check_reply(reply);
        --m_count;
        m_flights[0] = m_flights[1];
        if (waited) { // Redis begins with the next one now
            m_flights[0].deadline = reply_due();
        }
        // Redis does not read the rest, or another server may now answer at the address.
        if (!whole || (m_count == 0 && refers_elsewhere(reply)) || refuses_a_length(reply)) {
            abandon();
        }
        return reply;
    });
    if (waited && !m_wait.enough(*answer, *waited)) {
        throw_unreplicated(*answer, *waited);
    }
    return answer;
}

inline void PushPipeline::throw_unreplicated(const Reply& reply, const Reply& waited) {
    const Pushed pushed{static_cast<std::uint64_t>(reply.integer), m_line.connected_at()};
    // A master that has become a replica will drop the push, and other LPUSHes may not follow.
    if (waited.is(Reply::Type::error) &&
        waited.text.find("cannot be used with replica") != std::string::npos) {
        abandon();
    }
    throw Unreplicated(joined({describe(), ": ", m_wait.shortage(waited)}), pushed);
}

inline RefusedError PushPipeline::refusal_of(std::string payload, const Reply& reply) const {
    const std::string what =
        joined({describe(), ": the message of ", Digits(payload.size()),
                " bytes is longer than the server's proto-max-bulk-len: ", reply.text});
    return {std::string(reply.code()), what, std::move(payload)};
}

template <class Wait>
std::optional<Reply> PushPipeline::ask(const Reply& refusal, std::string_view command, Wait wait) {
    const std::optional<Endpoint> other = Route::asked(endpoint(), refusal);
    if (!other) {
        return std::nullopt;
    }
    return guarded([&]() -> std::optional<Reply> {
        Reply reply = wait([&] { return m_asked.push(*other, command, m_wait); });
        check_reply(reply);
        if (refuses_a_length(reply)) {
            abandon(); // as next() does: the answer to the LPUSH behind it would be taken for its
        }
        return reply;
    });
}

} // namespace orizuru::detail
