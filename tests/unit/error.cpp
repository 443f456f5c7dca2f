// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/error.hpp>
#include <orizuru/producer.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace error_test {

using namespace orizuru;

// An exception that throws while it is copied ends the program.
template <class T>
constexpr bool is_error = std::is_base_of_v<Error, T>&& std::is_nothrow_copy_constructible_v<T> &&
                          !std::is_base_of_v<std::logic_error, T>;

static_assert(std::is_base_of_v<std::runtime_error, Error>);
static_assert(is_error<ConnectionError> && is_error<ReplyError> && is_error<ProtocolError> &&
              is_error<EncodeError> && is_error<DecodeError>);
// What a caller would do differently is a type of its own: none is another's base.
static_assert(!std::is_base_of_v<ConnectionError, ProtocolError>);
static_assert(!std::is_base_of_v<ReplyError, ProtocolError>);

TEST_CASE("a ConnectionError is not in doubt unless it is said to be") {
    CHECK_FALSE(ConnectionError("x").in_doubt());
    CHECK_FALSE(ConnectionError("x", ConnectionError::Outcome::not_run).in_doubt());
    CHECK(ConnectionError("x", ConnectionError::Outcome::in_doubt).in_doubt());
}

TEST_CASE("a ReplyError carries Redis' code beside the text") {
    const ReplyError error("OOM", "LPUSH 'mail': OOM command not allowed");
    CHECK(error.code() == "OOM");
    CHECK(error.what() == std::string("LPUSH 'mail': OOM command not allowed"));
}

TEST_CASE("a DecodeError's payload has all its bytes and lives as long as a copy of the error") {
    using namespace std::string_literals;
    auto error = std::make_unique<DecodeError>("broken", "a\0b"s);
    const DecodeError copy = *error;
    CHECK(error->payload().data() == copy.payload().data());
    error.reset();
    CHECK(copy.payload() == "a\0b"s);
}

TEST_CASE("the count of pushed messages is 0 until it is set, and is caught with any error") {
    CHECK(EncodeError("x").pushed() == 0);
    try {
        ConnectionError error("x");
        orizuru::detail::PushCount::set(error, 7);
        throw error;
    } catch (const Error& error) {
        CHECK(error.pushed() == 7);
    }
}

} // namespace error_test
