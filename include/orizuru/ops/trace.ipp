// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// The definitions of trace.hpp.

#include <orizuru/detail/base/joined.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace orizuru {

namespace detail {

inline constexpr std::string_view traceparent_name = "traceparent";
inline constexpr std::string_view tracestate_name = "tracestate";

/// The text of an attribute that passes the check; else an empty one.
[[nodiscard]] inline std::string valid_attribute(const JobAttributes& attributes,
                                                 std::string_view name,
                                                 bool (*valid)(std::string_view) noexcept) {
    const auto found = attributes.find(name);
    return found != attributes.end() && valid(found->second) ? found->second : std::string();
}

/// The trace that a job has; empty where what it has is none.
[[nodiscard]] ORIZURU_INLINE TraceContext trace_of(const JobAttributes& attributes) {
    TraceContext trace;
    trace.traceparent = valid_attribute(attributes, traceparent_name, &is_traceparent);
    if (!trace.traceparent.empty()) {
        trace.tracestate = valid_attribute(attributes, tracestate_name, &is_tracestate);
    }
    return trace;
}

ORIZURU_INLINE void refuse_empty_trace_function() {
    throw std::invalid_argument("a trace needs a function that has it or takes it");
}

ORIZURU_INLINE void set_trace(JobAttributes& attributes, TraceContext trace) {
    attributes.erase(std::string(traceparent_name));
    attributes.erase(std::string(tracestate_name));
    if (trace.traceparent.empty()) {
        return;
    }
    if (!is_traceparent(trace.traceparent)) {
        throw std::invalid_argument(joined({"no traceparent: '", trace.traceparent, "'"}));
    }
    if (!is_tracestate(trace.tracestate)) {
        throw std::invalid_argument(joined({"no tracestate: '", trace.tracestate, "'"}));
    }
    attributes[std::string(traceparent_name)] = std::move(trace.traceparent);
    if (!trace.tracestate.empty()) {
        attributes[std::string(tracestate_name)] = std::move(trace.tracestate);
    }
}

} // namespace detail

ORIZURU_INLINE bool is_traceparent(std::string_view text) noexcept {
    constexpr std::string_view form = "00-tttttttttttttttttttttttttttttttt-ssssssssssssssss-ff";
    const auto fits = [](char c, char wanted) {
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        return wanted == '0' || wanted == '-' ? c == wanted : hex;
    };
    const auto has_digit = [&](std::size_t first, std::size_t size) {
        return text.substr(first, size).find_first_not_of('0') != std::string_view::npos;
    };
    return text.size() == form.size() && std::ranges::equal(text, form, fits) && has_digit(3, 32) &&
           has_digit(36, 16);
}

ORIZURU_INLINE bool is_tracestate(std::string_view text) noexcept {
    constexpr std::size_t longest = 512; // what every system must pass on
    return text.size() <= longest &&
           std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

ORIZURU_INLINE HandleMiddleware handle_trace(
    std::function<void(JobRun& job, const TraceContext& trace, const std::function<void()>& next)>
        around) {
    if (!around) {
        detail::refuse_empty_trace_function();
    }
    return [around = std::move(around)](JobRun& job, const std::function<void()>& next) {
        around(job, detail::trace_of(job.attributes()), next);
    };
}

ORIZURU_INLINE JobObserver observe_trace(
    std::function<std::function<void(const JobEnd&)>(JobRun& job, const TraceContext& trace)>
        begin) {
    if (!begin) {
        detail::refuse_empty_trace_function();
    }
    return [begin = std::move(begin)](JobRun& job) {
        return begin(job, detail::trace_of(job.attributes()));
    };
}

} // namespace orizuru
