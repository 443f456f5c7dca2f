// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Reads and writes a job's envelope as the versions did that knew eleven fields. It stays as it is:
// such workers may still run.

#pragma once

#include "msgpack_itself.hpp"

#include <msgpack.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

struct OldJob {
    std::uint64_t version = 1;
    std::string id = {};
    int attempt = 1;
    std::int64_t first_enqueued_at = 0;
    std::int64_t enqueued_at = 0;
    std::optional<std::int64_t> first_failed_at = {};
    std::optional<std::int64_t> expires_at = {};
    std::string last_error = {};
    std::string unique_id = {};
    std::string unique_queue = {};
    std::string payload = {};
    /// What is behind the payload, a msgpack value each.
    std::vector<std::string> later = {};

    [[nodiscard]] static OldJob read(std::string_view bytes);
    [[nodiscard]] std::string bytes() const;
    /// As it is tried again.
    void fail(const std::string& why, std::int64_t now) {
        ++attempt;
        enqueued_at = now;
        first_failed_at = first_failed_at.value_or(now);
        last_error = why;
    }

  private:
    struct Appender {
        std::string& out; // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): short-lived
        void write(const char* bytes, std::size_t size) { out.append(bytes, size); }
    };
};

inline OldJob OldJob::read(std::string_view bytes) {
    msgpack::zone zone;
    const msgpack::object_array fields = unpacked(bytes, zone).via.array;
    if (fields.size < 11) {
        throw std::invalid_argument("too few fields");
    }
    std::uint32_t next = 0;
    const auto take = [&]() -> const msgpack::object& { return fields.ptr[next++]; };
    const auto text = [&](msgpack::type::object_type type) {
        const msgpack::object& field = take();
        if (field.type != type) {
            throw std::invalid_argument("a text of the wrong type");
        }
        return field.as<std::string>();
    };
    const auto optional_time = [&]() -> std::optional<std::int64_t> {
        const msgpack::object& field = take();
        return field.is_nil() ? std::nullopt : std::optional(field.as<std::int64_t>());
    };
    OldJob job;
    job.version = take().as<std::uint64_t>();
    job.id = text(msgpack::type::STR);
    job.attempt = take().as<int>();
    job.first_enqueued_at = take().as<std::int64_t>();
    job.enqueued_at = take().as<std::int64_t>();
    job.first_failed_at = optional_time();
    job.expires_at = optional_time();
    job.last_error = text(msgpack::type::STR);
    job.unique_id = text(msgpack::type::STR);
    job.unique_queue = text(msgpack::type::STR);
    job.payload = text(msgpack::type::BIN);
    while (next < fields.size) {
        Appender appender{job.later.emplace_back()};
        msgpack::pack(appender, take());
    }
    return job;
}

inline std::string OldJob::bytes() const {
    std::string out;
    Appender appender{out};
    msgpack::packer packer(appender);
    const auto pack_text = [&](const std::string& text) {
        packer.pack_str(static_cast<std::uint32_t>(text.size()));
        packer.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
    };
    const auto pack_time = [&](const std::optional<std::int64_t>& time) {
        time ? packer.pack(*time) : packer.pack_nil();
    };
    packer.pack_array(static_cast<std::uint32_t>(11 + later.size()));
    packer.pack(version);
    pack_text(id);
    packer.pack(attempt);
    packer.pack(first_enqueued_at);
    packer.pack(enqueued_at);
    pack_time(first_failed_at);
    pack_time(expires_at);
    pack_text(last_error);
    pack_text(unique_id);
    pack_text(unique_queue);
    packer.pack_bin(static_cast<std::uint32_t>(payload.size()));
    packer.pack_bin_body(payload.data(), static_cast<std::uint32_t>(payload.size()));
    for (const std::string& field : later) {
        out += field;
    }
    return out;
}

} // namespace orizuru::test
