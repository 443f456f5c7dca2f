// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What sentinels and the nodes of a Cluster say of the place of a server, without a socket.

#include <orizuru/detail/base/address.hpp>
#include <orizuru/detail/base/clock.hpp>
#include <orizuru/detail/base/node_list.hpp>
#include <orizuru/detail/redis/place/cluster.hpp>
#include <orizuru/detail/redis/place/locator.hpp>
#include <orizuru/detail/redis/place/sentinels.hpp>
#include <orizuru/detail/redis/place/whereabouts.hpp>
#include <orizuru/endpoint.hpp>
#include <orizuru/error.hpp>
#include <orizuru/reply.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace locators_test {

using namespace std::chrono_literals;
using namespace orizuru::detail;
using orizuru::ConnectionError;
using orizuru::Endpoint;
using orizuru::ProtocolError;
using orizuru::Reply;
using orizuru::ReplyError;
using Type = Reply::Type;

Reply string(const std::string& text) { return {Type::string, 0, text, {}}; }
Reply status(const std::string& text) { return {Type::status, 0, text, {}}; }
Reply error(const std::string& text) { return {Type::error, 0, text, {}}; }
Reply integer(std::int64_t value) { return {Type::integer, value, {}, {}}; }
Reply array(std::vector<Reply> elements) { return {Type::array, 0, {}, std::move(elements)}; }

Node at(const std::string& host, int port = 6379) { return {host, port}; }
std::shared_ptr<NodeList> list_of(std::vector<Node> nodes) {
    return std::make_shared<NodeList>(std::move(nodes));
}
Reply address_of(const std::string& host, const std::string& port) {
    return array({string(host), string(port)});
}

/// Sentinels that answer with these; those not named here cannot be reached.
struct World {
    std::map<std::string, Reply> masters;
    Reply others = array({});
    std::vector<std::string> asked;

    Node find(Sentinels& sentinels) {
        return sentinels.find(
            [this](const Node& node, std::string_view, std::size_t, TimePoint) -> Locator::Answers {
                asked.push_back(node.host);
                const auto found = masters.find(node.host);
                if (found == masters.end()) {
                    throw ConnectionError(node.host + " is down");
                }
                return {node.host, {found->second, others}};
            },
            deadline_in(10s));
    }
};

struct Sentinelled {
    std::shared_ptr<NodeList> nodes = list_of({at("s1"), at("s2"), at("s3")});
    Sentinels sentinels{nodes, "service", "the address", 1s};
    World world;
};

TEST_CASE_FIXTURE(Sentinelled, "the sentinels are asked in turn until one names a master; it is "
                               "asked first the next time, and those that failed last") {
    world.masters = {{"s2", address_of("m", "7000")}, {"s3", address_of("m", "7000")}};
    CHECK(world.find(sentinels) == at("m", 7000));
    CHECK(world.asked == std::vector<std::string>{"s1", "s2"});
    CHECK(nodes->in_order() == std::vector{at("s2"), at("s3"), at("s1")});
}

TEST_CASE_FIXTURE(Sentinelled, "a sentinel that answers tells of others") {
    world.masters = {{"s1", address_of("m", "7000")}};
    world.others = array({array({string("ip"), string("s4"), string("port"), string("26379")}),
                          array({string("ip"), string("s 5"), string("port"), string("1")})});
    world.find(sentinels);
    CHECK(nodes->in_order() == std::vector{at("s1"), at("s2"), at("s3"), at("s4", 26379)});
}

TEST_CASE_FIXTURE(Sentinelled, "where none knows a master the error says what each answered") {
    world.masters = {{"s2", Reply()}, {"s3", address_of("m", "no port")}};
    std::string told;
    try {
        world.find(sentinels);
    } catch (const ConnectionError& none) {
        told = none.what();
    }
    CHECK(told == "the address: no sentinel knows a master; s1 is down; s2: the sentinel does not "
                  "know 'service'; s3: SENTINEL did not name an address");
    CHECK(nodes->in_order().front() == at("s1"));
}

TEST_CASE_FIXTURE(Sentinelled, "a refusal of a sentinel is thrown where none names a master") {
    world.masters = {{"s2", error("NOPERM no SENTINEL")}};
    CHECK_THROWS_AS(world.find(sentinels), ReplyError);
    world.masters["s3"] = address_of("m", "7000");
    CHECK(world.find(sentinels) == at("m", 7000));
}

