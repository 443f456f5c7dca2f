// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Runs a target on files, as libFuzzer does with a corpus; for compilers that have no libFuzzer.
//
// usage: TARGET FOLDER

#include "input.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "usage: " << arguments[0] << " FOLDER\n";
        return 2;
    }
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        std::cerr << entry.path().filename().string()
                  << '\n'; // the last one is the one that failed
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        ++files;
    }
    std::cout << files << " inputs\n";
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
