// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Fetches pages by HTTP, 200 at a time in one thread, from a small server of its own.
//
//     crawler redis://127.0.0.1 add 1000    enqueues a job for each of 1000 pages
//     crawler redis://127.0.0.1             fetches them, until Ctrl-C
//
// prints "fetched /17, 42 bytes" for each page, and at the end "left: 588". Press Ctrl-C in the
// middle and start it again: what was in flight is fetched then, and each page is printed once.

#include <orizuru/asio.hpp>
#include <orizuru/jobs.hpp>
#include <orizuru/worker.hpp>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <future>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_future.hpp>
#include <asio/write.hpp>

namespace {

using asio::ip::tcp;
using Page = orizuru::Job<std::string>;

/// A loop with a thread of its own.
class Loop {
  public:
    Loop() : m_thread([this] { m_io.run(); }) {}
    ~Loop() {
        m_io.stop();
        m_thread.join();
    }
    asio::io_context& io() { return m_io; }

  private:
    asio::io_context m_io{1};
    asio::executor_work_guard<asio::io_context::executor_type> m_work{m_io.get_executor()};
    std::thread m_thread;
};

asio::awaitable<void> answer(tcp::socket client) {
    std::string request;
    co_await asio::async_read_until(client, asio::dynamic_buffer(request), "\r\n\r\n",
                                    asio::use_awaitable);
    asio::steady_timer work(client.get_executor(), std::chrono::milliseconds(50));
    co_await work.async_wait(asio::use_awaitable);
    const std::string page = "<h1>" + request.substr(4, request.find(' ', 4) - 4) + "</h1>\n";
    const std::string reply = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + page;
    co_await asio::async_write(client, asio::buffer(reply), asio::use_awaitable);
}

asio::awaitable<void> serve(tcp::acceptor acceptor) {
    for (;;) {
        tcp::socket client = co_await acceptor.async_accept(asio::use_awaitable);
        asio::co_spawn(acceptor.get_executor(), answer(std::move(client)), asio::detached);
    }
}

asio::awaitable<std::size_t> fetch(const tcp::endpoint& site, const std::string& path) {
    tcp::socket server(co_await asio::this_coro::executor);
    co_await server.async_connect(site, asio::use_awaitable);
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    co_await asio::async_write(server, asio::buffer(request), asio::use_awaitable);
    std::string reply;
    std::error_code end;
    co_await asio::async_read(server, asio::dynamic_buffer(reply),
                              asio::redirect_error(asio::use_awaitable, end));
    if (end != asio::error::eof) {
        throw std::system_error(end); // a stop cancels what is awaited: let that through
    }
    if (!reply.starts_with("HTTP/1.1 200 ")) {
        throw std::runtime_error(reply.substr(0, reply.find('\r')));
    }
    co_return reply.size() - reply.find("\r\n\r\n") - 4;
}

void add(const std::string& uri, int pages) {
    Loop loop;
    orizuru::AsyncProducer<Page> queue(uri, "pages");
    std::vector<std::future<void>> pushed;
    for (int i = 0; i < pages; ++i) {
        const Page page = orizuru::make_job("/" + std::to_string(i));
        pushed.push_back(orizuru::async_push(queue, page, asio::use_future));
    }
    for (std::future<void>& page : pushed) {
        page.get(); // Redis has it, or this throws
    }
}

int work(const std::string& uri) {
    Loop web;
    tcp::acceptor acceptor(web.io(), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    const tcp::endpoint site = acceptor.local_endpoint();
    asio::co_spawn(web.io(), serve(std::move(acceptor)), asio::detached);

    Loop loop;
    orizuru::Worker worker(uri, {.stop_timeout = std::chrono::seconds(5)});
    worker.handle<std::string>("pages",
                               orizuru::on(loop.io().get_executor(),
                                           [&](const std::string& path) -> asio::awaitable<void> {
                                               const std::size_t bytes = co_await fetch(site, path);
                                               std::cout << "fetched " + path + ", " +
                                                                std::to_string(bytes) + " bytes\n"
                                                         << std::flush;
                                           }),
                               {.concurrency = 200, .time_limit = std::chrono::seconds(10)});
    const int unfinished = worker.run();
    std::cout << "left: " << orizuru::Producer<Page>(uri, "pages").size() << '\n';
    return unfinished == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        if (words.size() == 3 && words[1] == "add") {
            add(words[0], std::stoi(words[2]));
            return EXIT_SUCCESS;
        }
        if (words.size() == 1) {
            return work(words[0]);
        }
        std::cerr << "usage: crawler URI [add PAGES]\n";
    } catch (const std::exception& error) {
        std::cerr << "crawler: " << error.what() << '\n';
    }
    return EXIT_FAILURE;
}
