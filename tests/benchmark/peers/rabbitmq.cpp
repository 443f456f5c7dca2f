// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

//: name = "RabbitMQ"
//: server = "rabbitmq"
//: needs.command.rabbitmqctl = "rabbitmq-server"
//: needs.header."amqp.h" = "librabbitmq-dev"
//: libraries = "-lrabbitmq"
//: transport = "TCP"
//: note = "the server pushes to the consumer up to the prefetch"
//:
//: [modes.single]
//: settings = "confirm each; prefetch 100, ack each"
//: count = 5_000
//: durability = "disk, before the confirm"
//:
//: [modes.window]
//: settings = "500 unconfirmed; prefetch 500, an ack for 50"
//: count = 60_000
//: durability = "disk, before the confirm"
//:
//: [modes.unconfirmed]
//: settings = "no confirms; prefetch 500, an ack for 50"
//: count = 200_000
//: durability = "memory"

#include "support/client.hpp"

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

constexpr amqp_channel_t channel = 1;

void require(bool fine, const char* what) {
    if (!fine) {
        throw std::runtime_error(std::string("RabbitMQ: ") + what);
    }
}

struct Destroy {
    void operator()(amqp_connection_state_t connection) const {
        amqp_destroy_connection(connection);
    }
};

class Connection {
  public:
    explicit Connection(const peers::Task& task)
        : m_state(amqp_new_connection()), m_queue(task.queue) {
        auto* const socket = amqp_tcp_socket_new(m_state.get());
        const auto colon = task.address.find(':');
        require(amqp_socket_open(socket, task.address.substr(0, colon).c_str(),
                                 std::stoi(task.address.substr(colon + 1))) == AMQP_STATUS_OK,
                "cannot connect");
        const auto login =
            amqp_login(m_state.get(), "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
        require(login.reply_type == AMQP_RESPONSE_NORMAL, "login");
        amqp_channel_open(m_state.get(), channel);
        check("channel.open");
        round_trip();
    }

    [[nodiscard]] amqp_connection_state_t state() const { return m_state.get(); }
    [[nodiscard]] amqp_bytes_t queue() const { return amqp_cstring_bytes(m_queue.c_str()); }

    /// Declares the queue; the answer comes when the channel has finished all commands before it.
    void round_trip() const {
        amqp_queue_declare(state(), channel, queue(), 0, 1, 0, 0, amqp_empty_table);
        check("queue.declare");
    }
    void check(const char* what) const {
        require(amqp_get_rpc_reply(state()).reply_type == AMQP_RESPONSE_NORMAL, what);
    }

  private:
    std::unique_ptr<amqp_connection_state_t_, Destroy> m_state;
    std::string m_queue;
};

/// The messages that were published and not yet confirmed.
class Unconfirmed {
  public:
    void add() { m_tags.insert(m_tags.end(), ++m_last); }
    [[nodiscard]] std::size_t size() const { return m_tags.size(); }

    void await(const Connection& connection) {
        amqp_frame_t frame;
        require(amqp_simple_wait_frame(connection.state(), &frame) == AMQP_STATUS_OK,
                "waiting for a confirm");
        require(frame.frame_type == AMQP_FRAME_METHOD &&
                    frame.payload.method.id == AMQP_BASIC_ACK_METHOD,
                "no confirm");
        const auto* const ack = static_cast<amqp_basic_ack_t*>(frame.payload.method.decoded);
        const auto tag = m_tags.find(ack->delivery_tag);
        require(tag != m_tags.end(), "confirmed twice");
        m_tags.erase(ack->multiple != 0 ? m_tags.begin() : tag, std::next(tag));
        amqp_maybe_release_buffers(connection.state());
    }

  private:
    std::set<std::uint64_t> m_tags;
    std::uint64_t m_last = 0;
};

void produce(const peers::Task& task) {
    const Connection connection(task);
    const bool confirms = task.mode != "unconfirmed";
    if (confirms) {
        amqp_confirm_select(connection.state(), channel);
        connection.check("confirm.select");
    }
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
    properties.delivery_mode = confirms ? 2 : 1;
    const std::size_t window = task.mode == "window" && task.rate == 0 ? 500 : 1;

    peers::Message message;
    Unconfirmed unconfirmed;
    const peers::Production production(task);
    for (message.id = 0; message.id < task.count; ++message.id) {
        if (task.rate > 0) {
            production.wait_for_turn(message.id);
            message.name = peers::name_now();
        }
        const auto text = message.bytes();
        const amqp_bytes_t bytes{text.size(), const_cast<char*>(text.data())};
        require(amqp_basic_publish(connection.state(), channel, amqp_empty_bytes,
                                   connection.queue(), 0, 0, &properties, bytes) == AMQP_STATUS_OK,
                "publish");
        if (confirms) {
            unconfirmed.add();
        }
        while (unconfirmed.size() >= window) {
            unconfirmed.await(connection);
        }
    }
    while (unconfirmed.size() > 0) {
        unconfirmed.await(connection);
    }
    if (!confirms) {
        connection.round_trip();
    }
    production.done();
}

void consume(const peers::Task& task) {
    const Connection connection(task);
    const bool single = task.mode == "single";
    amqp_basic_qos(connection.state(), channel, 0, single ? 100 : 500, 0);
    connection.check("basic.qos");
    amqp_basic_consume(connection.state(), channel, connection.queue(), amqp_empty_bytes, 0, 0, 0,
                       amqp_empty_table);
    connection.check("basic.consume");

    peers::Tally tally(task);
    peers::ready();
    while (tally.missing() > 0) {
        amqp_envelope_t envelope;
        amqp_maybe_release_buffers(connection.state());
        require(amqp_consume_message(connection.state(), &envelope, nullptr, 0).reply_type ==
                    AMQP_RESPONSE_NORMAL,
                "consume");
        const auto& body = envelope.message.body;
        tally.handle(peers::Message::from({static_cast<const char*>(body.bytes), body.len}));
        if (single || envelope.delivery_tag % 50 == 0 || tally.missing() == 0) {
            const int all_before = single ? 0 : 1;
            amqp_basic_ack(connection.state(), channel, envelope.delivery_tag, all_before);
        }
        amqp_destroy_envelope(&envelope);
    }
    connection.round_trip();
    tally.done();
}

} // namespace

int main(int argc, char** argv) { return peers::run(argc, argv, produce, consume); }
