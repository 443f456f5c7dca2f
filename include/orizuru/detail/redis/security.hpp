// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Encrypts the connections of an endpoint; tls.hpp makes it. Errors name `address`, the
// connection's: ConnectionError when the connection broke, ProtocolError when the peer does not
// speak TLS, ReplyError with the code TLS when one side refuses the other's certificate.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// The encryption of a connected, non-blocking socket, which it does not own. One thread at a time.
class SecureChannel {
  public:
    enum class Arrived : std::uint8_t { nothing, data, end };

    SecureChannel() = default;
    SecureChannel(const SecureChannel&) = delete;
    SecureChannel& operator=(const SecureChannel&) = delete;
    virtual ~SecureChannel() = default;

    /// Goes on with the handshake; true when done. Else call it again when ready for `awaited()`.
    virtual bool shake_hands() = 0;
    [[nodiscard]] virtual short awaited() const noexcept = 0;

    /// Sends bytes; returns how many the socket took, 0 when it takes none now. Then the server has
    /// seen none of them, and the next call must begin with them.
    virtual std::size_t send(std::string_view bytes) = 0;
    /// Reads into the buffer; returns how many bytes. After 0 the socket tells of all that comes.
    virtual std::size_t receive(char* buffer, std::size_t size) = 0;
    /// Returns what `receive` would meet now.
    [[nodiscard]] virtual Arrived arrived() noexcept = 0;
};

/// Shared by all connections of an endpoint. Any thread.
class Security {
  public:
    Security() = default;
    Security(const Security&) = delete;
    Security& operator=(const Security&) = delete;
    virtual ~Security() = default;

    /// For a socket that is connected to `host`, whose name the peer has to prove.
    [[nodiscard]] virtual std::unique_ptr<SecureChannel> open(int fd, const std::string& host,
                                                              const std::string& address) const = 0;
};

} // namespace orizuru::detail
