// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The certificates and rules of an endpoint's TLS connections.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/redis/security.hpp>
#include <orizuru/detail/tls/tls_channel.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace orizuru::detail {

class TlsContext final : public Security {
  public:
    /// Reads the files. Throws std::invalid_argument that names `address`, the file and the reason.
    TlsContext(const TlsFiles& files, std::string_view address)
        : m_context(SSL_CTX_new(TLS_client_method())),
          m_methods(TlsChannel::methods()),
          m_name(files.sni) {
        if (!m_context) {
            throw std::bad_alloc();
        }
        SSL_CTX* const context = m_context.get();
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
        SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        // The bytes that a stream has to send may move in memory meanwhile.
        SSL_CTX_set_mode(context,
                         SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
        // An encrypted key must not ask the terminal for its password.
        SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
        const auto need = [&](std::string_view key, const std::string& file, auto use) {
            ERR_clear_error();
            if (!file.empty() && use(file.c_str()) != 1) {
                refuse(address, joined({key, " '", file, "': ", tls_reason(ERR_peek_error())}));
            }
        };
        need("cacert", files.cacert, [&](const char* file) {
            return SSL_CTX_load_verify_locations(context, file, nullptr);
        });
        need("cacertdir", files.cacertdir, [&](const char* folder) {
            return SSL_CTX_load_verify_locations(context, nullptr, folder);
        });
        // OpenSSL looks into a folder only when it needs it.
        if (!files.cacertdir.empty() && ::access(files.cacertdir.c_str(), R_OK | X_OK) != 0) {
            refuse(address, joined({"cacertdir '", files.cacertdir,
                                    "': ", std::generic_category().message(errno)}));
        }
        if (files.cacert.empty() && files.cacertdir.empty()) {
            SSL_CTX_set_default_verify_paths(context);
        }
        if (files.cert.empty() != files.key.empty()) {
            refuse(address, "cert and key belong together");
        }
        need("cert", files.cert,
             [&](const char* file) { return SSL_CTX_use_certificate_chain_file(context, file); });
        need("key", files.key, [&](const char* file) {
            return SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM);
        });
    }

    [[nodiscard]] std::unique_ptr<SecureChannel> open(int fd, const std::string& host,
                                                      const std::string& address) const override {
        std::string name = m_name.empty() ? host : m_name;
        if (name.ends_with('.')) { // of a name from the root, which certificates do not have
            name.pop_back();
        }
        auto channel = std::make_unique<TlsChannel>(*m_context, *m_methods, fd, name, address);
        SSL* const ssl = &channel->ssl();
        X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl);
        X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) != 1 &&
            (SSL_set1_host(ssl, name.c_str()) != 1 ||
             // SSL_set_tlsext_host_name, a macro with an old cast
             SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) !=
                 1)) {
            throw std::bad_alloc();
        }
        return channel;
    }

  private:
    [[noreturn]] [[gnu::cold]] static void refuse(std::string_view address,
                                                  std::string_view reason) {
        throw std::invalid_argument(joined({"Redis address '", address, "': ", reason}));
    }

    TlsPtr<SSL_CTX> m_context;
    TlsPtr<BIO_METHOD> m_methods;
    std::string m_name;
};

} // namespace orizuru::detail
