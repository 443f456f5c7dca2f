// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A message in an envelope that tells a worker its id, how often it was tried and since when, until
// when it is of use, and why it failed last. It is an ordinary message: Producer<Job<T>> and
// Consumer<Job<T>> carry it, the payload in whatever Codec<T> makes of it.
//
// The envelope is a msgpack array; a later version may have more fields behind these:
//
//   0  version             uint, 1
//   1  id                  str, 1 to 512 bytes
//   2  attempt             uint, 1 or more
//   3  first_enqueued_at   int, milliseconds since 1970
//   4  enqueued_at         int, the same
//   5  first_failed_at     int, the same, or nil
//   6  expires_at          int, the same, or nil
//   7  last_error          str, at most 10,000 bytes of UTF-8
//   8  unique_id           str, at most 512 bytes; empty: it holds no lock
//   9  unique_queue        str, whose lock it is; empty: that of the queue in which the job is
//   10 payload             bin
//   11 attributes          map of str to str, at most 64 entries and 16,384 bytes of text, or nil.
//                          Only in a Ledger's message: uint, its ledger_attempt, how often the job
//                          was claimed before this message was sent; it has no attributes then
//   12 kind                str, 1 to 100 bytes, none below 0x20 and no 0x7f, or nil
//   13 max_attempts        uint, 1 or more, or nil
//   14 key                 str, 1 to 512 bytes, or nil
//   15 ticket              str, or nil: its place in the order of its key, by keyed.hpp alone
//   16 group               str, or nil: the group of which it is a member, by group.hpp alone
//
// Fields at the end that are nil are left out. A reader passes on fields that it does not know.
//
// Needs msgpack-c, whatever Codec<T> is.

#include <orizuru/codec.hpp>
#include <orizuru/detail/base/random.hpp>
#include <orizuru/detail/codec/encoding.hpp>
#include <orizuru/detail/codec/msgpack_reader.hpp>
#include <orizuru/detail/jobs/error_text.hpp>
#include <orizuru/detail/jobs/job_envelope.hpp>
#include <orizuru/jobs/job_attributes.hpp>
#include <orizuru/jobs/job_time.hpp>
#include <orizuru/msgpack.hpp>

#include <msgpack.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru {

/// A payload in its envelope, with all that a worker needs to try it, and to try it again. make_job
/// and JobProducer make it.
template <class T>
struct Job {
    /// Chosen by the maker of the job; `make_job` takes 128 random bits.
    std::string id;
    /// Which try this is, from 1.
    int attempt = 1;
    /// Time at which it was made; no retry changes it.
    JobTime first_enqueued_at{};
    /// Time at which this try was enqueued; if it was put off, the time it is due; if a person had
    /// it served from the dead list, or before its time, the time of that.
    JobTime enqueued_at{};
    /// Time at which a handler failed first.
    std::optional<JobTime> first_failed_at = {};
    /// Time after which nobody needs it any more.
    std::optional<JobTime> expires_at = {};
    /// Why the try before failed. Writing it replaces bytes that are no UTF-8 by U+FFFD, and cuts
    /// off all beyond 10,000 bytes.
    std::string last_error = {};
    /// Id that makes it the same as another job, if it was pushed as unique (unique.hpp); its ack
    /// releases the lock of this id.
    std::string unique_id = {};
    /// The queue that it was pushed to, when a retry or an Inspector has brought it to another one:
    /// the lock is that queue's.
    std::string unique_queue = {};
    /// Data that travels beside the payload: a trace context, a tenant.
    JobAttributes attributes = {};
    /// Which of a queue's handlers it is for; empty: the one without a kind.
    std::string kind = {};
    /// Number of tries in all; empty: as its RetryPolicy says.
    std::optional<int> max_attempts = {};
    /// In whose order it is handled (keyed.hpp); empty: in none.
    std::string key = {};
    /// Its place in that order; empty: it has none yet, or none any more.
    std::string ticket = {};
    /// The group that waits for its end (group.hpp); empty: none does.
    std::string group = {};
    /// The message itself, which Codec<T> encodes.
    T payload;

    /// The version of the envelope. An envelope that is newer than this library is written back as
    /// it came, with all its fields.
    std::uint64_t version = 1;
    /// In a Ledger's message: how often the job had been claimed before.
    std::uint64_t ledger_attempt = 0;
    /// The fields of a newer version, a msgpack value each.
    std::vector<std::string> later = {};

    /// True when expires_at is set and not later than `now`.
    [[nodiscard]] bool expired(JobTime now) const noexcept {
        return expires_at && *expires_at <= now;
    }
};

/// Makes a job in its first try, enqueued now, with a new id of 32 hexadecimal digits. It expires
/// `expires_after` from now, whenever it is due, and at the end of the year 9999 at latest.
template <class T>
[[nodiscard]] Job<T> make_job(T payload,
                              std::optional<std::chrono::milliseconds> expires_after = {}) {
    const JobTime now = job_time();
    return {.id = detail::random_hex(32),
            .first_enqueued_at = now,
            .enqueued_at = now,
            .expires_at =
                expires_after ? std::optional(detail::later(now, *expires_after)) : std::nullopt,
            .payload = std::move(payload)};
}

namespace detail {

/// Memory that decoding keeps from one job to the next.
struct JobScratch {
    enum class Part { nothing, envelope, payload };

    msgpack::zone zone;
    Scratch payload;
    Part decoding = Part::envelope; ///< the part that an exception has interrupted
};

template <class T>
inline constexpr bool has_codec<Job<T>> = has_codec<T>;

} // namespace detail

