// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Accepts connections of browsers, on one thread.

#include <orizuru/detail/ops/web/http_session.hpp>
#include <orizuru/ops/dashboard.hpp>
#include <orizuru/ops/serve_options.hpp>

#include <fcntl.h>

#include <chrono>
#include <memory>
#include <utility>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/error.hpp>

namespace orizuru::detail::web {

/// No program that this one starts has the descriptor.
template <class Socket>
void close_on_exec(Socket& socket) {
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

template <class Protocol>
class HttpServer {
  public:
    using Acceptor = boost::asio::basic_socket_acceptor<Protocol>;

    /// The acceptor listens.
    HttpServer(boost::asio::io_context& io, Acceptor acceptor, Dashboard& dashboard,
               const ServeOptions& options)
        : m_io(io),
          m_acceptor(std::move(acceptor)),
          m_pause(io),
          m_dashboard(dashboard),
          m_options(options) {
        close_on_exec(m_acceptor);
        accept();
    }

  private:
    using Socket = typename HttpSession<Protocol>::Socket;

    void accept() {
        m_acceptor.async_accept(m_io, [this](boost::beast::error_code failure, Socket socket) {
            if (failure) {
                wait(); // for descriptors
                return;
            }
            if (m_places.use_count() <= m_options.connections) {
                close_on_exec(socket);
                std::make_shared<HttpSession<Protocol>>(std::move(socket), m_dashboard, m_places)
                    ->start(m_options.request_timeout);
            }
            accept();
        });
    }
    void wait() {
        m_pause.expires_after(std::chrono::milliseconds(100));
        m_pause.async_wait([this](boost::beast::error_code) { accept(); });
    }

    boost::asio::io_context& m_io;
    Acceptor m_acceptor;
    boost::asio::steady_timer m_pause;
    Dashboard& m_dashboard;
    const ServeOptions& m_options;
    std::shared_ptr<void> m_places = std::make_shared<char>(); // each session has a share
};

} // namespace orizuru::detail::web
