// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The main function of every doctest binary. Doctest itself calls it a success when its filters
// leave no test case to run; here that is a failure.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

namespace {

bool ran_none = false;

struct Counting : doctest::IReporter {
    explicit Counting(const doctest::ContextOptions& /*options*/) {}

    void test_run_end(const doctest::TestRunStats& stats) override {
        ran_none = stats.numTestCasesPassingFilters == 0;
    }

    void report_query(const doctest::QueryData& /*query*/) override {}
    void test_run_start() override {}
    void test_case_start(const doctest::TestCaseData& /*test_case*/) override {}
    void test_case_reenter(const doctest::TestCaseData& /*test_case*/) override {}
    void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
    void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
    void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData& /*data*/) override {}
    void log_message(const doctest::MessageData& /*data*/) override {}
    void test_case_skipped(const doctest::TestCaseData& /*test_case*/) override {}
};
REGISTER_LISTENER("counting", 1, Counting);

} // namespace

int main(int argc, char** argv) {
    const int status = doctest::Context(argc, argv).run();
    if (ran_none) {
        std::cerr << "No test case matches.\n";
        return EXIT_FAILURE;
    }
    return status;
}
