// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A malloc that counts: a program's own replaces the C library's everywhere.

#include "support/counted_memory.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>

using orizuru::test::CountedMemory;

extern "C" {
// glibc's own names.
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) { return CountedMemory::came(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) {
    return CountedMemory::came(__libc_calloc(count, size));
}
void* realloc(void* memory, std::size_t size) {
    CountedMemory::remove(memory);
    void* const moved = __libc_realloc(memory, size);
    // A refusal leaves the memory as it was.
    if (moved == nullptr && size != 0) {
        CountedMemory::add(memory);
        return nullptr;
    }
    return CountedMemory::came(moved);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    return CountedMemory::came(__libc_memalign(alignment, size));
}
void* memalign(std::size_t alignment, std::size_t size) {
    return CountedMemory::came(__libc_memalign(alignment, size));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
    *memory = CountedMemory::came(__libc_memalign(alignment, size));
    return *memory != nullptr ? 0 : ENOMEM;
}
void free(void* memory) {
    CountedMemory::remove(memory);
    __libc_free(memory);
}
}
