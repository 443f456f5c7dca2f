// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Checks and reads the fields of a job's envelope (job.hpp).

#include <orizuru/detail/base/config.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/codec/msgpack_reader.hpp>
#include <orizuru/detail/jobs/envelope_limits.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/keys.hpp>
#include <orizuru/msgpack.hpp>

#include <msgpack.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::detail {

[[noreturn]] inline void refuse_envelope(const char* what) {
    throw std::invalid_argument(std::string("the job's envelope has ") + what);
}

/// For what has not even the beginning of an envelope.
[[noreturn]] [[gnu::cold]] inline void refuse_as_job(std::string_view why) {
    throw std::invalid_argument(
        joined({"no job envelope (", why,
                "): push jobs by orizuru::JobProducer, or as README's \"Other languages\" says"}));
}

inline void check_time(JobTime time) {
    if (time < earliest_job_time || time > latest_job_time) {
        refuse_envelope("a time beyond the year 9999");
    }
}

inline void check_unique_queue(const std::string& queue) {
    if (queue.empty()) {
        return;
    }
    try {
        static_cast<void>(Keys(queue));
    } catch (const std::invalid_argument&) {
        refuse_envelope("a unique_queue that cannot be");
    }
}

/// These throw std::invalid_argument for what no reader would take.
void check_attributes(const JobAttributes& attributes);
void check_kind(std::string_view kind);
void check_max_attempts(std::optional<int> max_attempts);
void check_key(std::string_view key);

/// The fields behind the payload, as Job has them.
struct LaterFields {
    const JobAttributes& attributes;
    std::string_view kind;
    std::optional<int> max_attempts;
    std::string_view key;
    std::string_view ticket;
    std::string_view group;
    std::uint64_t ledger_attempt;
    const std::vector<std::string>& beyond; ///< those of a newer version
};
/// Returns how many fields the envelope has with these.
[[nodiscard]] std::uint32_t count_fields(const LaterFields& later);
void append_later_fields(const LaterFields& later, std::string& out);

/// Each a msgpack value that an envelope can have.
inline void check_later(const std::vector<std::string>& fields) {
    for (const std::string& field : fields) {
        msgpack::zone zone;
        static_cast<void>(MsgpackReader("\x91" + field, zone).read());
    }
}

/// The fields of an envelope, one after the other.
class EnvelopeReader {
  public:
    /// The reader has read nothing yet, and outlives this.
    explicit EnvelopeReader(MsgpackReader& reader) : m_fields(fields_of(reader)) {}

    std::uint64_t unsigned_number(std::uint64_t least, std::uint64_t most, const char* otherwise) {
        const msgpack::object& field = next();
        if (field.type != msgpack::type::POSITIVE_INTEGER || field.via.u64 < least ||
            field.via.u64 > most) {
            refuse(otherwise);
        }
        return field.via.u64;
    }
    JobTime time() { return time_of(next()); }
    std::optional<JobTime> optional_time() {
        const msgpack::object& field = next();
        return field.type == msgpack::type::NIL ? std::nullopt : std::optional(time_of(field));
    }
    std::string_view text(std::size_t least, std::size_t most, const char* otherwise) {
        const msgpack::object& field = next();
        if (field.type != msgpack::type::STR || field.via.str.size < least ||
            field.via.str.size > most) {
            refuse(otherwise);
        }
        return {field.via.str.ptr, field.via.str.size};
    }
    std::string_view bytes(const char* otherwise) {
        const msgpack::object& field = next();
        if (field.type != msgpack::type::BIN) {
            refuse(otherwise);
        }
        return {field.via.bin.ptr, field.via.bin.size};
    }
    [[nodiscard]] bool has_more() const noexcept { return m_next < m_fields.size; }
    // The fields behind the payload, in this order; of those that are not there nothing is changed.

    void read_attributes(JobAttributes& attributes, std::uint64_t& ledger_attempt);
    void read_choices(std::string& kind, std::optional<int>& max_attempts);
    void read_order(std::string& key, std::string& ticket);
    void read_group(std::string& group);
    /// Those of a newer version, as they were written.
    void read_rest(std::vector<std::string>& later);

  private:
    void read_text(std::string& text, const char* otherwise);
    static msgpack::object_array fields_of(MsgpackReader& reader) {
        msgpack::object envelope;
        try {
            envelope = reader.read();
        } catch (const std::invalid_argument& error) {
            refuse_as_job(error.what());
        }
        if (envelope.type != msgpack::type::ARRAY) {
            refuse_as_job("the payload is no array");
        }
        return envelope.via.array;
    }
    /// Throws; what has neither version nor id was not meant to be an envelope.
    [[noreturn]] [[gnu::cold]] void refuse(const char* what) const {
        if (m_next <= 2) {
            refuse_as_job(joined({"it has ", what}));
        }
        refuse_envelope(what);
    }
    const msgpack::object& next() {
        if (m_next == m_fields.size) {
            refuse("too few fields");
        }
        return m_fields.ptr[m_next++];
    }
    static JobTime time_of(const msgpack::object& field) {
        if (field.type != msgpack::type::POSITIVE_INTEGER &&
            field.type != msgpack::type::NEGATIVE_INTEGER) {
            refuse_envelope("a time that is no number");
        }
        const JobTime time(std::chrono::milliseconds(field.as<std::int64_t>()));
        check_time(time);
        return time;
    }

    msgpack::object_array m_fields;
    std::uint32_t m_next = 0;
};

/// The kind of the job in these bytes, a view of them; empty: it has none, or they are no envelope,
/// which decoding tells. O(1) for an envelope without a kind. Throws std::bad_alloc.
[[nodiscard]] std::string_view envelope_kind(std::string_view bytes, msgpack::zone& zone);

} // namespace orizuru::detail

#ifndef ORIZURU_SEPARATE_COMPILATION
#include <orizuru/detail/jobs/job_envelope.ipp>
#endif
