# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""custom_codec prints the shown lines; its payloads are JSON."""

import sys

import expected
import support

with support.private_redis() as server:
    expected.check(server, sys.argv[1])
    (entry,) = expected.dead(server, "orders")
    assert b'{"article":"glue"}' in entry and b"key 'amount' not found" in entry, entry
    assert server.command("LLEN", "orders") == 0
    support.run(sys.argv[1], status=1)
