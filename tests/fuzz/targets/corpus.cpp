// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Runs a target on files, as libFuzzer does with a corpus; for compilers that have no libFuzzer.
//
// usage: corpus TARGET FOLDER

#include "input.hpp"
#include "target.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int count, char** arguments) {
    const auto target = count == 3 ? orizuru::test::Target::find(arguments[1]) : nullptr;
    if (target == nullptr) {
        std::cerr << "usage: " << arguments[0] << " TARGET FOLDER\n";
        return 2;
    }
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(arguments[2])) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        std::cerr << entry.path().filename().string()
                  << '\n'; // the last one is the one that failed
        target({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
        ++files;
    }
    std::cout << files << " inputs\n";
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
