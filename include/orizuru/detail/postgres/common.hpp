// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// An object that all objects made from copies of one value share: made for the first of them, gone
// with the last.

#include <orizuru/detail/base/fork_mark.hpp>

#include <memory>
#include <mutex>

namespace orizuru::detail {

/// Any thread.
template <class T>
class Common {
  public:
    /// In a forked child a new one for each call: threads of the parent may have been changing it.
    [[nodiscard]] std::shared_ptr<T> get() {
        if (m_mark.forked()) {
            return std::make_shared<T>();
        }
        const std::lock_guard lock(m_mutex);
        std::shared_ptr<T> object = m_object.lock();
        if (!object) {
            object = std::make_shared<T>();
            m_object = object;
        }
        return object;
    }

  private:
    ForkMark m_mark;
    std::mutex m_mutex;
    std::weak_ptr<T> m_object;
};

} // namespace orizuru::detail
