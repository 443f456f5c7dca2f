// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Several programs that provoke faults make one executable, for what they include and instantiate
// alike is then compiled once. The first argument names the one to run; in an executable with one
// of them there is no such argument.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orizuru::test {

class FaultProgram {
  public:
    using Main = int(int count, char** arguments);

    /// To be made before main: an object of each source.
    FaultProgram(std::string name, Main* main) { programs().emplace(std::move(name), main); }

    /// The executable's main function.
    static int run(int count, char** arguments) {
        const auto chosen = programs().find(std::string_view(count > 1 ? arguments[1] : ""));
        if (chosen == programs().end() && programs().size() == 1) { // it needs no name
            return programs().begin()->second(count, arguments);
        }
        if (chosen == programs().end()) {
            std::cerr << "usage: " << arguments[0] << " PROGRAM [--OPTION VALUE]...\n";
            for (const auto& [name, main] : programs()) {
                std::cerr << "    " << name << '\n';
            }
            return 2;
        }
        chosen_name() = chosen->first;
        std::string command = arguments[0] + (' ' + chosen->first);
        arguments[1] = command.data();
        return chosen->second(count - 1, arguments + 1);
    }

    /// The words that run the same program in another process, without its options.
    [[nodiscard]] static std::vector<std::string> words() {
        std::vector words{std::filesystem::read_symlink("/proc/self/exe").string()};
        if (!chosen_name().empty()) {
            words.push_back(chosen_name());
        }
        return words;
    }

  private:
    static std::map<std::string, Main*, std::less<>>& programs() {
        static std::map<std::string, Main*, std::less<>> all;
        return all;
    }
    static std::string& chosen_name() {
        static std::string name;
        return name;
    }
};

} // namespace orizuru::test
