// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The command line of both programs: WORKLOAD SOCKET NAME=VALUE...

#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orizuru::benchmark {

class Options {
  public:
    Options(int argc, char** argv) {
        if (argc < 3) {
            throw std::invalid_argument("usage: WORKLOAD SOCKET NAME=VALUE...");
        }
        m_workload = argv[1];
        m_socket = argv[2];
        for (int i = 3; i < argc; ++i) {
            const std::string_view word = argv[i];
            const auto sign = word.find('=');
            if (sign == std::string_view::npos) {
                throw std::invalid_argument("not NAME=VALUE: " + std::string(word));
            }
            m_values.emplace(word.substr(0, sign), word.substr(sign + 1));
        }
    }

    [[nodiscard]] const std::string& workload() const noexcept { return m_workload; }
    [[nodiscard]] const std::string& socket() const noexcept { return m_socket; }

    [[nodiscard]] bool has(const std::string& name) const { return m_values.contains(name); }
    [[nodiscard]] const std::string& word(const std::string& name) const {
        const auto found = m_values.find(name);
        if (found == m_values.end()) {
            throw std::invalid_argument(m_workload + " needs " + name + "=...");
        }
        return found->second;
    }
    [[nodiscard]] std::int64_t number(const std::string& name) const {
        return std::stoll(word(name));
    }

  private:
    std::string m_workload;
    std::string m_socket;
    std::map<std::string, std::string> m_values;
};

} // namespace orizuru::benchmark
