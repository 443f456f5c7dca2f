// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Messages in a format of your own, here JSON by nlohmann/json: specialise orizuru::Codec.
//
//     custom_codec <redis-uri>
//
// pushes two orders and, as another program might, a payload that is no order, and prints
//
//     {"amount":3,"article":"paper","express":false}
//     3 x paper
//     {"amount":1,"article":"鶴","express":true}
//     1 x 鶴, express
//     on the dead list: {"article":"glue"}

#include <orizuru/orizuru.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

struct Order {
    std::string article;
    int amount = 0;
    bool express = false;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(Order, article, amount, express)
};

template <>
struct orizuru::Codec<Order> {
    // An exception here becomes EncodeError, for text that is not UTF-8, for example.
    static std::string encode(const Order& order) { return nlohmann::json(order).dump(); }

    // An exception here sends the message to the dead list; its text is the reason.
    static Order decode(std::string_view bytes) {
        return nlohmann::json::parse(bytes).get<Order>();
    }
};

int main(int argc, char** argv) {
    try {
        const orizuru::Endpoint redis(argc == 2 ? argv[1] : "");
        orizuru::Producer<Order> producer(redis, "orders");
        producer.push_all({{"paper", 3, false}, {"鶴", 1, true}});
        orizuru::Producer<orizuru::Raw>(redis, "orders").push({R"({"article":"glue"})"});

        orizuru::Consumer<Order> orders(redis, "orders");
        while (true) {
            try {
                auto order = orders.next(std::chrono::milliseconds(0));
                if (!order) {
                    return 0;
                }
                std::cout << order->payload() << '\n'
                          << (*order)->amount << " x " << (*order)->article
                          << ((*order)->express ? ", express\n" : "\n");
                order->ack();
            } catch (const orizuru::DecodeError& error) {
                std::cout << "on the dead list: " << error.payload() << '\n';
            }
        }
    } catch (const std::exception& error) {
        std::cerr << "custom_codec: " << error.what() << '\n';
        return 1;
    }
}
