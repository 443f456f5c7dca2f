// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// That the headers beside this compiled and linked is the test.

int main() {}
