// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Options of a Producer.

#include <cstdint>

namespace orizuru {

struct ProducerOptions {
    /// push() refuses larger payloads with EncodeError before it sends anything. In bytes, up to
    /// 512 MiB; keep it at or below the consumers' max_payload.
    std::int64_t max_payload = std::int64_t{16} << 20;
};

} // namespace orizuru
