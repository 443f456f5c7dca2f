// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// A user's connection to the model of a Redis: commands, and scripts by their text or name.

#pragma once

#include "fuzz/model/lua_scripts.hpp"
#include "fuzz/model/redis_model.hpp"
#include "fuzz/model/server.hpp"

#include <orizuru/reply.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace orizuru::test {

/// What all connections share.
struct ModelledRedis {
    RedisModel data;
    Lua lua;
    std::map<std::string, const Lua::Script*, std::less<>> cached; ///< scripts by their names
};

class ModelServer : public Server {
  public:
    explicit ModelServer(ModelledRedis& redis, Lua::Denied denied = {})
        : m_redis(redis), m_denied(std::move(denied)) {}

    Reply run(const Words& words) override {
        const RedisModel::Command* command = RedisModel::find_command(words.front());
        if (command != nullptr && command->takes(words.size()) &&
            m_denied.contains(words.front())) {
            return RedisModel::error("NOPERM this user has no permissions to run the '" +
                                     RedisModel::lower(words.front()) + "' command");
        }
        if (words.front() == "EVAL" || words.front() == "EVALSHA") {
            return run_script(words);
        }
        if (words == Words{"SCRIPT", "FLUSH"}) {
            m_redis.cached.clear();
            return RedisModel::status("OK");
        }
        if (words.front() == "BLMOVE") {
            // Where the real one would wait, this one finds nothing.
            return m_redis.data.run({"LMOVE", words.at(1), words.at(2), words.at(3), words.at(4)});
        }
        return m_redis.data.run(words);
    }

    std::function<void()> snapshot() override {
        return [this, data = m_redis.data] { m_redis.data = data; };
    }

  private:
    Reply run_script(const Words& words) {
        const Lua::Script* script = nullptr;
        if (words[0] == "EVAL") {
            script = &m_redis.lua.script(words.at(1));
            m_redis.cached[script->sha1] = script;
        } else if (const auto found = m_redis.cached.find(words.at(1));
                   found != m_redis.cached.end()) {
            script = found->second;
        } else {
            return RedisModel::error("NOSCRIPT No matching script. Please use EVAL.");
        }
        const auto first = words.begin() + 3;
        const auto end_of_keys = first + std::stoi(words.at(2));
        return m_redis.lua.run(*script, Words(first, end_of_keys), Words(end_of_keys, words.end()),
                               m_redis.data, m_denied);
    }

    ModelledRedis& m_redis;
    Lua::Denied m_denied;
};

} // namespace orizuru::test
