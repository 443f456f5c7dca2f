// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue in one block of memory that it reuses; std::deque allocates and frees a block every few
// dozen elements.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace orizuru::detail {

template <class T>
class Fifo {
  public:
    using iterator = typename std::vector<T>::iterator;
    using const_iterator = typename std::vector<T>::const_iterator;

    [[nodiscard]] bool empty() const noexcept { return m_first == m_items.size(); }
    [[nodiscard]] std::size_t size() const noexcept { return m_items.size() - m_first; }

    [[nodiscard]] iterator begin() noexcept { return m_items.begin() + offset(); }
    [[nodiscard]] iterator end() noexcept { return m_items.end(); }
    [[nodiscard]] const_iterator begin() const noexcept { return m_items.begin() + offset(); }
    [[nodiscard]] const_iterator end() const noexcept { return m_items.end(); }
    [[nodiscard]] T& front() noexcept { return m_items[m_first]; }
    [[nodiscard]] const T& front() const noexcept { return m_items[m_first]; }
    [[nodiscard]] T& back() noexcept { return m_items.back(); }
    [[nodiscard]] const T& back() const noexcept { return m_items.back(); }

    [[nodiscard]] T& operator[](std::size_t i) noexcept { return m_items[m_first + i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return m_items[m_first + i]; }

    /// Afterwards it does not allocate as long as it holds at most `count` elements.
    void reserve(std::size_t count) {
        if (m_items.capacity() < 2 * count + 1) {
            m_items.reserve(std::max(2 * count + 1, 2 * m_items.capacity()));
        }
    }

    void push_back(T item) {
        if (m_items.size() == m_items.capacity()) {
            reuse_front();
        }
        m_items.push_back(std::move(item));
    }

    void push_front(T item) {
        if (m_first == 0) {
            m_items.insert(m_items.begin(), std::move(item));
        } else {
            m_items[--m_first] = std::move(item);
        }
    }

    T pop_front() noexcept {
        T item = std::move(m_items[m_first++]);
        if (empty()) {
            clear();
        }
        return item;
    }

    template <class Condition>
    void erase_if(Condition condition) {
        auto kept = begin();
        for (T& item : *this) {
            if (!condition(std::as_const(item))) {
                if (&item != &*kept) {
                    *kept = std::move(item);
                }
                ++kept;
            }
        }
        m_items.erase(kept, end());
        if (empty()) {
            clear();
        }
    }

    [[gnu::noinline]] void clear() noexcept {
        m_items.clear();
        m_first = 0;
    }

  private:
    [[nodiscard]] std::ptrdiff_t offset() const noexcept {
        return static_cast<std::ptrdiff_t>(m_first);
    }

    // Once over half is free, moving the rest costs no more than the pops before it. It is rare and
    // kept out of line, so that compilers inline push_back.
    [[gnu::noinline]] void reuse_front() {
        if (m_first > m_items.size() / 2) {
            m_items.erase(m_items.begin(), m_items.begin() + offset());
            m_first = 0;
        }
    }

    std::vector<T> m_items;
    std::size_t m_first = 0; ///< the elements before it were moved from
};

} // namespace orizuru::detail
