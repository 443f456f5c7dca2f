// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Parses replies with hiredis, whose object functions build Reply values in memory reused from one
// reply to the next: hiredis' own objects take two allocations per element. Elements are added as
// they arrive, so an announced size alone reserves no memory. An endless reply is refused.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::detail {

class ReplyReader {
  public:
    ReplyReader() : m_reader(redisReaderCreateWithFunctions(&functions())) {
        if (!m_reader) {
            throw std::bad_alloc();
        }
        m_reader->privdata = m_built.get();
        m_reader->maxbuf = largest_kept_buffer;
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

    /// The next whole reply, or null. The reader owns it; it lasts until the next call. You may
    /// move its parts out; the reader reuses memory that you swap in.
    [[nodiscard]] Reply* next() {
        void* object = nullptr;
        if (redisReaderGetReply(m_reader.get(), &object) != REDIS_OK) {
            fail();
        }
        if (object == nullptr) {
            refuse_endless_line();
            return nullptr;
        }
        m_built->finish();
        return &m_built->root;
    }

  private:
    // One string of proto-max-bulk-len, 512 MiB by default, and a little more may be unparsed.
    static constexpr std::size_t largest_element = std::size_t{513} << 20;

    // Far above any error that a script makes up; in pieces of 64 KiB it is soon read.
    static constexpr std::size_t longest_line = std::size_t{16} << 20;

    // Bytes of its buffer that hiredis keeps; a batch of small messages fits in.
    static constexpr std::size_t largest_kept_buffer = std::size_t{256} << 10;

    // The limit of hiredis 0.14.
    static constexpr int deepest = 7;

    /// The reply that hiredis is building.
    struct Built {
        Reply root;
        std::size_t count = 0;    ///< elements of the root that belong to this reply
        std::vector<Reply> spare; ///< elements that a larger reply left behind
        bool refused = false;     ///< for another reason than memory

        Reply& begin() {
            count = 0;
            return emptied(root);
        }
        Reply& add_element() {
            if (count == root.elements.size()) {
                append_element();
            }
            Reply& element = root.elements[count++];
            element.elements.clear();
            return emptied(element);
        }
        [[gnu::noinline]] void append_element() {
            if (spare.empty()) {
                root.elements.emplace_back();
            } else {
                root.elements.emplace_back() = std::move(spare.back());
                spare.pop_back();
            }
        }
        void finish() {
            while (root.elements.size() > count) {
                root.elements.back().elements.clear();
                spare.emplace_back() = std::move(root.elements.back());
                root.elements.pop_back();
            }
        }
        static Reply& emptied(Reply& reply) noexcept {
            reply.integer = 0;
            reply.text.clear();
            return reply;
        }
    };

    struct Free {
        void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
    };

    [[noreturn]] [[gnu::cold]] void fail() const {
        if (m_built->refused) {
            throw ProtocolError("the reply has a type of RESP3 or is nested too deeply");
        }
        if (m_reader->err == REDIS_ERR_OOM) {
            throw std::bad_alloc();
        }
        throw ProtocolError(joined({"the reply is not Redis' protocol: ", m_reader->errstr}));
    }

    // hiredis searches an unfinished line from its beginning each time that more of it arrives.
    void refuse_endless_line() const {
        const std::string_view rest(m_reader->buf + m_reader->pos, m_reader->len - m_reader->pos);
        if (rest.size() > longest_line &&
            rest.substr(0, longest_line).find("\r\n") == std::string_view::npos) {
            throw ProtocolError("a line of a reply is longer than 16 MiB");
        }
    }

    // hiredis 1.x up to 1.2.0 does not limit nesting.
    static bool too_deep(const redisReadTask* task) noexcept {
        int depth = 0;
        for (const redisReadTask* above = task->parent; above != nullptr; above = above->parent) {
            ++depth;
        }
        return depth > deepest;
    }

    // The library never asks for RESP3.
    static bool of_resp2(const redisReadTask* task) noexcept {
        return task->type >= REDIS_REPLY_STRING && task->type <= REDIS_REPLY_ERROR &&
               task->type != REDIS_REPLY_NIL;
    }

    static Built& built(const redisReadTask* task) noexcept {
        return *static_cast<Built*>(task->privdata);
    }

    // For hiredis, a null from a function below means "out of memory"; the flag says otherwise.
    static Reply* refuse(const redisReadTask* task) noexcept {
        built(task).refused = true;
        return nullptr;
    }

    // An exception must not cross hiredis' C code.
    template <class Fill>
    static void* make(const redisReadTask* task, Fill fill) noexcept {
        try {
            Reply* const reply = place(task);
            if (reply != nullptr) {
                fill(*reply);
            }
            return reply;
        } catch (...) {
            return nullptr;
        }
    }

    /// Null when it is refused.
    [[gnu::noinline]] static Reply* place(const redisReadTask* task) {
        if (!of_resp2(task)) {
            return refuse(task);
        }
        if (task->parent == nullptr) {
            return &built(task).begin();
        }
        if (task->parent->parent == nullptr) {
            return &built(task).add_element();
        }
        return too_deep(task) ? refuse(task)
                              : &static_cast<Reply*>(task->parent->obj)->elements.emplace_back();
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
        return make(task, [](Reply& reply) { reply.type = Reply::Type::nil; });
    }

    // Only hiredis 1.x has these members, and only RESP3 has the types. If they were null, hiredis
    // would return a small number in place of an object.
    template <class Functions>
    static constexpr void refuse_resp3(Functions& functions) noexcept {
        if constexpr (requires { functions.createDouble; }) {
            functions.createDouble = [](const redisReadTask* task, double, char*,
                                        std::size_t) -> void* { return refuse(task); };
            functions.createBool = [](const redisReadTask* task, int) -> void* {
                return refuse(task);
            };
        }
    }

    static redisReplyObjectFunctions& functions() noexcept {
        static constinit redisReplyObjectFunctions table = [] {
            redisReplyObjectFunctions all{};
            all.createString = make_string;
            all.createArray = make_array;
            all.createInteger = make_integer;
            all.createNil = make_nil;
            all.freeObject = [](void*) {};
            refuse_resp3(all);
            return all;
        }();
        return table;
    }

    std::unique_ptr<Built> m_built = std::make_unique<Built>();
    std::unique_ptr<redisReader, Free> m_reader;
};

} // namespace orizuru::detail
