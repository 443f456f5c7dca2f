// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "beanstalkd"
//: server = "beanstalkd"
//: needs.command.beanstalkd = "beanstalkd"
//: note = "a small client of this folder speaks its protocol"
//:
//: [modes.single]
//: settings = "put; reserve, delete"
//: count = 20_000
//:
//: [modes.pipelined]
//: settings = "100 puts; 100 deletes and reserves in one write"
//: count = 100_000

#include "support/client.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// A connection that gathers its commands.
class Connection {
  public:
    explicit Connection(const std::string& path) : m_socket(socket(AF_UNIX, SOCK_STREAM, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        if (connect(m_socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            throw std::runtime_error("cannot connect to " + path);
        }
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() { close(m_socket); }

    void add(std::string_view bytes) { m_output += bytes; }
    void send() {
        for (std::size_t sent = 0; sent < m_output.size();) {
            const auto more =
                ::send(m_socket, &m_output[sent], m_output.size() - sent, MSG_NOSIGNAL);
            if (more <= 0) {
                throw std::runtime_error("beanstalkd has gone");
            }
            sent += static_cast<std::size_t>(more);
        }
        m_output.clear();
    }

    /// Reads the next line, which must begin with `word`, and returns the rest of it: a view, valid
    /// until the next call.
    std::string_view line(std::string_view word) {
        std::size_t end = 0;
        while ((end = m_input.find("\r\n", m_begin)) == std::string::npos) {
            receive();
        }
        std::string_view words(&m_input[m_begin], end - m_begin);
        if (words.substr(0, word.size()) != word) {
            throw std::runtime_error("beanstalkd says " + std::string(words));
        }
        words.remove_prefix(word.size());
        m_begin = end + 2;
        return words;
    }
    std::string_view bytes(std::size_t size) {
        while (m_input.size() < m_begin + size + 2) {
            receive();
        }
        const std::string_view bytes(&m_input[m_begin], size);
        m_begin += size + 2;
        return bytes;
    }

  private:
    void receive() {
        m_input.erase(0, m_begin);
        m_begin = 0;
        std::array<char, 65536> more; // NOLINT(cppcoreguidelines-pro-type-member-init)
        const auto size = recv(m_socket, more.data(), more.size(), 0);
        if (size <= 0) {
            throw std::runtime_error("beanstalkd has gone");
        }
        m_input.append(more.data(), static_cast<std::size_t>(size));
    }

    int m_socket;
    std::string m_output;
    std::string m_input;
    std::size_t m_begin = 0; ///< of the unread part of m_input
};

std::uint64_t batch_of(const peers::Task& task) { return task.mode == "single" ? 1 : 100; }

void produce(const peers::Task& task) {
    Connection server(task.address);
    server.add("use " + task.queue + "\r\n");
    server.send();
    server.line("USING");
    const std::uint64_t batch = task.rate > 0 ? 1 : batch_of(task);
    peers::Message message;
    const auto put = "put 0 0 60 " + std::to_string(message.bytes().size()) + "\r\n";
    const peers::Production production(task);
    for (std::uint64_t id = 0; id < task.count;) {
        if (task.rate > 0) {
            production.wait_for_turn(id);
            message.name = peers::name_now();
        }
        const auto size = std::min(batch, task.count - id);
        for (std::uint64_t i = 0; i < size; ++i) {
            message.id = id++;
            server.add(put);
            server.add(message.bytes());
            server.add("\r\n");
        }
        server.send();
        for (std::uint64_t i = 0; i < size; ++i) {
            server.line("INSERTED");
        }
    }
    production.done();
}

void consume(const peers::Task& task) {
    Connection server(task.address);
    server.add("watch " + task.queue + "\r\n");
    server.send();
    server.line("WATCHING");
    peers::Tally tally(task);
    peers::ready();
    std::uint64_t deleted = 0; // in one write with the next reserves
    while (tally.missing() > 0) {
        const auto size = std::min(batch_of(task), tally.missing());
        for (std::uint64_t i = 0; i < size; ++i) {
            server.add("reserve\r\n");
        }
        server.send();
        for (; deleted > 0; --deleted) {
            server.line("DELETED");
        }
        for (; deleted < size; ++deleted) {
            const std::string head(server.line("RESERVED "));
            const auto space = head.find(' ');
            tally.handle(peers::Message::from(server.bytes(std::stoull(head.substr(space)))));
            server.add("delete " + head.substr(0, space) + "\r\n");
        }
        if (task.mode == "single") {
            server.send();
            server.line("DELETED");
            deleted = 0;
        }
    }
    server.send();
    for (; deleted > 0; --deleted) {
        server.line("DELETED");
    }
    tally.done();
}

} // namespace

int main(int argc, char** argv) { return peers::run(argc, argv, produce, consume); }