TEST_CASE_FIXTURE(Sentinelled, "a master is one by its own role, if it may be asked for that") {
    const Node node = at("m");
    const std::string address = "m:6379";
    const auto judge = [&](const Reply& reply) { sentinels.judge("ROLE", reply, {node, address}); };
    CHECK_NOTHROW(judge(array({string("master")})));
    CHECK_NOTHROW(judge(error("NOPERM no ROLE")));
    CHECK_THROWS_AS(judge(array({string("slave")})), WrongServer);
    CHECK_THROWS_AS(judge(array({})), ProtocolError);
    CHECK_THROWS_AS(judge(error("LOADING its data")), ReplyError);
}

struct Clustered {
    std::shared_ptr<NodeList> nodes = list_of({at("n1"), at("n2")});
    std::shared_ptr<KeyPlace> place = std::make_shared<KeyPlace>("q");
    NodeOfKey locator{nodes, place};
    Node node = at("n1");
    std::string address = "n1:6379";

    void judge(std::string_view question, const Reply& reply) {
        locator.judge(question, reply, {node, address});
    }
    [[nodiscard]] Node found() {
        return locator.find([](const Node&, std::string_view, std::size_t,
                               TimePoint) -> Locator::Answers { return {}; },
                            TimePoint::max());
    }
};

TEST_CASE_FIXTURE(Clustered, "a key is looked for at the nodes in turn until its place is known") {
    CHECK(found() == at("n1"));
    locator.pass_over();
    CHECK(found() == at("n2"));
    Reply moved = error("MOVED 7 n3:7003");
    locator.note(moved, node);
    CHECK(moved.text.ends_with(redirected));
    CHECK(found() == at("n3", 7003));
    locator.pass_over();
    CHECK(found() == at("n1"));
}

TEST_CASE_FIXTURE(Clustered, "a node that answers for the key has it, also while its slot leaves") {
    judge("TYPE", status("none"));
    CHECK(place->node() == node);
    place->set(std::nullopt);
    judge("TYPE", error("TRYAGAIN ASK 7 n2:7002"));
    CHECK(place->node() == node);
    CHECK_THROWS_AS(judge("TYPE", error("MOVED 7 n2:7002" + std::string(redirected))), WrongServer);
    CHECK_THROWS_AS(judge("TYPE", integer(1)), ProtocolError);
    CHECK_THROWS_AS(judge("TYPE", error("NOPERM no TYPE")), ReplyError);
}

TEST_CASE_FIXTURE(Clustered, "a node that is down for itself sends to another once the greeting is "
                             "over") {
    Reply early = error("CLUSTERDOWN The cluster is down");
    locator.note(early, node);
    CHECK_FALSE(is_redirected(early.text));
    judge("TYPE", status("list"));
    Reply late = error("CLUSTERDOWN The cluster is down");
    locator.note(late, node);
    CHECK(is_redirected(late.text));
    CHECK_FALSE(place->node());
}

TEST_CASE_FIXTURE(Clustered, "an ASK is to be repeated, and an address that is none is refused") {
    Reply ask = error("ASK 7 n2:7002");
    locator.note(ask, node);
    CHECK(ask.text == "TRYAGAIN ASK 7 n2:7002");
    Reply unnamed = error("MOVED 7 :7002"); // the host of who says so
    locator.note(unnamed, node);
    CHECK(place->node() == at("n1", 7002));
    Reply none = error("MOVED 7 n2:port");
    CHECK_THROWS_AS(locator.note(none, node), ProtocolError);
}

TEST_CASE_FIXTURE(Clustered, "CLUSTER SLOTS tells of nodes, without the right to it nothing") {
    judge("CLUSTER SLOTS", error("NOPERM no CLUSTER"));
    CHECK(nodes->in_order().size() == 2);
    judge("CLUSTER SLOTS",
          array({array({integer(0), integer(7), array({string("n3"), integer(7003)}),
                        array({string("?"), integer(7004)}), array({string("n5")})})}));
    CHECK(nodes->in_order() == std::vector{at("n1"), at("n2"), at("n3", 7003), at("n1", 7004)});
}

TEST_CASE("a queue that nodes send to each other is doubtful until one has served it") {
    Whereabouts queue(Endpoint("redis+cluster://n1"), "q");
    CHECK_FALSE(queue.astray());
    CHECK(queue.stray("MOVED 7 n2:7002" + std::string(redirected), at("n1")));
    CHECK(queue.astray());
    queue.goes_elsewhere();
    CHECK_FALSE(queue.astray());
    SUBCASE("sent back at once") { CHECK_FALSE(queue.stray("MOVED 7 n1:6379", at("n2", 7002))); }
    SUBCASE("served before") {
        queue.served();
        CHECK(queue.stray("MOVED 7 n1:6379", at("n2", 7002)));
    }
}

} // namespace locators_test
