// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What the tests of the protocol run commands on: a real Redis, or the model of one.

#pragma once

#include <orizuru/detail/redis/wire.hpp>
#include <orizuru/reply.hpp>

#include <charconv>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace orizuru::test {

using Words = std::vector<std::string>;

/// The words of exactly one command; anything else throws std::runtime_error.
inline Words words_of(std::string_view command) {
    const auto number_after = [&command](char mark) {
        const std::size_t end = command.find("\r\n");
        std::size_t number = 0;
        if (end == std::string_view::npos || command.front() != mark ||
            std::from_chars(command.data() + 1, command.data() + end, number).ptr !=
                command.data() + end) {
            throw std::runtime_error("not a Redis command");
        }
        command.remove_prefix(end + 2);
        return number;
    };
    Words words(number_after('*'));
    for (std::string& word : words) {
        const std::size_t size = number_after('$');
        word = command.substr(0, size);
        if (command.substr(word.size(), 2) != "\r\n") {
            throw std::runtime_error("not a Redis command");
        }
        command.remove_prefix(size + 2);
    }
    if (!command.empty()) {
        throw std::runtime_error("more than one Redis command");
    }
    return words;
}

inline std::string command_of(const Words& words) {
    std::string command;
    detail::begin_command(command, words.size());
    for (const std::string& word : words) {
        detail::append_argument(command, word);
    }
    return command;
}

class Server {
  public:
    Server() = default;
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    virtual ~Server() = default;

    virtual Reply run(const Words& command) = 0;
    /// What brings all data back to what they are now.
    virtual std::function<void()> snapshot() = 0;

    /// Throws std::runtime_error on an error reply.
    Reply command(const Words& words) {
        Reply reply = run(words);
        if (reply.is(Reply::Type::error)) {
            throw std::runtime_error(words.front() + ": " + reply.text);
        }
        return reply;
    }

    Words list(const std::string& key) { return texts(command({"LRANGE", key, "0", "-1"})); }
    Words keys() { return texts(command({"KEYS", "*"})); }
    std::string type(const std::string& key) { return command({"TYPE", key}).text; }
    bool exists(const std::string& key) { return command({"EXISTS", key}).integer == 1; }

    static Words texts(const Reply& reply) {
        Words result;
        for (const Reply& element : reply.elements) {
            result.push_back(element.text);
        }
        return result;
    }
};

} // namespace orizuru::test
