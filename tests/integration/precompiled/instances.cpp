// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/orizuru.hpp>
#include <orizuru/worker.hpp>

template class orizuru::Consumer<orizuru::Raw>;
template class orizuru::MessageGuard<orizuru::Raw>;
template class orizuru::Producer<orizuru::Raw>;
template class orizuru::Consumer<orizuru::Job<orizuru::Raw>>;
template class orizuru::MessageGuard<orizuru::Job<orizuru::Raw>>;
template class orizuru::Producer<orizuru::Job<orizuru::Raw>>;
template class orizuru::detail::JobBatchQueue<orizuru::Raw>;
template class orizuru::detail::FetchingQueue<orizuru::Raw>;
template class orizuru::detail::SingleJobQueue<orizuru::Raw>;
template class orizuru::detail::JobSettling<orizuru::Raw>;
