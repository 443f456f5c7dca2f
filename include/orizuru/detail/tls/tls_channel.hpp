// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// TLS on a connected socket, by OpenSSL. Its own BIO sends without SIGPIPE.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/system.hpp>
#include <orizuru/detail/redis/security.hpp>
#include <orizuru/error.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace orizuru::detail {

struct TlsFree {
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
    void operator()(BIO_METHOD* method) const noexcept { BIO_meth_free(method); }
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
template <class T>
using TlsPtr = std::unique_ptr<T, TlsFree>;

/// An error of OpenSSL in words.
[[nodiscard]] [[gnu::cold]] inline std::string tls_reason(unsigned long error) {
    if (ERR_GET_LIB(error) == ERR_LIB_SYS) {
        return std::generic_category().message(ERR_GET_REASON(error));
    }
    const char* const words = ERR_reason_error_string(error);
    return words != nullptr ? words : joined({"error ", Digits(error)});
}

class TlsChannel final : public SecureChannel {
  public:
    /// The socket's methods, which all channels of a context share.
    [[nodiscard]] static TlsPtr<BIO_METHOD> methods();

    /// `name`: for the error when the server's certificate is for another one.
    TlsChannel(SSL_CTX& context, BIO_METHOD& methods, int fd, std::string name, std::string address)
        : m_socket{fd},
          m_ssl(SSL_new(&context)),
          m_name(std::move(name)),
          m_address(std::move(address)) {
        TlsPtr<BIO> bio(BIO_new(&methods));
        if (!m_ssl || !bio) {
            throw std::bad_alloc();
        }
        BIO_set_data(bio.get(), &m_socket);
        BIO_set_init(bio.get(), 1);
        BIO_up_ref(bio.get());
        SSL_set0_rbio(m_ssl.get(), bio.get());
        SSL_set0_wbio(m_ssl.get(), bio.release());
        SSL_set_connect_state(m_ssl.get());
    }

    [[nodiscard]] SSL& ssl() noexcept { return *m_ssl; }

    bool shake_hands() override {
        return run("the TLS handshake", [&] { return SSL_do_handshake(m_ssl.get()); }) > 0;
    }
    [[nodiscard]] short awaited() const noexcept override {
        return SSL_want_write(m_ssl.get()) ? POLLOUT : POLLIN;
    }
    std::size_t send(std::string_view bytes) override {
        const int size = most(bytes.size());
        return run("sending", [&] { return SSL_write(m_ssl.get(), bytes.data(), size); });
    }
    std::size_t receive(char* buffer, std::size_t size) override {
        return run("receiving", [&] { return SSL_read(m_ssl.get(), buffer, most(size)); });
    }
    [[nodiscard]] Arrived arrived() noexcept override {
        char byte = 0;
        ERR_clear_error();
        const int result = SSL_peek(m_ssl.get(), &byte, 1);
        return result > 0 ? Arrived::data : waits(result) ? Arrived::nothing : Arrived::end;
    }

  private:
    struct Socket {
        int fd;
        int error = 0;      ///< errno of its failure
        bool ended = false; ///< the peer has closed it
    };

    static int most(std::size_t size) noexcept {
        constexpr std::size_t largest = std::numeric_limits<int>::max();
        return static_cast<int>(size < largest ? size : largest);
    }
    static Socket& socket_of(BIO* bio) noexcept { return *static_cast<Socket*>(BIO_get_data(bio)); }

    /// Repeats a call of the socket that a signal ended.
    template <class Call>
    static int transfer(BIO* bio, int retry, Call call) noexcept {
        BIO_clear_retry_flags(bio);
        ssize_t count = -1;
        do {
            count = call(socket_of(bio).fd);
        } while (count < 0 && errno == EINTR);
        if (count < 0 && system::would_block(errno)) {
            BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
        } else if (count < 0) {
            socket_of(bio).error = errno;
        }
        return static_cast<int>(count);
    }

    [[nodiscard]] bool waits(int result) const noexcept {
        const int error = SSL_get_error(m_ssl.get(), result);
        return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    }

    // OpenSSL's queue of errors belongs to the thread: what others left there must not be taken for
    // an error of this call.
    template <class Call>
    std::size_t run(std::string_view doing, Call call) {
        ERR_clear_error();
        const int result = call();
        if (result > 0) {
            return static_cast<std::size_t>(result);
        }
        if (waits(result)) {
            return 0;
        }
        hear_alert();
        fail(doing);
    }
    // A server that refuses a certificate says so and closes the connection: sending may fail
    // before its words are read.
    [[gnu::cold]] void hear_alert() noexcept {
        if (ERR_peek_error() == 0 && m_socket.error != 0) {
            char byte = 0;
            SSL_peek(m_ssl.get(), &byte, 1);
        }
    }

    [[noreturn]] [[gnu::cold]] void fail(std::string_view doing) const;
    [[noreturn]] [[gnu::cold]] void refuse(std::string_view reason) const {
        throw ReplyError("TLS", joined({m_address, ": ", reason}));
    }

    Socket m_socket;
    TlsPtr<SSL> m_ssl;
    std::string m_name;
    std::string m_address;
};

inline TlsPtr<BIO_METHOD> TlsChannel::methods() {
    TlsPtr<BIO_METHOD> methods(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE"));
    if (!methods) {
        throw std::bad_alloc();
    }
    BIO_meth_set_write(methods.get(), [](BIO* bio, const char* data, int size) {
        return transfer(bio, BIO_FLAGS_WRITE, [=](int fd) {
            return system::send(fd, data, static_cast<std::size_t>(size));
        });
    });
    BIO_meth_set_read(methods.get(), [](BIO* bio, char* data, int size) {
        const int count = transfer(bio, BIO_FLAGS_READ, [=](int fd) {
            return ::recv(fd, data, static_cast<std::size_t>(size), 0);
        });
        socket_of(bio).ended = count == 0;
        return count;
    });
    BIO_meth_set_ctrl(methods.get(), [](BIO*, int command, long, void*) -> long {
        return command == BIO_CTRL_FLUSH ? 1 : 0;
    });
    return methods;
}

// OpenSSL reports the end of a stream, a failed socket and an alert in different ways from version
// to version, so what the socket said comes first.
inline void TlsChannel::fail(std::string_view doing) const {
    const unsigned long error = ERR_peek_error();
    const int reason = ERR_GET_REASON(error);
    if (const long verdict = SSL_get_verify_result(m_ssl.get()); verdict != X509_V_OK) {
        refuse(joined({"the server's certificate is refused: ",
                       X509_verify_cert_error_string(verdict), ", expected name '", m_name, "'"}));
    }
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET) {
        refuse(joined({"the server refuses the TLS connection: ", tls_reason(error)}));
    }
    if (m_socket.error != 0) {
        throw ConnectionError(joined(
            {m_address, ": ", doing, ": ", std::generic_category().message(m_socket.error)}));
    }
    const bool shakes = SSL_in_init(m_ssl.get()) != 0;
    if (m_socket.ended || error == 0) {
        throw ConnectionError(joined({m_address, ": the server closed the connection",
                                      shakes ? " in the TLS handshake" : ""}));
    }
    throw ProtocolError(joined({m_address, ": ", doing, ": ", tls_reason(error),
                                shakes ? "; does the port speak TLS?" : ""}));
}

} // namespace orizuru::detail
