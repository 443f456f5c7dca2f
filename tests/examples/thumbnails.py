# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""thumbnails accounts for each of its jobs, and a second run finds nothing of the first."""

import sys

import support

THUMBNAILS = sys.argv[1]
EXPECTED = """enhance, attempt 2, trace 7f3a
resized 400 of 400, with SIGTERM in the middle
enhanced 1, asked for 5 times
indexed 400 of 400, in order
swept, each second once
All is accounted for.
"""

with support.private_redis() as redis:
    for _ in range(2):
        assert support.run(THUMBNAILS, redis.address).stdout.decode() == EXPECTED
        for queue in "images", "index":
            for what in "unack", "dead", "scheduled":
                assert redis.command("EXISTS", f"orizuru:{{{queue}}}:{what}") == 0
    support.run(THUMBNAILS, f"unix://{redis.path}.not", status=1)
    support.run(THUMBNAILS, status=1)
