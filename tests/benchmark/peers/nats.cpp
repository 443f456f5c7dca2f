// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "NATS JetStream"
//: server = "nats"
//: needs.command.nats-server = "nats-server"
//: needs.header."nats/nats.h" = "libnats-dev"
//: libraries = "-lnats"
//: transport = "TCP"
//: note = "a work-queue stream; acks are sent and not answered"
//:
//: [modes.single]
//: settings = "publish; pushed by the server, ack each"
//: count = 20_000
//:
//: [modes.pushed]
//: settings = "async publish; pushed by the server, ack each"
//: count = 200_000
//:
//: [modes.fetched]
//: settings = "async publish; fetch 1000, ack each"
//: count = 300_000
//:
//: [modes.file]
//: settings = "async publish; fetch 1000, ack each"
//: count = 300_000
//: durability = "file, fsync every 2 min"

#include "support/client.hpp"

#include <nats/nats.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

void check(natsStatus status) {
    if (status != NATS_OK) {
        throw std::runtime_error(std::string("NATS: ") + natsStatus_GetText(status));
    }
}

template <auto destroy>
struct Destroy {
    void operator()(auto* handle) const { destroy(handle); }
};
template <class T, auto destroy>
using Handle = std::unique_ptr<T, Destroy<destroy>>;

/// Owns the object that a function of the library returns by its first argument.
template <class T, auto destroy, class Make>
Handle<T, destroy> made(Make make) {
    T* handle = nullptr;
    check(make(&handle));
    return Handle<T, destroy>(handle);
}

/// A connection, and the stream of the queue, made if there is none.
class Stream {
  public:
    explicit Stream(const peers::Task& task)
        : m_connection(made<natsConnection, natsConnection_Destroy>(
              [&](auto** made) { return natsConnection_ConnectTo(made, task.address.c_str()); })),
          m_context(made<jsCtx, jsCtx_Destroy>([&](auto** made) {
              return natsConnection_JetStream(made, m_connection.get(), nullptr);
          })) {
        const char* const subjects[] = {task.queue.c_str()};
        jsStreamConfig config;
        check(jsStreamConfig_Init(&config));
        config.Name = task.queue.c_str();
        config.Subjects = const_cast<const char**>(subjects);
        config.SubjectsLen = 1;
        config.Retention = js_WorkQueuePolicy;
        config.Storage = task.mode == "file" ? js_FileStorage : js_MemoryStorage;
        check(js_AddStream(nullptr, context(), &config, nullptr, nullptr));
    }

    [[nodiscard]] jsCtx* context() const { return m_context.get(); }
    void flush() const { check(natsConnection_Flush(m_connection.get())); }

  private:
    Handle<natsConnection, natsConnection_Destroy> m_connection;
    Handle<jsCtx, jsCtx_Destroy> m_context;
};

void produce(const peers::Task& task) {
    const Stream stream(task);
    const bool single = task.rate > 0 || task.mode == "single";
    peers::Message message;
    const peers::Production production(task);
    for (message.id = 0; message.id < task.count; ++message.id) {
        if (task.rate > 0) {
            production.wait_for_turn(message.id);
            message.name = peers::name_now();
        }
        const auto bytes = message.bytes();
        const auto size = static_cast<int>(bytes.size());
        if (single) {
            check(js_Publish(nullptr, stream.context(), task.queue.c_str(), bytes.data(), size,
                             nullptr, nullptr));
        } else {
            check(
                js_PublishAsync(stream.context(), task.queue.c_str(), bytes.data(), size, nullptr));
        }
    }
    check(js_PublishAsyncComplete(stream.context(), nullptr));
    production.done();
}

void handle_and_ack(peers::Tally& tally, natsMsg* message) {
    tally.handle(peers::Message::from(
        {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))}));
    check(natsMsg_Ack(message, nullptr));
}

using Subscription = Handle<natsSubscription, natsSubscription_Destroy>;

void take_what_is_pushed(const Stream& stream, const peers::Task& task, peers::Tally& tally) {
    jsSubOptions options;
    check(jsSubOptions_Init(&options));
    options.ManualAck = true;
    options.Config.AckPolicy = js_AckExplicit;
    const Subscription subscription =
        made<natsSubscription, natsSubscription_Destroy>([&](auto** made) {
            return js_SubscribeSync(made, stream.context(), task.queue.c_str(), nullptr, &options,
                                    nullptr);
        });
    peers::ready();
    while (tally.missing() > 0) {
        const auto message = made<natsMsg, natsMsg_Destroy>([&](auto** made) {
            return natsSubscription_NextMsg(made, subscription.get(), 60'000);
        });
        handle_and_ack(tally, message.get());
    }
}

void fetch(const Stream& stream, const peers::Task& task, peers::Tally& tally) {
    constexpr std::uint64_t batch = 1000;
    const Subscription subscription =
        made<natsSubscription, natsSubscription_Destroy>([&](auto** made) {
            return js_PullSubscribe(made, stream.context(), task.queue.c_str(), "consumer", nullptr,
                                    nullptr, nullptr);
        });
    peers::ready();
    while (tally.missing() > 0) {
        natsMsgList messages{};
        check(natsSubscription_Fetch(&messages, subscription.get(),
                                     static_cast<int>(std::min(batch, tally.missing())), 60'000,
                                     nullptr));
        for (int i = 0; i < messages.Count; ++i) {
            handle_and_ack(tally, messages.Msgs[i]);
        }
        natsMsgList_Destroy(&messages);
    }
}

void consume(const peers::Task& task) {
    const Stream stream(task);
    peers::Tally tally(task);
    const bool pushed = task.mode == "single" || task.mode == "pushed";
    pushed ? take_what_is_pushed(stream, task, tally) : fetch(stream, task, tally);
    stream.flush();
    tally.done();
}

} // namespace

int main(int argc, char** argv) { return peers::run(argc, argv, produce, consume); }
