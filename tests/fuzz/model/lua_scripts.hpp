// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Runs the text of scripts as Redis 7 does: in Lua 5.1, with the functions of `redis` and
// `struct` that the library's scripts call. That errors read as those of Redis is shown by
// commands.cpp.

#pragma once

#include "fuzz/model/redis_model.hpp"

#include <orizuru/detail/redis/scripts/sha1.hpp>
#include <orizuru/reply.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <lua.hpp>

namespace orizuru::test {

class Lua {
  public:
    using Denied = std::set<std::string, std::less<>>;

    struct Script {
        std::string sha1;
        int function = LUA_NOREF;
        std::string failure; ///< why it could not be compiled
    };

    Lua();

    /// Compiled once.
    const Script& script(const std::string& source);
    /// `denied`: commands that the caller has no right to.
    Reply run(const Script& script, const Words& keys, const Words& args, RedisModel& data,
              const Denied& denied);

  private:
    using State = std::unique_ptr<lua_State, decltype(&lua_close)>;
    struct Call {
        RedisModel& data;
        const Denied& denied;
    };

    // What Lua calls. Lua leaves a function by longjmp: nothing may be alive then that has a
    // destructor. So each does its work in a function that returns normally.
    template <int (*work)(lua_State*)>
    static int raising(lua_State* state) {
        const int results = work(state);
        return results >= 0 ? results : lua_error(state);
    }
    static int call(lua_State* state) {
        execute(state);
        return lua_istable(state, -1) && has_error(state) ? -1 : 1;
    }
    static int try_call(lua_State* state) {
        execute(state);
        return 1;
    }
    static int error_reply(lua_State* state);
    static int may_run(lua_State* state);
    static int sha1hex(lua_State* state);
    static int pack(lua_State* state);
    static int unpack(lua_State* state);
    static int protected_call(lua_State* state);
    static int locate(lua_State* state);

    static void execute(lua_State* state);
    static Reply outcome(lua_State* state);
    static bool argument(lua_State* state, int index, std::string& text);
    static std::string text_at(lua_State* state, int index) {
        std::size_t size = 0;
        const char* text = lua_tolstring(state, index, &size);
        return text == nullptr ? std::string() : std::string(text, size);
    }
    static bool has_error(lua_State* state);
    static std::string field(lua_State* state, const char* name);
    static void push(lua_State* state, const std::string& text) {
        lua_pushlstring(state, text.data(), text.size());
    }
    static void push(lua_State* state, const Reply& reply);
    static void push(lua_State* state, const Words& words);
    static void push_field(lua_State* state, const char* name, const std::string& text) {
        lua_createtable(state, 0, 1);
        push(state, text);
        lua_setfield(state, -2, name);
    }
    static Reply pop(lua_State* state);
    static Call& current(lua_State* state) {
        lua_getfield(state, LUA_REGISTRYINDEX, "call");
        auto* call = static_cast<Call*>(lua_touserdata(state, -1));
        lua_pop(state, 1);
        return *call;
    }

    State m_state{luaL_newstate(), &lua_close};
    std::unordered_map<std::string, Script> m_scripts;
};

inline Lua::Lua() {
    if (m_state == nullptr) {
        throw std::runtime_error("no memory for Lua");
    }
    lua_State* state = m_state.get();
    luaL_openlibs(state);
    static const luaL_Reg redis[] = {{"call", &raising<&Lua::call>},
                                     {"pcall", &raising<&Lua::try_call>},
                                     {"error_reply", &raising<&Lua::error_reply>},
                                     {"acl_check_cmd", &raising<&Lua::may_run>},
                                     {"sha1hex", &raising<&Lua::sha1hex>},
                                     {nullptr, nullptr}};
    static const luaL_Reg structs[] = {
        {"pack", &raising<&Lua::pack>}, {"unpack", &raising<&Lua::unpack>}, {nullptr, nullptr}};
    luaL_register(state, "redis", redis);
    luaL_register(state, "struct", structs);
    lua_pushcfunction(state, &Lua::protected_call);
    lua_setglobal(state, "pcall");
    lua_settop(state, 0);
}

inline const Lua::Script& Lua::script(const std::string& source) {
    const auto [found, is_new] = m_scripts.try_emplace(source);
    Script& script = found->second;
    if (is_new) {
        const detail::Sha1Hex sha1 = detail::sha1_hex(source);
        script.sha1.assign(std::string_view(sha1));
        // The first line is Redis' own, but lines are counted with it.
        const std::size_t begin = source.starts_with("#!") ? source.find('\n') : 0;
        if (luaL_loadbuffer(m_state.get(), source.data() + begin, source.size() - begin,
                            "@user_script") == 0) {
            script.function = luaL_ref(m_state.get(), LUA_REGISTRYINDEX);
        } else {
            script.failure = text_at(m_state.get(), -1);
            lua_pop(m_state.get(), 1);
        }
    }
    return script;
}

inline Reply Lua::run(const Script& script, const Words& keys, const Words& args, RedisModel& data,
                      const Denied& denied) {
    if (script.function == LUA_NOREF) {
        return RedisModel::error("ERR Error compiling script (new function): " + script.failure);
    }
    lua_State* state = m_state.get();
    Call call{data, denied};
    lua_pushlightuserdata(state, &call);
    lua_setfield(state, LUA_REGISTRYINDEX, "call");
    push(state, keys);
    lua_setglobal(state, "KEYS");
    push(state, args);
    lua_setglobal(state, "ARGV");
    lua_pushcfunction(state, &Lua::locate);
    lua_rawgeti(state, LUA_REGISTRYINDEX, script.function);
    Reply reply;
    if (lua_pcall(state, 0, 1, -2) == 0) {
        reply = pop(state);
    } else {
        reply = RedisModel::error(field(state, "err") + " script: " + script.sha1 + ", on " +
                                  field(state, "source") + ":" + field(state, "line") + ".");
    }
    lua_settop(state, 0);
    return reply;
}

} // namespace orizuru::test

#include "fuzz/model/lua_functions.hpp"
