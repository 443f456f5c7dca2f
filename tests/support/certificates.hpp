// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The certificates that certificates.sh makes, and redis-servers that use them.

#pragma once

#include "support/posix.hpp"
#include "support/redis_server.hpp"

#include <fcntl.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

/// Files of the process, made at the first use.
class Certificates {
  public:
    static const Certificates& made() {
        static const Certificates instance;
        return instance;
    }

    [[nodiscard]] std::string path(std::string_view file) const {
        return m_folder.path() + '/' + std::string(file);
    }
    /// The arguments of a redis-server with this certificate, which trusts `ca`. `clients` says
    /// whether they need a certificate: "yes" or "no".
    [[nodiscard]] std::vector<std::string> of_server(const std::string& name,
                                                     const std::string& clients = "no") const {
        return {
            "--tls-cert-file",    path(name + ".pem"), "--tls-key-file",     path(name + ".key"),
            "--tls-ca-cert-file", path("ca.pem"),      "--tls-auth-clients", clients};
    }
    /// The same as lines of a configuration.
    [[nodiscard]] std::string lines_of_server(const std::string& name) const {
        std::string lines;
        const std::vector<std::string> arguments = of_server(name);
        for (std::size_t i = 0; i < arguments.size(); i += 2) {
            lines += arguments[i].substr(2) + ' ' + arguments[i + 1] + '\n';
        }
        return lines;
    }
    /// The query of an address whose server has a certificate by `ca`.
    [[nodiscard]] std::string trusting() const { return "?cacert=" + path("ca.pem"); }

  private:
    Certificates() {
        const Fd no_input{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
        int status = 0;
        wait_for(spawn({SOURCE_ROOT "/tests/support/certificates.sh", m_folder.path()},
                       no_input.get(), path("log")),
                 0, &status);
        if (status != 0) {
            throw std::runtime_error("certificates.sh failed: " + contents_of(path("log")));
        }
    }

    TempDir m_folder;
};

/// A redis-server at rediss://127.0.0.1, whose name is right.
inline RedisServer tls_server() {
    return RedisServer(Certificates::made().of_server("right"), RedisServer::Listen::tls);
}

} // namespace orizuru::test
