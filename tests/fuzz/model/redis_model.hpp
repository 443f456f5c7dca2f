// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// The data of a Redis in this process, and the commands that the library and its scripts send. That
// they do what Redis does is shown by commands.cpp. Time stands still: a key keeps what it has to
// live, and only a command removes it.

#pragma once

#include "fuzz/model/server.hpp"

#include <orizuru/reply.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace orizuru::test {

class RedisModel {
  public:
    using List = std::vector<std::string>; ///< from the left to the right
    using Set = std::set<std::string>;
    using Hash = std::map<std::string, std::string>;
    struct Value {
        std::variant<std::string, List, Set, Hash> data;
        std::optional<std::int64_t> to_live = {}; ///< ms

        friend bool operator==(const Value&, const Value&) = default;
    };
    using Data = std::map<std::string, Value, std::less<>>;

    /// What TIME says.
    static constexpr std::int64_t seconds = 1'700'000'000;

    struct Command {
        int arity; ///< with the name; negative: at least
        Reply (RedisModel::*run)(const Words&);

        [[nodiscard]] bool takes(std::size_t words) const noexcept {
            const auto count = static_cast<int>(words);
            return arity < 0 ? count >= -arity : count == arity;
        }
    };
    /// Null for one that is not modelled.
    static const Command* find_command(std::string_view name);

    Reply run(const Words& words);
    [[nodiscard]] const Data& data() const noexcept { return m_data; }

    static Reply error(std::string text) { return {Reply::Type::error, 0, std::move(text), {}}; }
    static Reply number(std::int64_t value) { return {Reply::Type::integer, value, {}, {}}; }
    static Reply string(std::string text) { return {Reply::Type::string, 0, std::move(text), {}}; }
    static Reply status(std::string text) { return {Reply::Type::status, 0, std::move(text), {}}; }

    static std::string lower(std::string name) {
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        return name;
    }

    /// Throws Refusal with `otherwise` when it is none.
    static std::int64_t
    integer(std::string_view text,
            std::string_view otherwise = "ERR value is not an integer or out of range");

    /// An error reply on its way out of a command.
    struct Refusal {
        std::string_view text;
    };

  private:
    enum class End { left, right };

    static Reply wrong_arity(const std::string& name) {
        return error("ERR wrong number of arguments for '" + lower(name) + "' command");
    }

    /// Null when the key is missing.
    template <class T>
    T* find(const std::string& key) {
        const auto found = m_data.find(key);
        if (found == m_data.end()) {
            return nullptr;
        }
        T* value = std::get_if<T>(&found->second.data);
        if (value == nullptr) {
            throw Refusal{"WRONGTYPE Operation against a key holding the wrong kind of value"};
        }
        return value;
    }
    template <class T>
    T& find_or_make(const std::string& key) {
        T* value = find<T>(key);
        return value != nullptr ? *value
                                : std::get<T>(m_data.emplace(key, Value{T{}}).first->second.data);
    }
    // Redis keeps no empty container.
    template <class T>
    void drop_if_empty(const std::string& key, const T& container) {
        if (container.empty()) {
            m_data.erase(key);
        }
    }
    template <class T>
    std::int64_t size_of(const std::string& key) {
        const T* value = find<T>(key);
        return value == nullptr ? 0 : static_cast<std::int64_t>(value->size());
    }
    template <class Strings>
    static Reply array(const Strings& strings) {
        Reply reply{Reply::Type::array, 0, {}, {}};
        for (const std::string& text : strings) {
            reply.elements.push_back(string(text));
        }
        return reply;
    }
    static End end(std::string_view name) {
        if (name != "LEFT" && name != "RIGHT") {
            throw Refusal{"ERR syntax error"};
        }
        return name == "LEFT" ? End::left : End::right;
    }
    static void add(List& list, End where, std::string element) {
        list.insert(where == End::left ? list.begin() : list.end(), std::move(element));
    }
    static std::string take(List& list, End where) {
        const auto at = where == End::left ? list.begin() : list.end() - 1;
        std::string element = std::move(*at);
        list.erase(at);
        return element;
    }
    /// The elements from `first` to `last`, both counted as Redis does, as a half-open range.
    static std::pair<std::size_t, std::size_t> range(const List& list, std::int64_t first,
                                                     std::int64_t last) {
        const auto size = static_cast<std::int64_t>(list.size());
        first = std::max<std::int64_t>(first < 0 ? first + size : first, 0);
        last = std::min(last < 0 ? last + size : last, size - 1);
        return first > last
                   ? std::pair<std::size_t, std::size_t>{0, 0}
                   : std::pair{static_cast<std::size_t>(first), static_cast<std::size_t>(last) + 1};
    }
    /// Null when there is none.
    static std::string* at(List& list, std::int64_t index) {
        const auto size = static_cast<std::int64_t>(list.size());
        index += index < 0 ? size : 0;
        return index < 0 || index >= size ? nullptr : &list[static_cast<std::size_t>(index)];
    }

