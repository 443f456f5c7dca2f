// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

#include "crash/support/fault_program.hpp"

int main(int count, char** arguments) { return orizuru::test::FaultProgram::run(count, arguments); }
