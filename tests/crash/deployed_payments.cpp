// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A process of rolling_payments.cpp, compiled with an older version of the library. With the word
// "schema" and an address it makes the tables there.

#include "crash/support/payment_work.hpp"
#include "crash/support/process.hpp"

#include <orizuru/postgres/schema.hpp>

#include <cstdlib>
#include <string_view>

int main(int count, char** arguments) {
    using namespace orizuru::test;
    if (count == 3 && std::string_view(arguments[1]) == "schema") {
        orizuru::Schema(orizuru::Database(arguments[2])).apply();
        return EXIT_SUCCESS;
    }
    return main_of_processes(
        count, arguments, [](const Work& work) { return PaymentWork(work).run(); },
        [] { return EXIT_FAILURE; });
}
