// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Data that travels beside the payload of a job (job.hpp): a trace context, a tenant, a user.

#include <functional>
#include <map>
#include <string>

namespace orizuru {

/// At most 64 attributes, with at most 16,384 bytes of names and values together; no name is empty.
using JobAttributes = std::map<std::string, std::string, std::less<>>;

} // namespace orizuru
