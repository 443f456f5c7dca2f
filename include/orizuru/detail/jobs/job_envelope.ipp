// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of job_envelope.hpp: the fields behind the payload.

#include <algorithm>
#include <cstddef>
#include <limits>

namespace orizuru::detail {

// Where they begin.
inline constexpr std::uint32_t first_later_field = 11;
inline constexpr std::uint32_t known_later_fields = 3;

ORIZURU_INLINE void check_attributes(const JobAttributes& attributes) {
    std::size_t size = 0;
    for (const auto& [name, value] : attributes) {
        if (name.empty()) {
            throw std::invalid_argument("a job's attribute has no name");
        }
        size += name.size() + value.size();
    }
    if (attributes.size() > most_attributes || size > longest_attributes) {
        constexpr std::string_view bounds =
            "a job's attributes must be at most 64, and at most 16384 bytes: these are ";
        throw std::invalid_argument(joined(
            {bounds, std::to_string(attributes.size()), ", ", std::to_string(size), " bytes"}));
    }
}

ORIZURU_INLINE void check_kind(std::string_view kind) {
    constexpr auto is_control = [](char letter) {
        return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
    };
    if (kind.size() > longest_kind || std::ranges::any_of(kind, is_control)) {
        throw std::invalid_argument(
            "a job's kind must have at most 100 bytes and no control character");
    }
}

ORIZURU_INLINE void check_max_attempts(std::optional<int> max_attempts) {
    if (max_attempts.value_or(1) < 1) {
        throw std::invalid_argument("a job's max_attempts must be 1 or more");
    }
}

ORIZURU_INLINE std::uint32_t count_fields(const JobAttributes& attributes, std::string_view kind,
                                          std::optional<int> max_attempts,
                                          std::uint64_t ledger_attempt,
                                          const std::vector<std::string>& later) {
    const std::uint32_t known = !later.empty() || max_attempts              ? known_later_fields
                                : !kind.empty()                             ? 2
                                : !attributes.empty() || ledger_attempt > 0 ? 1
                                                                            : 0;
    return first_later_field + known + static_cast<std::uint32_t>(later.size());
}

ORIZURU_INLINE void append_later_fields(const JobAttributes& attributes, std::string_view kind,
                                        std::optional<int> max_attempts,
                                        std::uint64_t ledger_attempt,
                                        const std::vector<std::string>& later, std::string& out) {
    const std::uint32_t fields =
        count_fields(attributes, kind, max_attempts, ledger_attempt, later) - first_later_field;
    MsgpackAppender appender{out};
    msgpack::packer packer(appender);
    const auto pack_text = [&packer](std::string_view text) {
        packer.pack_str(static_cast<std::uint32_t>(text.size()));
        packer.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
    };
    if (fields > 0) {
        if (ledger_attempt > 0) {
            packer.pack(ledger_attempt);
        } else if (attributes.empty()) {
            packer.pack_nil();
        } else {
            packer.pack_map(static_cast<std::uint32_t>(attributes.size()));
            for (const auto& [name, value] : attributes) {
                pack_text(name);
                pack_text(value);
            }
        }
    }
    if (fields > 1) {
        kind.empty() ? static_cast<void>(packer.pack_nil()) : pack_text(kind);
    }
    if (fields > 2) {
        max_attempts ? packer.pack(*max_attempts) : packer.pack_nil();
    }
    for (const std::string& field : later) {
        out += field;
    }
}

ORIZURU_INLINE void EnvelopeReader::read_later_fields(JobAttributes& attributes, std::string& kind,
                                                      std::optional<int>& max_attempts,
                                                      std::uint64_t& ledger_attempt,
                                                      std::vector<std::string>& later) {
    using msgpack::type::MAP;
    using msgpack::type::NIL;
    using msgpack::type::POSITIVE_INTEGER;
    using msgpack::type::STR;
    const auto text_of = [](const msgpack::object& object) {
        if (object.type != STR) {
            refuse_envelope("an attribute that is no text");
        }
        return std::string(object.via.str.ptr, object.via.str.size);
    };
    if (has_more()) {
        const msgpack::object& field = next();
        if (field.type == POSITIVE_INTEGER) {
            ledger_attempt = field.via.u64;
        } else if (field.type == MAP) {
            for (std::uint32_t i = 0; i < field.via.map.size; ++i) {
                const msgpack::object_kv& entry = field.via.map.ptr[i];
                attributes.insert_or_assign(text_of(entry.key), text_of(entry.val));
            }
            check_attributes(attributes);
        } else if (field.type != NIL) {
            refuse_envelope("attributes that are no map");
        }
    }
    if (has_more()) {
        if (const msgpack::object& field = next(); field.type == STR) {
            kind.assign(field.via.str.ptr, field.via.str.size);
            check_kind(kind);
        } else if (field.type != NIL) {
            refuse_envelope("a kind that is no text");
        }
    }
    if (has_more()) {
        const msgpack::object& field = next();
        if (field.type == POSITIVE_INTEGER && field.via.u64 >= 1 &&
            field.via.u64 <= std::numeric_limits<int>::max()) {
            max_attempts = static_cast<int>(field.via.u64);
        } else if (field.type != NIL) {
            refuse_envelope("a max_attempts that cannot be");
        }
    }
    while (has_more()) {
        MsgpackAppender to{later.emplace_back()};
        msgpack::pack(to, next());
    }
}

ORIZURU_INLINE std::string_view envelope_kind(std::string_view bytes, msgpack::zone& zone) {
    constexpr std::uint32_t kind_field = first_later_field + 1;
    const unsigned first = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front());
    const bool short_array = (first & 0xf0U) == 0x90;
    if (short_array ? (first & 0x0fU) <= kind_field : first != 0xdc && first != 0xdd) {
        return {};
    }
    try {
        MsgpackReader reader(bytes, zone);
        const msgpack::object envelope = reader.read();
        if (envelope.type == msgpack::type::ARRAY && envelope.via.array.size > kind_field) {
            const msgpack::object& kind = envelope.via.array.ptr[kind_field];
            if (kind.type == msgpack::type::STR) {
                return {kind.via.str.ptr, kind.via.str.size};
            }
        }
    } catch (const std::invalid_argument&) { // NOLINT(bugprone-empty-catch)
        // Decoding says what is wrong.
    }
    return {};
}

} // namespace orizuru::detail
