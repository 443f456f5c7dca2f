// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The program `orizuru`: looks into queues, and tidies them. Yours may show payloads in a form of
// their own, by Cli::formatter.
//
//     orizuru --help

#include <orizuru/ops/cli.hpp>
#if WITH_TLS
#include <orizuru/tls.hpp>
#endif
#if WITH_WEB
#include <orizuru/ops/web_command.hpp>
#endif

int main(int argc, char** argv) {
#if WITH_TLS
    orizuru::Cli cli(orizuru::tls_endpoint);
#else
    orizuru::Cli cli;
#endif
#if WITH_WEB
    orizuru::add_web_command(cli);
#endif
    return cli.run(argc, argv);
}
