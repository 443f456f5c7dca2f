// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// libpq's connection in one of libpqxx, for what libpqxx does not pass on.

#include <libpq-fe.h>
#include <pqxx/pqxx>

namespace orizuru::detail {

#if !defined(PQXX_VERSION_MAJOR) || PQXX_VERSION_MAJOR < 7
using PqxxHandleOwner = pqxx::connection_base;
#else
using PqxxHandleOwner = pqxx::connection;
#endif

// libpqxx 6 to 8 keep libpq's handle in this private member. An explicit instantiation may name it;
// what they offer instead is another type of connection (6), or one that is not set up (since 7.7).
PGconn* handle_of(const PqxxHandleOwner& connection) noexcept;
template <auto Handle>
struct PqxxHandle {
    friend PGconn* handle_of(const PqxxHandleOwner& connection) noexcept {
        // Since libpqxx 8 it is a void*.
        return static_cast<PGconn*>(static_cast<void*>(connection.*Handle));
    }
};
template struct PqxxHandle<&PqxxHandleOwner::m_conn>;

} // namespace orizuru::detail
