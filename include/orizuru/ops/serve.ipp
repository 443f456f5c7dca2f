// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definition of serve.hpp.

#include <orizuru/detail/base/joined.hpp>
#include <orizuru/detail/base/numbers.hpp>
#include <orizuru/detail/base/standard_descriptors.hpp>
#include <orizuru/detail/base/uri.hpp>
#include <orizuru/detail/ops/web/http_server.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace orizuru {

namespace detail::web {

using Tcp = boost::asio::ip::tcp;
using Local = boost::asio::local::stream_protocol;

/// Somebody may have taken it for the place of Redis' address, with a password.
[[nodiscard]] inline std::string shown_address(const std::string& address) {
    const bool path = address.starts_with('/') || address.starts_with("unix:///");
    const bool doubtful =
        address.find('@') != std::string::npos || address.find("://") < address.size();
    return doubtful && !path ? redacted(address) : address;
}

[[noreturn]] inline void refuse_listening(const std::string& address, std::string_view reason) {
    throw std::invalid_argument(
        joined({"cannot serve at '", shown_address(address), "': ", reason}));
}

/// Opens, binds and listens; `between` runs before anybody can connect.
template <class Protocol, class Between>
[[nodiscard]] boost::asio::basic_socket_acceptor<Protocol>
listen(boost::asio::io_context& io, const typename Protocol::endpoint& endpoint,
       const std::string& address, Between between) {
    boost::asio::basic_socket_acceptor<Protocol> acceptor(io);
    boost::system::error_code failure;
    const auto throw_failure = [&] {
        if (failure) {
            throw std::system_error(failure.value(), std::system_category(),
                                    joined({"cannot serve at '", address, "'"}));
        }
    };
    acceptor.open(endpoint.protocol(), failure);
    throw_failure();
    acceptor.set_option(boost::asio::socket_base::reuse_address(true), failure);
    throw_failure();
    acceptor.bind(endpoint, failure);
    throw_failure();
    between();
    acceptor.listen(boost::asio::socket_base::max_listen_connections, failure);
    throw_failure();
    return acceptor;
}

/// Throws std::invalid_argument.
[[nodiscard]] inline Tcp::endpoint tcp_endpoint(const std::string& address,
                                                const ServeOptions& options) {
    const auto colon = address.rfind(':');
    const auto port =
        whole_number(colon == std::string::npos ? std::string_view()
                                                : std::string_view(address).substr(colon + 1));
    std::string host = address.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string::npos) {
        refuse_listening(address, "an IPv6 address goes in brackets");
    }
    boost::system::error_code failure;
    const auto ip =
        boost::asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, failure);
    if (!port || *port > 65535 || failure) {
        refuse_listening(address, "write 127.0.0.1:8080, or the path of a socket");
    }
    if (!ip.is_loopback() && !options.expose) {
        refuse_listening(address, "other machines reach it; if they shall, say so: expose");
    }
    return {ip, static_cast<std::uint16_t>(*port)};
}

/// As browsers write it.
[[nodiscard]] inline std::string host_of(const boost::asio::ip::address& address) {
    return address.is_v6() ? joined({"[", address.to_string(), "]"}) : address.to_string();
}

/// A file of a server that has ended.
inline void remove_stale_socket(boost::asio::io_context& io, const std::string& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) {
        return;
    }
    Local::socket socket(io);
    boost::system::error_code failure;
    socket.connect(Local::endpoint(path), failure);
    if (failure == boost::asio::error::connection_refused) {
        ::unlink(path.c_str());
    }
}

/// Removes the file of a socket in the end.
struct SocketFile {
    explicit SocketFile(std::string path) : m_path(std::move(path)) {}
    SocketFile(const SocketFile&) = delete;
    SocketFile& operator=(const SocketFile&) = delete;
    ~SocketFile() { ::unlink(m_path.c_str()); }

  private:
    std::string m_path;
};

template <class Protocol>
void serve_on(boost::asio::io_context& io, boost::asio::basic_socket_acceptor<Protocol> acceptor,
              Dashboard& dashboard, const std::string& origin, const std::stop_token& stop,
              const ServeOptions& options) {
    const HttpServer<Protocol> server(io, std::move(acceptor), dashboard, options);
    const std::stop_callback stopping(stop, [&io] { io.stop(); });
    if (options.on_listening) {
        options.on_listening(origin);
    }
    io.run();
}

} // namespace detail::web

ORIZURU_INLINE void serve(Dashboard& dashboard, const std::string& address,
                          const std::stop_token& stop, const ServeOptions& options) {
    using namespace std::chrono_literals;
    if (options.request_timeout < 10ms || options.request_timeout > 1min) {
        throw std::invalid_argument("ServeOptions::request_timeout must be 10 ms to 1 min");
    }
    if (options.connections < 1 || options.connections > 10'000) {
        throw std::invalid_argument("ServeOptions::connections must be 1 to 10,000");
    }
    detail::take_standard_descriptors();
    boost::asio::io_context io(1);
    constexpr std::string_view scheme = "unix://";
    const std::string path = address.starts_with(scheme) ? address.substr(scheme.size()) : address;
    if (path.starts_with('/')) {
        constexpr std::size_t longest_path = 107;
        if (path.size() > longest_path) {
            detail::web::refuse_listening(address, "the path has more than 107 bytes");
        }
        detail::web::remove_stale_socket(io, path);
        std::optional<detail::web::SocketFile> file;
        auto acceptor = detail::web::listen<detail::web::Local>(io, path, address, [&] {
            file.emplace(path);
            ::chmod(path.c_str(), S_IRUSR | S_IWUSR);
        });
        detail::web::serve_on(io, std::move(acceptor), dashboard, "http://localhost", stop,
                              options);
        return;
    }
    const auto endpoint = detail::web::tcp_endpoint(address, options);
    const bool by_name = endpoint.address().is_unspecified();
    if (by_name && dashboard.first_host().empty()) {
        detail::web::refuse_listening(address, "it has no name for browsers; give one: --host, or "
                                               "DashboardOptions::hosts");
    }
    auto acceptor = detail::web::listen<detail::web::Tcp>(io, endpoint, address, [] {});
    std::string host = by_name ? dashboard.first_host() : "localhost";
    if (!by_name && !address.starts_with("localhost:")) {
        // No name leads there, so nobody can rebind one.
        host = detail::web::host_of(endpoint.address());
        dashboard.add_host(host);
    }
    const std::string origin =
        detail::joined({"http://", host, ":", detail::Digits(acceptor.local_endpoint().port())});
    detail::web::serve_on(io, std::move(acceptor), dashboard, origin, stop, options);
}

} // namespace orizuru
