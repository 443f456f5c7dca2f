// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Reads and writes Redis for checks: plain hiredis, which shares nothing with the code under test.
// It writes with MSG_NOSIGNAL, so that a test binary can leave SIGPIPE unchanged.

#pragma once

#include <hiredis/hiredis.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

/// A reply of Redis as a plain value.
struct Answer {
    enum class Kind { nil, status, error, integer, text, array };

    Kind kind = Kind::nil;
    std::string text;         ///< of a status, an error or a text
    std::int64_t integer = 0; ///< of an integer
    std::vector<Answer> elements;

    [[nodiscard]] bool is_error() const noexcept { return kind == Kind::error; }
    /// Of an array of names, each with its value behind it; empty without this name.
    [[nodiscard]] std::string field(std::string_view name) const {
        for (std::size_t i = 0; i + 1 < elements.size(); i += 2) {
            if (elements[i].text == name) {
                return elements[i + 1].text;
            }
        }
        return {};
    }
};

/// A command as it goes over the wire.
inline std::string to_resp(const std::vector<std::string>& words) {
    std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
        bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    return bytes;
}

/// One connection to `unix:///path` or `redis://host:port`, for one thread at a time.
///
/// Connects with the first command, and again with the first command after the connection was
/// lost (AUTH and SELECT must then be repeated). A lost connection or no answer in time throws
/// std::runtime_error.
class RedisClient {
  public:
    /// Waits up to `limit` for the connection and for each reply.
    explicit RedisClient(std::string uri, std::chrono::seconds limit = std::chrono::seconds(10))
        : m_uri(std::move(uri)), m_limit(limit) {}

    /// Throws std::runtime_error with the command and the server's text on an error reply.
    Answer command(const std::vector<std::string>& words);
    /// Returns an error reply instead of throwing.
    Answer try_command(const std::vector<std::string>& words);

    std::int64_t llen(const std::string& key) { return command({"LLEN", key}).integer; }
    std::vector<std::string> lrange(const std::string& key, std::int64_t first = 0,
                                    std::int64_t last = -1) {
        return texts(command({"LRANGE", key, std::to_string(first), std::to_string(last)}));
    }
    std::string type(const std::string& key) { return command({"TYPE", key}).text; }
    bool exists(const std::string& key) { return command({"EXISTS", key}).integer == 1; }
    /// Returns the values sorted.
    std::vector<std::string> keys(const std::string& pattern = "*") {
        std::vector<std::string> found = texts(command({"KEYS", pattern}));
        std::sort(found.begin(), found.end());
        return found;
    }
    std::int64_t del(const std::string& key) { return command({"DEL", key}).integer; }
    void set(const std::string& key, const std::string& value) { command({"SET", key, value}); }
    void flushall() { command({"FLUSHALL"}); }

    /// The last value ends up leftmost. Returns the new length.
    std::int64_t lpush(const std::string& key, const std::vector<std::string>& values) {
        std::vector<std::string> words{"LPUSH", key};
        words.insert(words.end(), values.begin(), values.end());
        return command(words).integer;
    }
    template <std::convertible_to<std::string>... Values>
        requires(sizeof...(Values) > 0)
    std::int64_t lpush(const std::string& key, const Values&... values) {
        return lpush(key, std::vector<std::string>{std::string(values)...});
    }

  private:
    struct Release {
        void operator()(redisContext* context) const noexcept { ::redisFree(context); }
        void operator()(redisReply* reply) const noexcept { ::freeReplyObject(reply); }
    };

    static std::vector<std::string> texts(const Answer& answer);
    static Answer to_answer(const redisReply& reply);

    [[noreturn]] void fail(const std::vector<std::string>& words, const std::string& reason);
    [[nodiscard]] bool connected() const;
    void connect();
    void write(std::string_view bytes);

    std::string m_uri;
    std::chrono::seconds m_limit;
    std::unique_ptr<redisContext, Release> m_context;
};

