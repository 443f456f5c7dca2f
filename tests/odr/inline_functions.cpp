// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A part of the library, compiled with all its inline functions, as for a measurement of coverage:
// none may use what only another header defines.

#include <orizuru/consumer.hpp>

int main() {}
