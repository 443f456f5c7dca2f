// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include <orizuru/orizuru.hpp>

template class orizuru::Consumer<orizuru::Raw>;
template class orizuru::MessageGuard<orizuru::Raw>;
template class orizuru::Producer<orizuru::Raw>;
