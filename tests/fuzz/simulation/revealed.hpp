// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors

// Members of a mirror that the tests of the protocol must see and its users must not.

#pragma once

#include <orizuru/detail/mirror/adoption.hpp>
#include <orizuru/detail/mirror/late_requests.hpp>
#include <orizuru/detail/mirror/mirror.hpp>

namespace orizuru::test {

// The names of private members may be used where a template is instantiated explicitly.
template <class Name, auto member>
struct Reveal {
    friend constexpr auto revealed(Name) noexcept { return member; }
};
struct Moves {
    friend constexpr auto revealed(Moves) noexcept;
};
template struct Reveal<Moves, &detail::Mirror::m_moves>;
struct Requests {
    friend constexpr auto revealed(Requests) noexcept;
};
template struct Reveal<Requests, &detail::Mirror::m_requests>;
struct Confirmed {
    friend constexpr auto revealed(Confirmed) noexcept;
};
template struct Reveal<Confirmed, &detail::Mirror::m_confirmed>;
struct Draining {
    friend constexpr auto revealed(Draining) noexcept;
};
template struct Reveal<Draining, &detail::Mirror::m_draining>;
struct Late {
    friend constexpr auto revealed(Late) noexcept;
};
template struct Reveal<Late, &detail::Mirror::m_late>;
struct Unanswered {
    friend constexpr auto revealed(Unanswered) noexcept;
};
template struct Reveal<Unanswered, &detail::LateRequests::m_unanswered>;
struct Adopting {
    friend constexpr auto revealed(Adopting) noexcept;
};
template struct Reveal<Adopting, &detail::Mirror::m_adoption>;
struct Target {
    friend constexpr auto revealed(Target) noexcept;
};
template struct Reveal<Target, &detail::Adoption::m_target>;
struct Tried {
    friend constexpr auto revealed(Tried) noexcept;
};
template struct Reveal<Tried, &detail::Adoption::m_tried>;
struct Header {
    friend constexpr auto revealed(Header) noexcept;
};
template struct Reveal<Header, &detail::Adoption::m_header>;

} // namespace orizuru::test