    Reply push(const Words& words, End where);
    Reply lpush(const Words& words) { return push(words, End::left); }
    Reply rpush(const Words& words) { return push(words, End::right); }
    Reply rpop(const Words& words);
    Reply lmove(const Words& words);
    Reply llen(const Words& words) { return number(size_of<List>(words[1])); }
    Reply lrange(const Words& words);
    Reply lindex(const Words& words);
    Reply lset(const Words& words);
    Reply lrem(const Words& words);
    Reply ltrim(const Words& words);
    Reply sadd(const Words& words);
    Reply srem(const Words& words);
    Reply smembers(const Words& words);
    Reply sismember(const Words& words);
    Reply hget(const Words& words);
    Reply hincrby(const Words& words);
    Reply hdel(const Words& words);
    Reply hgetall(const Words& words);
    Reply set(const Words& words);
    Reply get(const Words& words);
    Reply incr(const Words& words);
    Reply type(const Words& words);
    Reply exists(const Words& words);
    Reply del(const Words& words);
    Reply rename(const Words& words);
    Reply expire(const Words& words);
    Reply pttl(const Words& words);
    Reply keys(const Words& words);
    Reply flushall(const Words& words);
    Reply time(const Words& words);

    Data m_data;
};

inline const RedisModel::Command* RedisModel::find_command(std::string_view name) {
    using M = RedisModel;
    static const std::unordered_map<std::string_view, Command> commands{
        {"LPUSH", {-3, &M::lpush}},       {"RPUSH", {-3, &M::rpush}},
        {"RPOP", {-2, &M::rpop}},         {"LMOVE", {5, &M::lmove}},
        {"LLEN", {2, &M::llen}},          {"LRANGE", {4, &M::lrange}},
        {"LINDEX", {3, &M::lindex}},      {"LSET", {4, &M::lset}},
        {"LREM", {4, &M::lrem}},          {"LTRIM", {4, &M::ltrim}},
        {"SADD", {-3, &M::sadd}},         {"SREM", {-3, &M::srem}},
        {"SMEMBERS", {2, &M::smembers}},  {"SISMEMBER", {3, &M::sismember}},
        {"HGET", {3, &M::hget}},          {"HINCRBY", {4, &M::hincrby}},
        {"HDEL", {-3, &M::hdel}},         {"HGETALL", {2, &M::hgetall}},
        {"SET", {-3, &M::set}},           {"GET", {2, &M::get}},
        {"INCR", {2, &M::incr}},          {"TYPE", {2, &M::type}},
        {"EXISTS", {-2, &M::exists}},     {"DEL", {-2, &M::del}},
        {"RENAME", {3, &M::rename}},      {"EXPIRE", {3, &M::expire}},
        {"PTTL", {2, &M::pttl}},          {"KEYS", {2, &M::keys}},
        {"FLUSHALL", {-1, &M::flushall}}, {"TIME", {1, &M::time}},
    };
    const auto found = commands.find(name);
    return found == commands.end() ? nullptr : &found->second;
}

inline Reply RedisModel::run(const Words& words) {
    const Command* command = find_command(words.front());
    if (command == nullptr) {
        return error("ERR unknown command '" + words.front() + "'");
    }
    if (!command->takes(words.size())) {
        return wrong_arity(words.front());
    }
    try {
        return (this->*command->run)(words);
    } catch (const Refusal& refusal) {
        return error(std::string(refusal.text));
    }
}

inline std::int64_t RedisModel::integer(std::string_view text, std::string_view otherwise) {
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    // Redis takes a number as it would write it, and in no other form.
    if (parsed.ec != std::errc() || std::to_string(value) != text) {
        throw Refusal{otherwise};
    }
    return value;
}

} // namespace orizuru::test

#include "fuzz/model/redis_model_commands.hpp"
