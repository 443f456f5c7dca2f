// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// hiredis' parser, building Reply values through its object functions. Elements are added as they
// arrive, so an announced size alone reserves no memory; a reply that does not end is cut off.

#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace orizuru::detail {

class ReplyReader {
  public:
    ReplyReader() : m_reader(redisReaderCreateWithFunctions(&functions())) {
        if (!m_reader) {
            throw std::bad_alloc();
        }
        m_reader->privdata = m_reader.get();
    }

    /// Throws ProtocolError when a single reply element grows beyond what Redis can send.
    void feed(std::string_view bytes) {
        if (redisReaderFeed(m_reader.get(), bytes.data(), bytes.size()) != REDIS_OK) {
            fail();
        }
        if (m_reader->len - m_reader->pos > largest_element) {
            throw ProtocolError("a reply is larger than 513 MiB");
        }
    }

    /// The next whole reply, if there is one.
    [[nodiscard]] std::optional<Reply> next() {
        void* object = nullptr;
        if (redisReaderGetReply(m_reader.get(), &object) != REDIS_OK) {
            fail();
        }
        if (object == nullptr) {
            return std::nullopt;
        }
        const std::unique_ptr<Reply> reply(static_cast<Reply*>(object));
        return std::move(*reply);
    }

  private:
    // Redis' proto-max-bulk-len is 512 MiB by default; what is not parsed yet may hold one such
    // string and a little more.
    static constexpr std::size_t largest_element = std::size_t{513} << 20;

    // As in hiredis 0.14.
    static constexpr int deepest = 7;

    struct Free {
        void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
    };

    [[noreturn]] void fail() const {
        if (m_reader->privdata == nullptr) {
            throw ProtocolError("the reply has a type of RESP3 or is nested too deeply");
        }
        if (m_reader->err == REDIS_ERR_OOM) {
            throw std::bad_alloc();
        }
        throw ProtocolError("the reply is not Redis' protocol: " + std::string(m_reader->errstr));
    }

    // RESP3 is never asked for, and hiredis 1.x nests without end up to 1.2.0.
    static bool acceptable(const redisReadTask* task) noexcept {
        int depth = 0;
        for (const redisReadTask* above = task->parent; above != nullptr; above = above->parent) {
            ++depth;
        }
        return depth <= deepest && task->type >= REDIS_REPLY_STRING &&
               task->type <= REDIS_REPLY_ERROR && task->type != REDIS_REPLY_NIL;
    }

    // A null from a function below is "out of memory" for hiredis; the reader's private data, null
    // from here on, tells that it was not.
    static void* refuse(const redisReadTask* task) noexcept {
        static_cast<redisReader*>(task->privdata)->privdata = nullptr;
        return nullptr;
    }

    // An exception must not cross hiredis' C code.
    template <class Fill>
    static void* make(const redisReadTask* task, Fill fill) noexcept {
        if (!acceptable(task)) {
            return refuse(task);
        }
        try {
            if (task->parent == nullptr) {
                auto root = std::make_unique<Reply>();
                fill(*root);
                return root.release();
            }
            auto& siblings = static_cast<Reply*>(task->parent->obj)->elements;
            fill(siblings.emplace_back());
            return &siblings.back();
        } catch (...) {
            return nullptr;
        }
    }

    static void* make_string(const redisReadTask* task, char* text, std::size_t size) noexcept {
        return make(task, [=](Reply& reply) {
            reply.type = task->type == REDIS_REPLY_ERROR    ? Reply::Type::error
                         : task->type == REDIS_REPLY_STATUS ? Reply::Type::status
                                                            : Reply::Type::string;
            reply.text.assign(text, size);
        });
    }

    // hiredis 0.14 counts elements in int, 1.x in size_t.
    template <class Count>
    static void* make_array(const redisReadTask* task, Count) noexcept {
        return make(task, [](Reply& reply) { reply.type = Reply::Type::array; });
    }

    static void* make_integer(const redisReadTask* task, long long number) noexcept {
        return make(task, [=](Reply& reply) {
            reply.type = Reply::Type::integer;
            reply.integer = number;
        });
    }

    static void* make_nil(const redisReadTask* task) noexcept {
        return make(task, [](Reply&) {});
    }

    // Only hiredis 1.x has these members, and only RESP3 has the types. Left null, hiredis would
    // hand out a small number in place of an object.
    template <class Functions>
    static void refuse_resp3(Functions& functions) noexcept {
        if constexpr (requires { functions.createDouble; }) {
            functions.createDouble = [](const redisReadTask* task, double, char*, std::size_t) {
                return refuse(task);
            };
            functions.createBool = [](const redisReadTask* task, int) { return refuse(task); };
        }
    }

    static redisReplyObjectFunctions& functions() noexcept {
        static redisReplyObjectFunctions table = [] {
            redisReplyObjectFunctions all{};
            all.createString = make_string;
            all.createArray = make_array;
            all.createInteger = make_integer;
            all.createNil = make_nil;
            all.freeObject = [](void* object) { delete static_cast<Reply*>(object); };
            refuse_resp3(all);
            return all;
        }();
        return table;
    }

    std::unique_ptr<redisReader, Free> m_reader;
};

} // namespace orizuru::detail
