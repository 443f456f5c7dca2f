// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// What can be chosen for a Producer.

#include <cstdint>

namespace orizuru {

struct ProducerOptions {
    /// Larger payloads are refused with EncodeError before anything is sent. In bytes, up to
    /// 512 MiB; keep it at or below that of the consumers.
    std::int64_t max_payload = std::int64_t{16} << 20;
};

} // namespace orizuru
