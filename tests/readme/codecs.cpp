// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Behind the types and Codecs of README.md and the pages in examples: each writes what it reads,
// and refuses what is none of its messages.

#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace {

template <orizuru::MessageDecodable T>
T decoded(std::string_view bytes) {
    orizuru::Scratch scratch;
    return orizuru::detail::decode<T>(bytes, scratch);
}

template <orizuru::MessageEncodable T>
T there_and_back(const T& value) {
    std::string bytes;
    orizuru::detail::encode(value, bytes, 1000);
    return decoded<T>(bytes);
}

void require(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "%s\n", what);
        std::exit(1);
    }
}

template <orizuru::MessageDecodable T>
void require_refused(std::initializer_list<std::string_view> payloads) {
    for (const std::string_view bytes : payloads) {
        bool refused = false;
        try {
            [[maybe_unused]] const T value = decoded<T>(bytes);
        } catch (const std::exception&) {
            refused = true;
        }
        require(refused, "a payload that is no message is read");
    }
}

} // namespace

int main() {
    require(there_and_back(Order{7, {"tea"}}).items == std::vector<std::string>{"tea"}, "Order");

    using namespace std::string_view_literals;
    const Task order = there_and_back(Task(Order{7, {"tea"}}));
    const Task refund = there_and_back(Task(Refund{8}));
    require(std::get<Order>(order).id == 7 && std::get<Refund>(refund).order == 8, "Task");
    require(std::get<Refund>(decoded<Task>("\x92\x01\x91\x08"sv)).order == 8, "Task in msgpack");
    require_refused<Task>({""sv, "\x92"sv, "\x92\x02\x91\x08"sv, "\x92\xff\x91\x08"sv,
                           "\x93\x01\x91\x08"sv, "\x92\x01"sv, "\x92\x01\x91\x08\x08"sv});
    require(decoded<Car>("\x91\xa5Green"sv).colour == Colour::green, "Car of Rust");
    require(there_and_back(Car{Colour::green}).colour == Colour::green, "Car");
    require_refused<Car>({"\x91\xa4"
                          "Blue"sv,
                          "\x91\x01"sv});
#ifdef HAS_JSON
    require(there_and_back(Invoice{{}, 12}).number == 12, "Invoice");
    require(decoded<Invoice>(R"({"number":3})").number == 3, "Invoice in JSON");
    require_refused<Invoice>({"", "3", "{}", R"({"number":)"});
#endif
}
