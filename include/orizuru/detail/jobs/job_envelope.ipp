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
inline constexpr std::uint32_t known_later_fields = 6;

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

ORIZURU_INLINE void check_key(std::string_view key) {
    if (key.size() > longest_key) {
        throw std::invalid_argument("a job's key must have at most 512 bytes");
    }
}

ORIZURU_INLINE std::uint32_t count_fields(const LaterFields& later) {
    const bool has_first = !later.attributes.empty() || later.ledger_attempt > 0;
    const std::uint32_t known = !later.beyond.empty() || !later.group.empty() ? known_later_fields
                                : !later.ticket.empty()                       ? 5
                                : !later.key.empty()                          ? 4
                                : later.max_attempts                          ? 3
                                : !later.kind.empty()                         ? 2
                                : has_first                                   ? 1
                                                                              : 0;
    return first_later_field + known + static_cast<std::uint32_t>(later.beyond.size());
}

ORIZURU_INLINE void append_later_fields(const LaterFields& later, std::string& out) {
    const std::uint32_t fields = count_fields(later) - first_later_field;
    MsgpackAppender appender{out};
    msgpack::packer packer(appender);
    const auto pack_text = [&packer](std::string_view text) {
        packer.pack_str(static_cast<std::uint32_t>(text.size()));
        packer.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
    };
    const auto pack_some = [&](std::string_view text) {
        text.empty() ? static_cast<void>(packer.pack_nil()) : pack_text(text);
    };
    if (fields > 0) {
        if (later.ledger_attempt > 0) {
            packer.pack(later.ledger_attempt);
        } else if (later.attributes.empty()) {
            packer.pack_nil();
        } else {
            packer.pack_map(static_cast<std::uint32_t>(later.attributes.size()));
            for (const auto& [name, value] : later.attributes) {
                pack_text(name);
                pack_text(value);
            }
        }
    }
    if (fields > 1) {
        pack_some(later.kind);
    }
    if (fields > 2) {
        later.max_attempts ? packer.pack(*later.max_attempts) : packer.pack_nil();
    }
    if (fields > 3) {
        pack_some(later.key);
    }
    if (fields > 4) {
        pack_some(later.ticket);
    }
    if (fields > 5) {
        pack_some(later.group);
    }
    for (const std::string& field : later.beyond) {
        out += field;
    }
}

/// A text or nil.
ORIZURU_INLINE void EnvelopeReader::read_text(std::string& text, const char* otherwise) {
    if (!has_more()) {
        return;
    }
    if (const msgpack::object& field = next(); field.type == msgpack::type::STR) {
        text.assign(field.via.str.ptr, field.via.str.size);
    } else if (field.type != msgpack::type::NIL) {
        refuse_envelope(otherwise);
    }
}

ORIZURU_INLINE void EnvelopeReader::read_attributes(JobAttributes& attributes,
                                                    std::uint64_t& ledger_attempt) {
    const auto text_of = [](const msgpack::object& object) {
        if (object.type != msgpack::type::STR) {
            refuse_envelope("an attribute that is no text");
        }
        return std::string(object.via.str.ptr, object.via.str.size);
    };
    if (!has_more()) {
        return;
    }
    const msgpack::object& field = next();
    if (field.type == msgpack::type::POSITIVE_INTEGER) {
        ledger_attempt = field.via.u64;
    } else if (field.type == msgpack::type::MAP) {
        for (std::uint32_t i = 0; i < field.via.map.size; ++i) {
            const msgpack::object_kv& entry = field.via.map.ptr[i];
            attributes.insert_or_assign(text_of(entry.key), text_of(entry.val));
        }
        check_attributes(attributes);
    } else if (field.type != msgpack::type::NIL) {
        refuse_envelope("attributes that are no map");
    }
}

ORIZURU_INLINE void EnvelopeReader::read_choices(std::string& kind,
                                                 std::optional<int>& max_attempts) {
    read_text(kind, "a kind that is no text");
    check_kind(kind);
    if (!has_more()) {
        return;
    }
    const msgpack::object& field = next();
    if (field.type == msgpack::type::POSITIVE_INTEGER && field.via.u64 >= 1 &&
        field.via.u64 <= std::numeric_limits<int>::max()) {
        max_attempts = static_cast<int>(field.via.u64);
    } else if (field.type != msgpack::type::NIL) {
        refuse_envelope("a max_attempts that cannot be");
    }
}

ORIZURU_INLINE void EnvelopeReader::read_order(std::string& key, std::string& ticket) {
    read_text(key, "a key that is no text");
    check_key(key);
    read_text(ticket, "a ticket that is no text");
}

ORIZURU_INLINE void EnvelopeReader::read_group(std::string& group) {
    read_text(group, "a group that is no text");
}

ORIZURU_INLINE void EnvelopeReader::read_rest(std::vector<std::string>& later) {
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
