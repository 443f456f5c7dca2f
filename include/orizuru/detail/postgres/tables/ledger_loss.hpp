// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Adds to the ledger's tables (ledger.hpp) the parts by which messages are found that are gone or
// buried (losses.hpp).

#include <string_view>

namespace orizuru::detail {

// ledger.sent_at            when the message of this pending job was sent last, by the database's
//                           clock; later than that by the time that it may be older than a sweep
//                           before it is taken for gone
// ledger.sent_again         how often it was sent again since the job was claimed or Redis was
//                           lost; 20 stands for more, too
// ledger_queue.gone_before  messages that were sent before are gone: they are sent again; NULL when
//                           all of them were
// ledger_queue.dead_seen    the entries of the dead list up to this time have been looked at, in
//                           milliseconds by Redis' clock
inline constexpr std::string_view ledger_loss_tables =
    R"sql(
ALTER TABLE $p$ledger ADD sent_at timestamptz,
    ADD sent_again integer NOT NULL DEFAULT 0;
ALTER TABLE $p$ledger_queue ADD gone_before timestamptz, ADD dead_seen bigint NOT NULL DEFAULT 0;
CREATE INDEX $p$ledger_sent ON $p$ledger (queue, sent_epoch, sent_at)
    WHERE state = 'pending' AND sent_epoch > 0;
UPDATE $p$ledger SET sent_at = clock_timestamp() WHERE state = 'pending' AND sent_epoch > 0;
)sql";

} // namespace orizuru::detail
