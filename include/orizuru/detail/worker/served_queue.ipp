// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Defines the functions of served_queue.hpp.

#include <orizuru/detail/jobs/group/forwarding.hpp>
#include <orizuru/detail/jobs/job_arguments.hpp>
#include <orizuru/detail/worker/async/progress_writer.hpp>
#include <orizuru/detail/worker/job_queries.hpp>
#include <orizuru/detail/worker/node_links.hpp>
#include <orizuru/error.hpp>

#include <algorithm>
#include <stdexcept>

namespace orizuru::detail {

ORIZURU_INLINE std::shared_ptr<Heartbeat> start_link(NodeLinks& links, const Keys& keys) {
    return links.start_of(keys);
}

ORIZURU_INLINE bool share_a_link(const NodeLinks& links) noexcept { return links.is_only(); }

ORIZURU_INLINE bool ServedQueue::progress(std::string_view job_id, double fraction,
                                          std::string_view note) {
    try {
        m_shared->queries->set_progress(m_keys, job_id, fraction, note);
        return true;
    } catch (const Error& error) {
        tell(WorkerEvent{
            .kind = WorkerEventKind::progress_failed, .job_id = job_id, .detail = error.what()});
        return false;
    }
}

ORIZURU_INLINE void ServedQueue::progress(std::string_view job_id, double fraction,
                                          std::string_view note, std::function<void(bool)> told) {
    check_progress(fraction, note);
    auto told_of = [queue = shared_from_this(), id = std::string(job_id),
                    told = std::move(told)](const std::exception* error) {
        if (error != nullptr) {
            queue->tell(WorkerEvent{
                .kind = WorkerEventKind::progress_failed, .job_id = id, .detail = error->what()});
        }
        told(error == nullptr);
    };
    ProgressWriter::Progress progress{m_keys, std::string(job_id), fraction, std::string(note),
                                      std::move(told_of)};
    m_shared->progress->write(std::make_unique<ProgressWriter::Progress>(std::move(progress)));
}

ORIZURU_INLINE bool ServedQueue::extend_unique(const JobHead& job, std::chrono::milliseconds ttl) {
    check_ttl(ttl);
    return !job.unique_id.empty() &&
           m_shared->queries->extend_lock(m_keys, {job.id, job.unique_id, job.unique_queue}, ttl);
}

ORIZURU_INLINE void ServedQueue::forward(const ForwardedJob& job) {
    const std::string& name = job.queue.source();
    if (std::ranges::find(m_options.forward_to, name) == m_options.forward_to.end()) {
        throw std::invalid_argument("it is to go to the queue '" + name +
                                    "', which is not in QueueOptions::forward_to");
    }
    m_shared->forwards->push(job.queue, job.bytes);
}

ORIZURU_INLINE JobRecoveries ServedQueue::recoveries(std::string_view job_id) {
    return m_shared->queries->recoveries(m_keys, job_id);
}
ORIZURU_INLINE std::vector<JobRecoveries>
ServedQueue::recoveries(std::span<const std::string_view> job_ids) {
    return m_shared->queries->recoveries(m_keys, job_ids);
}

} // namespace orizuru::detail