inline Answer RedisClient::command(const std::vector<std::string>& words) {
    Answer answer = try_command(words);
    if (answer.is_error()) {
        fail(words, answer.text);
    }
    return answer;
}

inline Answer RedisClient::try_command(const std::vector<std::string>& words) {
    try {
        if (!connected()) {
            connect();
        }
        write(to_resp(words));
        void* raw = nullptr;
        if (::redisGetReply(m_context.get(), &raw) != REDIS_OK) {
            throw std::runtime_error(m_context->errstr);
        }
        const std::unique_ptr<redisReply, Release> reply{static_cast<redisReply*>(raw)};
        return to_answer(*reply);
    } catch (const std::runtime_error& error) {
        m_context.reset();
        fail(words, error.what());
    }
}

inline std::vector<std::string> RedisClient::texts(const Answer& answer) {
    std::vector<std::string> result;
    for (const Answer& element : answer.elements) {
        result.push_back(element.text);
    }
    return result;
}

inline Answer RedisClient::to_answer(const redisReply& reply) {
    using Kind = Answer::Kind;
    switch (reply.type) {
    case REDIS_REPLY_NIL:
        return {};
    case REDIS_REPLY_STATUS:
        return {Kind::status, {reply.str, reply.len}, 0, {}};
    case REDIS_REPLY_ERROR:
        return {Kind::error, {reply.str, reply.len}, 0, {}};
    case REDIS_REPLY_STRING:
        return {Kind::text, {reply.str, reply.len}, 0, {}};
    case REDIS_REPLY_INTEGER:
        return {Kind::integer, {}, reply.integer, {}};
    case REDIS_REPLY_ARRAY: {
        Answer array{Kind::array, {}, 0, {}};
        for (std::size_t i = 0; i < reply.elements; ++i) {
            array.elements.push_back(to_answer(*reply.element[i]));
        }
        return array;
    }
    default:
        throw std::runtime_error("reply of unknown type " + std::to_string(reply.type));
    }
}

inline void RedisClient::fail(const std::vector<std::string>& words, const std::string& reason) {
    std::string message;
    for (const std::string& word : words) {
        message += word + ' ';
    }
    throw std::runtime_error(message + "at " + m_uri + ": " + reason);
}

/// No reply is due, so a healthy connection has nothing to read.
inline bool RedisClient::connected() const {
    char byte = 0;
    return m_context && ::recv(m_context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

inline void RedisClient::connect() {
    constexpr std::string_view unix_scheme = "unix://";
    constexpr std::string_view tcp_scheme = "redis://";
    const timeval limit{m_limit.count(), 0};
    if (m_uri.starts_with(unix_scheme)) {
        m_context.reset(
            ::redisConnectUnixWithTimeout(m_uri.substr(unix_scheme.size()).c_str(), limit));
    } else if (const auto colon = m_uri.rfind(':');
               m_uri.starts_with(tcp_scheme) && colon > tcp_scheme.size()) {
        const std::string host = m_uri.substr(tcp_scheme.size(), colon - tcp_scheme.size());
        m_context.reset(
            ::redisConnectWithTimeout(host.c_str(), std::stoi(m_uri.substr(colon + 1)), limit));
    } else {
        throw std::invalid_argument("neither unix:///path nor redis://host:port: " + m_uri);
    }
    if (!m_context) {
        throw std::runtime_error("no memory");
    }
    if (m_context->err != 0) {
        throw std::runtime_error(m_context->errstr);
    }
    ::redisSetTimeout(m_context.get(), limit);
    ::fcntl(m_context->fd, F_SETFD, FD_CLOEXEC);
}

inline void RedisClient::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(m_context->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            throw std::runtime_error("connection lost while writing");
        }
        bytes.remove_prefix(sent < 0 ? 0 : static_cast<std::size_t>(sent));
    }
}

} // namespace orizuru::test
