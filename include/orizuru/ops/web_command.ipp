// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of web_command.hpp.

#include <orizuru/ops/dashboard.hpp>
#include <orizuru/ops/serve.hpp>

#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

namespace orizuru {

ORIZURU_INLINE void add_web_command(Cli& cli, DashboardOptions options) {
    const auto run = [defaults = std::move(options)](const Cli::Call& call) {
        DashboardOptions chosen = defaults;
        ServeOptions serving;
        std::string address = "127.0.0.1:8080";
        for (auto at = call.arguments.begin(); at != call.arguments.end(); ++at) {
            if (*at == "--read-only") {
                chosen.read_only = true;
            } else if (*at == "--no-payloads") {
                chosen.show_payloads = false;
            } else if (*at == "--expose") {
                serving.expose = true;
            } else if (*at == "--host" && at + 1 != call.arguments.end()) {
                chosen.hosts.push_back(*++at);
            } else if (at->starts_with('-')) {
                // Behind its name it may have a password, in an address of Redis.
                const std::string name = at->substr(0, at->find_first_of("=:/@"));
                throw std::invalid_argument("web: what is " + name + "?");
            } else {
                address = *at;
            }
        }
        Dashboard dashboard(call.endpoint, chosen);
        serving.on_listening = [&](const std::string& origin) {
            // Nobody could open a page whose token went nowhere.
            if (!(call.out << dashboard.link(origin) << std::endl) && chosen.token.empty() &&
                !chosen.authorize) {
                throw std::runtime_error("the page's link could not be written");
            }
        };
        serve(dashboard, address, call.stop, serving);
    };
    cli.command("web",
                "Serve a web page\n"
                "Arguments:\n"
                "  ADDRESS        127.0.0.1:8080 if not given; or the path of a Unix socket\n"
                "  --read-only    No steps: the page only shows\n"
                "  --no-payloads  No payloads on the page\n"
                "  --expose       Also for other machines: ADDRESS may be one that they reach\n"
                "  --host NAME    A name by which browsers may ask for the page; again for more",
                run);
}

} // namespace orizuru
