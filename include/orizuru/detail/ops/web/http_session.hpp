// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// One connection of a browser: one request, one response, within one time limit.

#include <orizuru/ops/dashboard.hpp>
#include <orizuru/ops/dashboard_request.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_static_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace orizuru::detail::web {

/// Lives while something of it is awaited; on the server's only thread.
template <class Protocol>
class HttpSession : public std::enable_shared_from_this<HttpSession<Protocol>> {
  public:
    using Socket = boost::asio::basic_stream_socket<Protocol>;

    /// It has the place until it ends.
    HttpSession(Socket socket, Dashboard& dashboard, std::shared_ptr<void> place)
        : m_place(std::move(place)), m_stream(std::move(socket)), m_dashboard(dashboard) {
        m_parser.header_limit(longest_head);
        m_parser.body_limit(0);
    }

    void start(std::chrono::milliseconds limit) {
        m_end = Clock::now() + limit;
        m_stream.expires_at(m_end); // of all that follows: what drips does not prolong it
        boost::beast::http::async_read_header(
            m_stream, m_buffer, m_parser,
            [self = this->shared_from_this()](Failure failure, std::size_t) {
                self->on_head(failure);
            });
    }

  private:
    using Clock = std::chrono::steady_clock;
    using Failure = boost::beast::error_code;
    using Parser = boost::beast::http::request_parser<boost::beast::http::empty_body>;
    using Response = boost::beast::http::response<boost::beast::http::string_body>;

    static constexpr std::size_t longest_head = 8192;

    void on_head(Failure failure) {
        using boost::beast::http::error;
        if (failure == error::body_limit || (!failure && m_parser.chunked())) {
            send({413, {}, "no request has a body\n"});
        } else if (failure == error::header_limit || failure == error::buffer_overflow) {
            send({431, {}, "the head is too large\n"});
        } else if (failure.category() == make_error_code(error::bad_method).category() &&
                   failure != error::end_of_stream && failure != error::partial_message) {
            send({400, {}, "this is no HTTP\n"});
        } else if (!failure) {
            // The time that it waits for Redis is not the browser's.
            const Clock::time_point begin = Clock::now();
            DashboardResponse response = m_dashboard.handle(request());
            m_end += Clock::now() - begin;
            m_stream.expires_at(m_end);
            send(std::move(response));
        }
    }

    [[nodiscard]] DashboardRequest request() const {
        const auto text = [](auto view) { return std::string(view.data(), view.size()); };
        const auto& head = m_parser.get();
        DashboardRequest request{.method = text(head.method_string()),
                                 .path = text(head.target()),
                                 .query = {},
                                 .headers = {}};
        if (const auto mark = request.path.find('?'); mark != std::string::npos) {
            request.query = request.path.substr(mark + 1);
            request.path.resize(mark);
        }
        for (const auto& field : head) {
            request.headers.emplace_back(text(field.name_string()), text(field.value()));
        }
        return request;
    }

    void send(DashboardResponse response) {
        m_response.result(static_cast<unsigned>(response.status));
        m_response.keep_alive(false);
        for (const auto& [name, value] : response.headers) {
            m_response.insert(name, value);
        }
        m_response.body() = std::move(response.body);
        m_response.prepare_payload();
        boost::beast::http::async_write(
            m_stream, m_response, [self = this->shared_from_this()](Failure failure, std::size_t) {
                if (!failure) {
                    self->m_stream.socket().shutdown(Socket::shutdown_send, failure);
                    self->await_end();
                }
            });
    }

    /// To close a socket with something unread would take the response back.
    void await_end() {
        m_buffer.clear();
        m_stream.async_read_some(m_buffer.prepare(longest_head),
                                 [self = this->shared_from_this()](Failure failure, std::size_t) {
                                     if (!failure) {
                                         self->await_end();
                                     }
                                 });
    }

    std::shared_ptr<void> m_place;
    boost::beast::basic_stream<Protocol> m_stream;
    Dashboard& m_dashboard;
    Clock::time_point m_end{};
    boost::beast::flat_static_buffer<longest_head> m_buffer;
    Parser m_parser;
    Response m_response;
};

} // namespace orizuru::detail::web
