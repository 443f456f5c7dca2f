// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The actions and answers of a process that may be killed at any moment: a file of fixed records,
// each there as soon as it is written. With a record before and after each operation, only the
// doubts are left that a user of the library has, too.

#pragma once

#include "support/ledger.hpp"
#include "support/posix.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace orizuru::test {

enum class Step : std::uint8_t {
    pushing,    ///< about to push
    buffering,  ///< about to push it by a producer that repeats pushes in doubt
    pushed,     ///< confirmed
    not_pushed, ///< certainly not
    handed_out,
    settling,    ///< about to settle
    settled,     ///< it returned true
    not_settled, ///< it returned false: others have taken over the message
    refused      ///< Redis took no writes
};

/// CLOCK_MONOTONIC, the same in all processes, in nanoseconds.
[[nodiscard]] inline std::int64_t monotonic_time() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// No record crosses a page of the file, so a process that is killed leaves none half written.
struct alignas(32) Record {
    std::uint64_t message = 0;
    Step step = Step::pushing;
    Place place = Place::waiting; ///< where a settlement moves it
    /// For handed_out: not later than the request to Redis. For settled: not before it ran.
    std::int64_t time = monotonic_time();
};

/// The records of one process after the other.
template <class T>
class JournalOf {
  public:
    explicit JournalOf(const std::string& path)
        : m_file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
        if (!m_file) {
            throw_errno("open " + path);
        }
    }

    void write(const T& record) { write(std::span<const T>(&record, 1)); }
    void write(std::span<const T> records) {
        const auto bytes = static_cast<ssize_t>(records.size_bytes());
        if (::write(m_file.get(), records.data(), records.size_bytes()) != bytes) {
            throw_errno("write a journal");
        }
    }

    /// In bytes.
    [[nodiscard]] static std::uintmax_t size(const std::string& path) {
        std::error_code missing;
        const auto bytes = std::filesystem::file_size(path, missing);
        return missing ? 0 : bytes;
    }
    [[nodiscard]] static std::vector<T> read(const std::string& path) {
        std::vector<T> records(size(path) / sizeof(T));
        std::ifstream(path, std::ios::binary)
            .read(reinterpret_cast<char*>(records.data()),
                  static_cast<std::streamsize>(records.size() * sizeof(T)));
        return records;
    }

  private:
    Fd m_file;
};

using Journal = JournalOf<Record>;

/// The payload of a message is its number.
[[nodiscard]] inline std::uint64_t number_in(std::string_view payload) {
    std::uint64_t number = 0;
    std::from_chars(payload.data(), payload.data() + payload.size(), number);
    return number;
}

inline void tell(Ledger& ledger, const Record& record) {
    const std::string message = std::to_string(record.message);
    switch (record.step) {
    case Step::buffering:
        ledger.may_repeat(message);
        [[fallthrough]];
    case Step::pushing:
        return ledger.pushing(message);
    case Step::pushed:
        return ledger.pushed(message);
    case Step::not_pushed:
        return ledger.not_pushed(message);
    case Step::handed_out:
        return ledger.handed_out(message);
    case Step::settling:
        return ledger.settling(message, record.place);
    case Step::settled:
        return ledger.settled(message, record.place);
    case Step::not_settled:
    case Step::refused:
        return ledger.not_settled(message, record.place);
    }
}

} // namespace orizuru::test
