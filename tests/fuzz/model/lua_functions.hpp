// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// What scripts may call, and values on their way into Lua and out of it. Part of lua_scripts.hpp.

#pragma once

#include "fuzz/model/lua_scripts.hpp"

namespace orizuru::test {

// ---- The functions of `redis`

inline void Lua::execute(lua_State* state) { push(state, outcome(state)); }

inline Reply Lua::outcome(lua_State* state) {
    Words words(static_cast<std::size_t>(lua_gettop(state)));
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!argument(state, static_cast<int>(i) + 1, words[i])) {
            return RedisModel::error(
                "ERR Lua redis lib command arguments must be strings or integers");
        }
    }
    const RedisModel::Command* command =
        words.empty() ? nullptr : RedisModel::find_command(words.front());
    if (command == nullptr) {
        return RedisModel::error("ERR Unknown Redis command called from script");
    }
    if (!command->takes(words.size())) {
        return RedisModel::error("ERR Wrong number of args calling Redis command from script");
    }
    Call& call = current(state);
    if (call.denied.contains(words.front())) {
        return RedisModel::error(
            "ERR The user executing the script can't run this command or subcommand");
    }
    return call.data.run(words);
}

inline bool Lua::argument(lua_State* state, int index, std::string& text) {
    if (lua_type(state, index) == LUA_TNUMBER) {
        char digits[32];
        const int size = std::snprintf(digits, sizeof digits, "%.17g", lua_tonumber(state, index));
        text.assign(digits, static_cast<std::size_t>(size));
        return true;
    }
    text = text_at(state, index);
    return lua_type(state, index) == LUA_TSTRING;
}

// An error's first word is its code; alone, it is none.
inline int Lua::error_reply(lua_State* state) {
    std::string text = text_at(state, 1);
    text.erase(0, text.starts_with('-') ? 1 : 0);
    push_field(state, "err", text.find(' ') == std::string::npos ? "ERR " + text : text);
    return 1;
}

inline int Lua::may_run(lua_State* state) {
    const std::string name = text_at(state, 1);
    lua_pushboolean(state, current(state).denied.contains(name) ? 0 : 1);
    return 1;
}

inline int Lua::sha1hex(lua_State* state) {
    const detail::Sha1Hex sha1 = detail::sha1_hex(text_at(state, 1));
    lua_pushlstring(state, sha1.characters.data(), sha1.characters.size());
    return 1;
}

// ---- Errors

// pcall as Redis has it: of a failure that is a table it returns the text.
inline int Lua::protected_call(lua_State* state) {
    const int failed = lua_pcall(state, lua_gettop(state) - 1, LUA_MULTRET, 0);
    if (failed != 0 && lua_istable(state, -1)) {
        lua_getfield(state, -1, "err");
        lua_remove(state, lua_isstring(state, -1) != 0 ? -2 : -1);
    }
    lua_pushboolean(state, failed == 0 ? 1 : 0);
    lua_insert(state, 1);
    return lua_gettop(state);
}

// Adds to a script's error where it happened.
inline int Lua::locate(lua_State* state) {
    if (!lua_istable(state, 1)) {
        lua_createtable(state, 0, 3);
        lua_pushfstring(state, "ERR %s", lua_tostring(state, 1));
        lua_setfield(state, -2, "err");
    }
    lua_Debug place;
    for (int level = 1; level <= 2 && lua_getstack(state, level, &place) != 0; ++level) {
        lua_getinfo(state, "Sl", &place);
        if (*place.what != 'C') {
            lua_pushstring(state, place.source);
            lua_setfield(state, -2, "source");
            lua_pushinteger(state, place.currentline);
            lua_setfield(state, -2, "line");
            break;
        }
    }
    return 1;
}

inline bool Lua::has_error(lua_State* state) {
    lua_getfield(state, -1, "err");
    const bool found = lua_isstring(state, -1) != 0;
    lua_pop(state, 1);
    return found;
}

