// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What each command does. Part of redis_model.hpp.

#pragma once

#include "fuzz/model/redis_model.hpp"

#include <orizuru/reply.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace orizuru::test {

// ---- Lists

inline Reply RedisModel::push(const Words& words, End where) {
    List& list = find_or_make<List>(words[1]);
    for (auto element = words.begin() + 2; element != words.end(); ++element) {
        add(list, where, *element);
    }
    return number(static_cast<std::int64_t>(list.size()));
}

inline Reply RedisModel::rpop(const Words& words) {
    if (words.size() > 3) {
        return wrong_arity(words.front());
    }
    const std::string_view odd = "ERR value is out of range, must be positive";
    const std::int64_t count = words.size() == 3 ? integer(words[2], odd) : 1;
    if (count < 0) {
        return error(std::string(odd));
    }
    List* list = find<List>(words[1]);
    if (list == nullptr) {
        return {};
    }
    Words taken;
    while (std::cmp_less(taken.size(), count) && !list->empty()) {
        taken.push_back(take(*list, End::right));
    }
    drop_if_empty(words[1], *list);
    return words.size() == 3 ? array(taken) : string(taken.front());
}

inline Reply RedisModel::lmove(const Words& words) {
    const End from = end(words[3]);
    const End to = end(words[4]);
    List* source = find<List>(words[1]);
    if (source == nullptr) {
        return {};
    }
    find<List>(words[2]);
    std::string element = take(*source, from);
    add(find_or_make<List>(words[2]), to, element);
    drop_if_empty(words[1], *source);
    return string(std::move(element));
}

inline Reply RedisModel::lrange(const Words& words) {
    const std::int64_t first = integer(words[2]);
    const std::int64_t last = integer(words[3]);
    const List* list = find<List>(words[1]);
    if (list == nullptr) {
        return array(Words{});
    }
    const auto [begin, end] = range(*list, first, last);
    return array(Words(list->begin() + static_cast<std::ptrdiff_t>(begin),
                       list->begin() + static_cast<std::ptrdiff_t>(end)));
}

inline Reply RedisModel::lindex(const Words& words) {
    List* list = find<List>(words[1]);
    const std::string* element = list == nullptr ? nullptr : at(*list, integer(words[2]));
    return element == nullptr ? Reply() : string(*element);
}

inline Reply RedisModel::lset(const Words& words) {
    List* list = find<List>(words[1]);
    if (list == nullptr) {
        return error("ERR no such key");
    }
    std::string* element = at(*list, integer(words[2]));
    if (element == nullptr) {
        return error("ERR index out of range");
    }
    *element = words[3];
    return status("OK");
}

inline Reply RedisModel::lrem(const Words& words) {
    const std::int64_t count = integer(words[2]);
    List* list = find<List>(words[1]);
    if (list == nullptr) {
        return number(0);
    }
    // From the left when the count is positive, from the right when it is negative, 0: all.
    std::int64_t removed = 0;
    const auto goes = [&](const std::string& element) {
        const bool one = element == words[3] && (count == 0 || removed < std::abs(count));
        removed += one ? 1 : 0;
        return one;
    };
    if (count < 0) {
        const auto kept = std::remove_if(list->rbegin(), list->rend(), goes);
        list->erase(list->begin(), kept.base());
    } else {
        std::erase_if(*list, goes);
    }
    drop_if_empty(words[1], *list);
    return number(removed);
}

inline Reply RedisModel::ltrim(const Words& words) {
    const std::int64_t first = integer(words[2]);
    const std::int64_t last = integer(words[3]);
    if (List* list = find<List>(words[1])) {
        const auto [begin, end] = range(*list, first, last);
        list->erase(list->begin() + static_cast<std::ptrdiff_t>(end), list->end());
        list->erase(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(begin));
        drop_if_empty(words[1], *list);
    }
    return status("OK");
}

// ---- Sets and hashes

inline Reply RedisModel::sadd(const Words& words) {
    Set& members = find_or_make<Set>(words[1]);
    const std::size_t before = members.size();
    members.insert(words.begin() + 2, words.end());
    return number(static_cast<std::int64_t>(members.size() - before));
}

inline Reply RedisModel::srem(const Words& words) {
    Set* members = find<Set>(words[1]);
    std::int64_t removed = 0;
    for (std::size_t i = 2; members != nullptr && i < words.size(); ++i) {
        removed += static_cast<std::int64_t>(members->erase(words[i]));
    }
    if (members != nullptr) {
        drop_if_empty(words[1], *members);
    }
    return number(removed);
}

