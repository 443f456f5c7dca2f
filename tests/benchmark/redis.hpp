// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Plain hiredis: a blocking connection, commands by argument vector, replies as objects.

#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::benchmark {

struct FreeReply {
    void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

[[nodiscard]] inline std::string_view text_of(const redisReply& reply) {
    return {reply.str, reply.len};
}

/// One connection, for one thread. Every error throws std::runtime_error.
class Redis {
  public:
    explicit Redis(const std::string& socket) : m_context(redisConnectUnix(socket.c_str())) {
        check(m_context && m_context->err == 0);
    }

    // A command of any number of arguments: begin, add..., send. An argument lives until send.
    void begin() {
        m_arguments.clear();
        m_sizes.clear();
    }
    void add(std::string_view argument) {
        m_arguments.push_back(argument.data());
        m_sizes.push_back(argument.size());
    }
    /// Sends the command and does not wait: replies may already lie in the reader's buffer, and
    /// redisGetReply would not write before they are taken.
    void send() {
        check(redisAppendCommandArgv(m_context.get(), static_cast<int>(m_arguments.size()),
                                     m_arguments.data(), m_sizes.data()) == REDIS_OK);
        int done = 0;
        while (done == 0) {
            check(redisBufferWrite(m_context.get(), &done) == REDIS_OK);
        }
    }
    /// The oldest reply that is due.
    Reply reply() {
        void* reply = nullptr;
        check(redisGetReply(m_context.get(), &reply) == REDIS_OK);
        Reply owned(static_cast<redisReply*>(reply));
        if (owned->type == REDIS_REPLY_ERROR) {
            throw std::runtime_error(std::string(text_of(*owned)));
        }
        return owned;
    }

    template <class... Arguments>
    Reply command(const Arguments&... arguments) {
        begin();
        (add(arguments), ...);
        send();
        return reply();
    }

  private:
    struct FreeContext {
        void operator()(redisContext* context) const noexcept { redisFree(context); }
    };

    void check(bool good) const {
        if (!good) {
            throw std::runtime_error(m_context ? m_context->errstr : "no memory");
        }
    }

    std::unique_ptr<redisContext, FreeContext> m_context;
    std::vector<const char*> m_arguments;
    std::vector<std::size_t> m_sizes;
};

} // namespace orizuru::benchmark