inline std::string Lua::field(lua_State* state, const char* name) {
    lua_getfield(state, -1, name);
    std::string text = text_at(state, -1);
    lua_pop(state, 1);
    return text;
}

// ---- Values

inline void Lua::push(lua_State* state, const Reply& reply) {
    luaL_checkstack(state, 4, "a reply");
    switch (reply.type) {
    case Reply::Type::nil:
        lua_pushboolean(state, 0);
        break;
    case Reply::Type::status:
        push_field(state, "ok", reply.text);
        break;
    case Reply::Type::error:
        push_field(state, "err", reply.text);
        break;
    case Reply::Type::integer:
        lua_pushnumber(state, static_cast<lua_Number>(reply.integer));
        break;
    case Reply::Type::string:
        push(state, reply.text);
        break;
    case Reply::Type::array:
        lua_createtable(state, static_cast<int>(reply.elements.size()), 0);
        for (std::size_t i = 0; i < reply.elements.size(); ++i) {
            push(state, reply.elements[i]);
            lua_rawseti(state, -2, static_cast<int>(i) + 1);
        }
    }
}

inline void Lua::push(lua_State* state, const Words& words) {
    lua_createtable(state, static_cast<int>(words.size()), 0);
    for (std::size_t i = 0; i < words.size(); ++i) {
        push(state, words[i]);
        lua_rawseti(state, -2, static_cast<int>(i) + 1);
    }
}

/// What a script returned, as a reply; it is taken off the stack.
inline Reply Lua::pop(lua_State* state) {
    Reply reply;
    if (lua_type(state, -1) == LUA_TSTRING) {
        reply = RedisModel::string(text_at(state, -1));
    } else if (lua_type(state, -1) == LUA_TNUMBER) {
        reply = RedisModel::number(static_cast<std::int64_t>(lua_tonumber(state, -1)));
    } else if (lua_type(state, -1) == LUA_TBOOLEAN && lua_toboolean(state, -1) != 0) {
        reply = RedisModel::number(1);
    } else if (lua_istable(state, -1) && has_error(state)) {
        // One line, and a C string.
        std::string text = field(state, "err").c_str();
        std::replace_if(
            text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
        reply = RedisModel::error(std::move(text));
    } else if (lua_istable(state, -1)) {
        luaL_checkstack(state, 4, "a result");
        reply.type = Reply::Type::array;
        for (int i = 1;; ++i) {
            lua_rawgeti(state, -1, i);
            if (lua_isnil(state, -1)) {
                lua_pop(state, 1);
                break;
            }
            reply.elements.push_back(pop(state));
        }
    }
    lua_pop(state, 1);
    return reply;
}

// ---- struct

/// Of the formats, those of the library's scripts: '>', then B or I4, each of a number.
inline int Lua::pack(lua_State* state) {
    std::string out;
    int at = 1;
    for (const char format : text_at(state, 1)) {
        const int bytes = format == 'B' ? 1 : format == 'I' ? 4 : 0;
        if (bytes > 0) {
            const auto value = static_cast<std::uint64_t>(lua_tonumber(state, ++at));
            for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
                out += static_cast<char>(value >> shift & 0xff);
            }
        }
    }
    push(state, out);
    return 1;
}

/// Of the formats, those of the library's scripts: '>I' and a width; and where the number ends.
inline int Lua::unpack(lua_State* state) {
    const auto width = static_cast<std::size_t>(std::stoi(text_at(state, 1).substr(2)));
    const std::string text = text_at(state, 2);
    const auto at = static_cast<std::size_t>(lua_tonumber(state, 3));
    if (at - 1 + width > text.size()) {
        push(state, "data string too short");
        return -1;
    }
    std::uint64_t value = 0;
    for (const char byte : text.substr(at - 1, width)) {
        value = value << 8U | static_cast<unsigned char>(byte);
    }
    lua_pushnumber(state, static_cast<lua_Number>(value));
    lua_pushnumber(state, static_cast<lua_Number>(at + width));
    return 2;
}

} // namespace orizuru::test