inline Reply RedisModel::smembers(const Words& words) {
    const Set* members = find<Set>(words[1]);
    return array(members == nullptr ? Set{} : *members);
}

inline Reply RedisModel::sismember(const Words& words) {
    const Set* members = find<Set>(words[1]);
    return number(members != nullptr && members->contains(words[2]) ? 1 : 0);
}

inline Reply RedisModel::hget(const Words& words) {
    const Hash* hash = find<Hash>(words[1]);
    return hash == nullptr || !hash->contains(words[2]) ? Reply() : string(hash->at(words[2]));
}

inline Reply RedisModel::hincrby(const Words& words) {
    const std::int64_t increment = integer(words[3]);
    Hash& hash = find_or_make<Hash>(words[1]);
    std::string& value = hash.try_emplace(words[2], "0").first->second;
    value = std::to_string(integer(value, "ERR hash value is not an integer") + increment);
    return number(integer(value));
}

inline Reply RedisModel::hdel(const Words& words) {
    Hash* hash = find<Hash>(words[1]);
    std::int64_t removed = 0;
    for (std::size_t i = 2; hash != nullptr && i < words.size(); ++i) {
        removed += static_cast<std::int64_t>(hash->erase(words[i]));
    }
    if (hash != nullptr) {
        drop_if_empty(words[1], *hash);
    }
    return number(removed);
}

inline Reply RedisModel::hgetall(const Words& words) {
    Words all;
    if (const Hash* hash = find<Hash>(words[1])) {
        for (const auto& [field, value] : *hash) {
            all.insert(all.end(), {field, value});
        }
    }
    return array(all);
}

// ---- Strings

inline Reply RedisModel::set(const Words& words) {
    std::optional<std::int64_t> to_live;
    if (words.size() > 3) {
        if (words.size() != 5 || words[3] != "PX") {
            return error("ERR syntax error");
        }
        to_live = integer(words[4]);
        if (*to_live <= 0) {
            return error("ERR invalid expire time in 'set' command");
        }
    }
    m_data.insert_or_assign(words[1], Value{words[2], to_live});
    return status("OK");
}

inline Reply RedisModel::get(const Words& words) {
    const auto* text = find<std::string>(words[1]);
    return text == nullptr ? Reply() : string(*text);
}

inline Reply RedisModel::incr(const Words& words) {
    const auto* text = find<std::string>(words[1]);
    const std::int64_t value = text == nullptr ? 1 : integer(*text) + 1;
    find_or_make<std::string>(words[1]) = std::to_string(value);
    return number(value);
}

// ---- Keys

inline Reply RedisModel::type(const Words& words) {
    static constexpr std::string_view names[] = {"string", "list", "set", "hash"};
    const auto found = m_data.find(words[1]);
    return status(std::string(found == m_data.end() ? "none" : names[found->second.data.index()]));
}

inline Reply RedisModel::exists(const Words& words) {
    return number(std::count_if(words.begin() + 1, words.end(),
                                [this](const std::string& key) { return m_data.contains(key); }));
}

inline Reply RedisModel::del(const Words& words) {
    std::int64_t removed = 0;
    for (auto key = words.begin() + 1; key != words.end(); ++key) {
        removed += static_cast<std::int64_t>(m_data.erase(*key));
    }
    return number(removed);
}

inline Reply RedisModel::rename(const Words& words) {
    auto moved = m_data.extract(words[1]);
    if (moved.empty()) {
        return error("ERR no such key");
    }
    m_data.erase(words[2]);
    moved.key() = words[2];
    m_data.insert(std::move(moved));
    return status("OK");
}

inline Reply RedisModel::expire(const Words& words) {
    const std::int64_t to_live = integer(words[2]) * 1000;
    const auto found = m_data.find(words[1]);
    if (found == m_data.end()) {
        return number(0);
    }
    if (to_live > 0) {
        found->second.to_live = to_live;
    } else {
        m_data.erase(found);
    }
    return number(1);
}

inline Reply RedisModel::pttl(const Words& words) {
    const auto found = m_data.find(words[1]);
    return number(found == m_data.end() ? -2 : found->second.to_live.value_or(-1));
}

inline Reply RedisModel::keys(const Words&) {
    Words all;
    for (const auto& [key, value] : m_data) {
        all.push_back(key);
    }
    return array(all);
}

inline Reply RedisModel::flushall(const Words&) {
    m_data.clear();
    return status("OK");
}

inline Reply RedisModel::time(const Words&) { return array(Words{std::to_string(seconds), "0"}); }

} // namespace orizuru::test
