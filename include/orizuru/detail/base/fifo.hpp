// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A queue in one block of memory that it reuses; std::deque allocates and frees a block every few
// dozen elements. No std::vector: one of each type takes a twentieth of a second to compile.

#include <algorithm>
#include <cstddef>
#include <utility>

namespace orizuru::detail {

/// T() allocates nothing, and neither it nor a move throws.
template <class T>
class Fifo {
  public:
    Fifo() = default;
    Fifo(const Fifo& other) : Fifo() { // whose destructor runs when a copy throws
        reserve(other.size());
        for (const T& item : other) {
            push_back(item);
        }
    }
    Fifo(Fifo&& other) noexcept { swap(other); }
    Fifo& operator=(const Fifo& other) {
        Fifo copy(other);
        swap(copy);
        return *this;
    }
    Fifo& operator=(Fifo&& other) noexcept {
        Fifo taken(std::move(other));
        swap(taken);
        return *this;
    }
    ~Fifo() { delete[] m_items; }

    [[nodiscard]] bool empty() const noexcept { return m_first == m_end; }
    [[nodiscard]] std::size_t size() const noexcept { return m_end - m_first; }

    [[nodiscard]] T* begin() noexcept { return m_items + m_first; }
    [[nodiscard]] T* end() noexcept { return m_items + m_end; }
    [[nodiscard]] const T* begin() const noexcept { return m_items + m_first; }
    [[nodiscard]] const T* end() const noexcept { return m_items + m_end; }
    [[nodiscard]] T& front() noexcept { return m_items[m_first]; }
    [[nodiscard]] const T& front() const noexcept { return m_items[m_first]; }
    [[nodiscard]] T& back() noexcept { return m_items[m_end - 1]; }
    [[nodiscard]] const T& back() const noexcept { return m_items[m_end - 1]; }

    [[nodiscard]] T& operator[](std::size_t i) noexcept { return m_items[m_first + i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return m_items[m_first + i]; }

    /// Afterwards it does not allocate as long as it holds at most `count` elements.
    void reserve(std::size_t count) {
        if (m_capacity < 2 * count + 1) {
            grow(std::max(2 * count + 1, 2 * m_capacity));
        }
    }

    void push_back(T item) {
        if (m_end == m_capacity) {
            make_room();
        }
        m_items[m_end++] = std::move(item);
    }

    void push_front(T item) {
        if (m_first == 0) {
            push_back(T());
            for (std::size_t i = m_end - 1; i > 0; --i) {
                m_items[i] = std::move(m_items[i - 1]);
            }
            m_first = 1;
        }
        m_items[--m_first] = std::move(item);
    }

    T pop_front() noexcept {
        T item = std::move(m_items[m_first++]);
        if (empty()) {
            m_first = m_end = 0;
        }
        return item;
    }

    template <class Condition>
    void erase_if(Condition condition) {
        T* kept = begin();
        for (T& item : *this) {
            if (!condition(std::as_const(item))) {
                if (&item != kept) {
                    *kept = std::move(item);
                }
                ++kept;
            }
        }
        cut(kept);
    }

    void clear() noexcept { cut(begin()); }

  private:
    void swap(Fifo& other) noexcept {
        std::swap(m_items, other.m_items);
        std::swap(m_capacity, other.m_capacity);
        std::swap(m_first, other.m_first);
        std::swap(m_end, other.m_end);
    }

    /// Ends the queue at `from`; what follows is not kept alive.
    [[gnu::noinline]] void cut(T* from) noexcept {
        while (end() != from) {
            m_items[--m_end] = T();
        }
        if (empty()) {
            m_first = m_end = 0;
        }
    }

    // Once over half is free, moving the rest costs no more than the pops before it. It is rare and
    // kept out of line, so that compilers inline push_back.
    [[gnu::noinline]] void make_room() {
        if (m_first > m_capacity / 2) {
            move_to(m_items);
        } else {
            grow(2 * m_capacity + 1);
        }
    }
    [[gnu::noinline]] void grow(std::size_t capacity) {
        T* const items = new T[capacity];
        move_to(items);
        delete[] std::exchange(m_items, items);
        m_capacity = capacity;
    }
    void move_to(T* items) noexcept {
        for (std::size_t i = 0; i < size(); ++i) {
            items[i] = std::move((*this)[i]);
        }
        m_end = size();
        m_first = 0;
    }

    T* m_items = nullptr;
    std::size_t m_capacity = 0;
    std::size_t m_first = 0; ///< the elements before it were moved from
    std::size_t m_end = 0;   ///< the elements from it on were moved from, or are new
};

} // namespace orizuru::detail
