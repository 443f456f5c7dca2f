// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Included before all else, it makes of Linux what other systems are: the library takes its POSIX
// form, and the standard library waits by the system's clock, as with musl and glibc before 2.30.

#define ORIZURU_POSIX

#include <version>

#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
