// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// A list of objects that live elsewhere: adding and removing one takes no memory and cannot fail.

namespace orizuru::detail {

/// The base of a list's elements. One is in one list at a time, and erased, once, before its end.
class Linked {
  public:
    Linked(const Linked&) = delete;
    Linked& operator=(const Linked&) = delete;

  protected:
    Linked() = default;
    ~Linked() = default;

  private:
    template <class T>
    friend class LinkedList;

    Linked* m_previous = this;
    Linked* m_next = this;
};

template <class T>
class LinkedList {
  public:
    class Iterator {
      public:
        explicit Iterator(Linked* at) noexcept : m_at(at) {}
        [[nodiscard]] T& operator*() const noexcept { return static_cast<T&>(*m_at); }
        Iterator& operator++() noexcept {
            m_at = m_at->m_next;
            return *this;
        }
        [[nodiscard]] bool operator==(const Iterator&) const = default;

      private:
        Linked* m_at;
    };

    [[nodiscard]] bool empty() const noexcept { return m_ends.m_next == &m_ends; }
    [[nodiscard]] Iterator begin() noexcept { return Iterator(m_ends.m_next); }
    [[nodiscard]] Iterator end() noexcept { return Iterator(&m_ends); }

    void push_back(T& element) noexcept {
        Linked& linked = element;
        linked.m_previous = m_ends.m_previous;
        linked.m_next = &m_ends;
        m_ends.m_previous->m_next = &linked;
        m_ends.m_previous = &linked;
    }
    void erase(T& element) noexcept {
        Linked& linked = element;
        linked.m_previous->m_next = linked.m_next;
        linked.m_next->m_previous = linked.m_previous;
    }

  private:
    Linked m_ends; ///< before the first and behind the last
};

} // namespace orizuru::detail
