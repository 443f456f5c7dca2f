// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// How the definitions that are no templates come into a program. By default each header brings its
// own, inline. With ORIZURU_SEPARATE_COMPILATION, defined for the whole program, no header does,
// and one translation unit of the program includes <orizuru/src.hpp>, which has them all.

#ifdef ORIZURU_SEPARATE_COMPILATION
#define ORIZURU_INLINE
#else
#define ORIZURU_INLINE inline
#endif
