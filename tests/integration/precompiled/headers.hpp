// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Precompiled for the program of the integration tests. Each source includes what it uses all the
// same, and compiles without this.

#include "integration/core/fault_fixture.hpp"
#include "integration/worker/worker_fixture.hpp"
#include "support/fake_server.hpp"
#include "support/proxy.hpp"

#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

#include <doctest/doctest.h>

// Nearly all use these: made once, in instances.cpp.
extern template class orizuru::Consumer<orizuru::Raw>;
extern template class orizuru::MessageGuard<orizuru::Raw>;
extern template class orizuru::Producer<orizuru::Raw>;
extern template class orizuru::Consumer<orizuru::Job<orizuru::Raw>>;
extern template class orizuru::MessageGuard<orizuru::Job<orizuru::Raw>>;
extern template class orizuru::Producer<orizuru::Job<orizuru::Raw>>;
extern template class orizuru::detail::JobBatchQueue<orizuru::Raw>;
extern template class orizuru::detail::FetchingQueue<orizuru::Raw>;
extern template class orizuru::detail::SingleJobQueue<orizuru::Raw>;
extern template class orizuru::detail::JobSettling<orizuru::Raw>;
