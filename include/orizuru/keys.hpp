// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The Redis keys of a queue, all in the hash slot of its source list. For a queue Q:
//
//   Q                               list    the source: pushed left, taken right
//   orizuru:{Q}:consumers           set     ids of the registered consumers
//   orizuru:{Q}:heartbeat:<id>      string  expires when the consumer goes unheard for its lease
//   orizuru:{Q}:processing:<id>     list    what the consumer holds, then its header; a string:
//   fence orizuru:{Q}:unack               list    rejected; the collector returns them to the
//   source orizuru:{Q}:dead                list    undecodable, buried, poison
//   orizuru:{Q}:recoveries          hash    how often a message was blamed for a consumer's death
//   orizuru:{Q}:collected           string  expires: a collector has begun a pass of late, for all
//   orizuru:{Q}:swept               string  the same of the search for lists without an owner
//   orizuru:{Q}:scheduled           zset    not yet due: 8 bytes of a number, then the message
//   orizuru:{Q}:scheduled:sequence  string  the last such number
//   orizuru:{Q}:scheduled:wake      list    an element: something is due before all else was
//   orizuru:{Q}:schedulers          zset    ids of schedulers and when each was last heard
//   orizuru:{Q}:recurring           hash    name of what recurs -> its last occurrence
//   orizuru:{Q}:unique:<id>         string  whose lock it is: how it is released, the job's id
//   orizuru:{Q}:paused              string  there: workers take nothing from the queue
//   orizuru:{Q}:progress:<id>       hash    how far a job has come: fraction, note, when
//   orizuru:{Q}:result:<id>         string  what a job has come to
//   orizuru:{Q}:once:<id>           hash    a claim: state, fence, until, nonce; what is done:
//                                           state, fence, result
//   orizuru:{Q}:fences              string  the last claim's fencing token
//   orizuru:{Q}:ledger              string  epoch:sequence of what a ledger has sent last
//
// A queue name with a hash tag keeps its tag: {tag}Q gives orizuru:{tag}:{tag}Q:consumers.

#include <orizuru/detail/base/joined.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru {

/// Names the keys of one queue; a value, no connection.
class Keys {
  public:
    /// Throws std::invalid_argument when `queue` is empty, has a brace without a valid hash tag
    /// ("{tag}", as Redis Cluster reads it), or lies under "orizuru:".
    explicit Keys(std::string queue) : m_source(std::move(queue)) {
        const std::string_view name = m_source;
        if (name.empty()) {
            throw std::invalid_argument("the queue name is empty");
        }
        if (name.starts_with("orizuru:")) {
            refuse("names under 'orizuru:' are reserved");
        }
        if (name.find_first_of("{}") == std::string_view::npos) {
            m_prefix = detail::joined({"orizuru:{", name, "}:"});
            return;
        }
        const auto open = name.find('{');
        const auto close =
            open == std::string_view::npos ? std::string_view::npos : name.find('}', open);
        if (close == std::string_view::npos || close == open + 1) {
            refuse("a brace is allowed only as part of a hash tag {tag}");
        }
        m_prefix =
            detail::joined({"orizuru:", name.substr(open, close - open + 1), ":", name, ":"});
    }

    [[nodiscard]] const std::string& source() const noexcept { return m_source; }
    [[nodiscard]] std::string consumers() const { return key("consumers"); }
    [[nodiscard]] std::string heartbeat(std::string_view id) const { return key("heartbeat:", id); }
    [[nodiscard]] std::string processing(std::string_view id) const {
        return key("processing:", id);
    }
    [[nodiscard]] std::string unack() const { return key("unack"); }
    [[nodiscard]] std::string dead() const { return key("dead"); }
    [[nodiscard]] std::string recoveries() const { return key("recoveries"); }
    [[nodiscard]] std::string collected() const { return key("collected"); }
    [[nodiscard]] std::string swept() const { return key("swept"); }
    [[nodiscard]] std::string scheduled() const { return key("scheduled"); }
    [[nodiscard]] std::string scheduled_sequence() const { return key("scheduled:sequence"); }
    [[nodiscard]] std::string scheduled_wake() const { return key("scheduled:wake"); }
    [[nodiscard]] std::string schedulers() const { return key("schedulers"); }
    [[nodiscard]] std::string recurring() const { return key("recurring"); }
    [[nodiscard]] std::string unique(std::string_view id) const { return key("unique:", id); }
    [[nodiscard]] std::string paused() const { return key("paused"); }
    [[nodiscard]] std::string progress(std::string_view job_id) const {
        return key("progress:", job_id);
    }
    [[nodiscard]] std::string result(std::string_view job_id) const {
        return key("result:", job_id);
    }
    [[nodiscard]] std::string once(std::string_view id) const { return key("once:", id); }
    [[nodiscard]] std::string fences() const { return key("fences"); }
    [[nodiscard]] std::string ledger() const { return key("ledger"); }

  private:
    [[noreturn]] [[gnu::cold]] void refuse(std::string_view reason) const {
        throw std::invalid_argument(detail::joined({"queue '", m_source, "': ", reason}));
    }
    [[nodiscard]] std::string key(std::string_view name, std::string_view id = {}) const {
        return detail::joined({m_prefix, name, id});
    }

    std::string m_source;
    std::string m_prefix;
};

} // namespace orizuru
