# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""scheduled prints each message once, in time and by the clocks of its zone, and leaves nothing."""

import re
import sys
import time

import support

SCHEDULED = sys.argv[1]
# For the first message that waits. A scheduler that is not woken checks 2.5 s after its start, at
# the earliest, when that message is 2 s late.
MOST_LATE = 1500  # ms


def check(redis, *zone, name="UTC", ahead=0):
    """`ahead` is how many seconds the clocks of the zone are ahead of UTC."""
    begin = int(time.time())
    *lines, last = support.run(SCHEDULED, redis.address, *zone).stdout.decode().splitlines()
    end = time.time()
    assert last == "All is accounted for.", last
    found = [re.fullmatch(r"(.*), (\d+) ms late", line) for line in lines]
    assert all(found), lines
    waited = [line for line in found if not line[1].startswith("tick ")]
    assert [line[1] for line in waited] == ["in half a second", "in two seconds"], lines
    assert int(waited[0][2]) < MOST_LATE, lines
    shown = [line[1] for line in found if line[1].startswith("tick ")]
    assert len(shown) >= 3, shown
    # Each second once, without a gap, from one in which it ran.
    expected = [
        [
            time.strftime(f"tick at %T {name}", time.gmtime(first + ahead + i))
            for i in range(len(shown))
        ]
        for first in range(begin, int(end) + 1)
    ]
    assert shown in expected, (shown, expected)
    left = redis.command("KEYS", "*")
    assert left == [], left


with support.private_redis() as server:
    check(server)
    check(server, "Asia/Kolkata", name="Asia/Kolkata", ahead=19800)
    check(server, "-03:00", name="-03:00", ahead=-10800)
    support.run(SCHEDULED, server.address, "Nowhere/Atlantis", status=1)
    support.run(SCHEDULED, f"unix://{server.path}.not", status=1)
    support.run(SCHEDULED, status=1)
    assert server.command("KEYS", "*") == []
