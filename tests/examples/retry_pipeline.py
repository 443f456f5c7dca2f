# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""retry_pipeline prints the shown lines, and buries the message that failed everywhere."""

import sys

import expected
import support

with support.private_redis() as server:
    expected.check(server, sys.argv[1])
    (entry,) = expected.dead(server, "mail:retry2")
    assert b"nobody@nowhere.example" in entry and b"550 mailbox unavailable" in entry, entry
    for queue in ("mail", "mail:retry1", "mail:retry2"):
        assert server.command("LLEN", queue) == 0
        assert server.command("SCARD", "orizuru:{%s}:consumers" % queue) == 0
    support.run(sys.argv[1], status=1)
