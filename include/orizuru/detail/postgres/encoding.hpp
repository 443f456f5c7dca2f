// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Texts in a database whose encoding lacks some characters: LATIN1, WIN1251, EUC_JP.

#include <orizuru/detail/base/utf8.hpp>

#include <pqxx/pqxx>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orizuru::detail {

/// True for what PostgreSQL says of a text with such a character.
[[nodiscard]] inline bool is_untranslatable(const pqxx::sql_error& error) {
    return error.sqlstate() == "22P05";
}

/// The text with \u20ac or \U0001f600 for each character beyond ASCII; `text` is UTF-8.
[[nodiscard]] inline std::string to_ascii(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    constexpr std::array<unsigned, 5> first_bits{0, 0x7f, 0x1f, 0x0f, 0x07}; // by the size
    std::string out;
    while (!text.empty()) {
        const std::size_t size = utf8_size(text);
        if (size < 2) {
            out += text.front();
            text.remove_prefix(1);
            continue;
        }
        std::uint32_t character = static_cast<unsigned char>(text.front()) & first_bits[size];
        for (const char c : text.substr(1, size - 1)) {
            character = character << 6U | (static_cast<unsigned char>(c) & 0x3fU);
        }
        out += size == 4 ? "\\U" : "\\u";
        for (unsigned shift = size == 4 ? 32 : 16; shift > 0;) {
            shift -= 4;
            out += digits[character >> shift & 15U];
        }
        text.remove_prefix(size);
    }
    return out;
}

/// The forms in which the reason of a failure is stored.
enum class ReasonForm {
    whole,
    ascii ///< the database's encoding has not all its characters
};

[[nodiscard]] inline std::string in_form(ReasonForm form, const std::string& reason) {
    return form == ReasonForm::whole ? reason : to_ascii(reason);
}

/// Returns what `store(form)` does in a transaction of its own: a second time in ASCII, since a
/// reason that cannot be stored must not keep a failure from being noted.
template <class Store>
auto storing_reasons(Store store) {
    try {
        return store(ReasonForm::whole);
    } catch (const pqxx::sql_error& error) {
        if (!is_untranslatable(error)) {
            throw;
        }
    }
    return store(ReasonForm::ascii);
}

/// Returns what `use()` does; nothing when a parameter is an id that the database cannot hold, and
/// so has no job of.
template <class Use>
[[nodiscard]] pqxx::result unless_untranslatable(Use use) {
    try {
        return use();
    } catch (const pqxx::sql_error& error) {
        if (!is_untranslatable(error)) {
            throw;
        }
        return {};
    }
}

} // namespace orizuru::detail