/// Writes and reads the envelope as a msgpack array, with the payload as Codec<T> encodes it.
template <class T>
struct Codec<Job<T>> {
    /// Appends the envelope. Throws std::invalid_argument when a field is out of its range; what
    /// Codec<T> throws.
    static void encode(const Job<T>& job, std::string& out) requires MessageEncodable<T> {
        if (job.id.empty() || job.id.size() > detail::longest_job_id) {
            throw std::invalid_argument("a job's id must have 1 to 512 bytes");
        }
        if (job.unique_id.size() > detail::longest_job_id) {
            throw std::invalid_argument("a job's unique_id must have at most 512 bytes");
        }
        detail::check_unique_queue(job.unique_queue);
        if (job.version < 1) {
            throw std::invalid_argument("a job's version must be 1 or more");
        }
        detail::check_later(job.later);
        detail::check_attributes(job.attributes);
        detail::check_kind(job.kind);
        detail::check_max_attempts(job.max_attempts);
        detail::check_key(job.key);
        if (job.attempt < 1) {
            throw std::invalid_argument("a job's attempt must be 1 or more");
        }
        detail::check_time(job.first_enqueued_at);
        detail::check_time(job.enqueued_at);
        detail::check_time(job.first_failed_at.value_or(job.enqueued_at));
        detail::check_time(job.expires_at.value_or(job.enqueued_at));
        std::string payload;
        detail::append_encoded(job.payload, payload);
        const std::string error =
            detail::to_utf8(detail::cut_text(job.last_error, detail::longest_last_error));

        detail::MsgpackAppender appender{out};
        msgpack::packer packer(appender);
        const detail::LaterFields later{.attributes = job.attributes,
                                        .kind = job.kind,
                                        .max_attempts = job.max_attempts,
                                        .key = job.key,
                                        .ticket = job.ticket,
                                        .group = job.group,
                                        .ledger_attempt = job.ledger_attempt,
                                        .beyond = job.later};
        packer.pack_array(detail::count_fields(later));
        packer.pack(job.version);
        pack_text(packer, job.id);
        packer.pack(job.attempt);
        packer.pack(milliseconds_of(job.first_enqueued_at));
        packer.pack(milliseconds_of(job.enqueued_at));
        pack_time(packer, job.first_failed_at);
        pack_time(packer, job.expires_at);
        pack_text(packer, detail::cut_text(error, detail::longest_last_error));
        pack_text(packer, job.unique_id);
        pack_text(packer, job.unique_queue);
        packer.pack_bin(static_cast<std::uint32_t>(payload.size()));
        packer.pack_bin_body(payload.data(), static_cast<std::uint32_t>(payload.size()));
        detail::append_later_fields(later, out);
    }

    /// Throws std::invalid_argument when the bytes are no envelope; what Codec<T> throws.
    static Job<T> decode(std::string_view bytes, Scratch& scratch) requires MessageDecodable<T> {
        auto& memory = scratch.as<detail::JobScratch>();
        detail::MsgpackReader reader(bytes, memory.zone);
        detail::EnvelopeReader envelope(reader);
        const std::uint64_t version = envelope.unsigned_number(
            1, std::numeric_limits<std::uint64_t>::max(), "an unknown version");
        std::string id(envelope.text(1, detail::longest_job_id, "no id"));
        const auto attempt = static_cast<int>(
            envelope.unsigned_number(1, std::numeric_limits<int>::max(), "no attempt"));
        const JobTime first_enqueued_at = envelope.time();
        const JobTime enqueued_at = envelope.time();
        const std::optional<JobTime> first_failed_at = envelope.optional_time();
        const std::optional<JobTime> expires_at = envelope.optional_time();
        std::string last_error(
            envelope.text(0, detail::longest_last_error, "no last_error or a longer one"));
        std::string unique_id(
            envelope.text(0, detail::longest_job_id, "no unique_id or a longer one"));
        std::string unique_queue(envelope.text(0, bytes.size(), "no unique_queue"));
        detail::check_unique_queue(unique_queue);
        const std::string_view payload = envelope.bytes("no payload");
        Job<T> job{.id = std::move(id),
                   .attempt = attempt,
                   .first_enqueued_at = first_enqueued_at,
                   .enqueued_at = enqueued_at,
                   .first_failed_at = first_failed_at,
                   .expires_at = expires_at,
                   .last_error = std::move(last_error),
                   .unique_id = std::move(unique_id),
                   .unique_queue = std::move(unique_queue),
                   .payload = decode_payload(payload, memory),
                   .version = version};
        if (envelope.has_more()) {
            envelope.read_attributes(job.attributes, job.ledger_attempt);
            envelope.read_choices(job.kind, job.max_attempts);
            envelope.read_order(job.key, job.ticket);
            envelope.read_group(job.group);
            envelope.read_rest(job.later);
        }
        return job;
    }

  private:
    using Part = detail::JobScratch::Part;

    static T decode_payload(std::string_view bytes, detail::JobScratch& memory) {
        memory.decoding = Part::payload;
        T payload = detail::decode<T>(bytes, memory.payload);
        memory.decoding = Part::envelope;
        return payload;
    }

    static std::int64_t milliseconds_of(JobTime time) { return time.time_since_epoch().count(); }

    template <class Packer>
    static void pack_time(Packer& packer, std::optional<JobTime> time) {
        if (time) {
            packer.pack(milliseconds_of(*time));
        } else {
            packer.pack_nil();
        }
    }
    template <class Packer>
    static void pack_text(Packer& packer, std::string_view text) {
        packer.pack_str(static_cast<std::uint32_t>(text.size()));
        packer.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
    }
};

} // namespace orizuru
