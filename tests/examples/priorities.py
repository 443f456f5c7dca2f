# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""priorities shows strict order, weights and a pause, and leaves no job behind."""

import re
import sys

import support

PRIORITIES = sys.argv[1]
EXPECTED = r"""strict: urgent urgent urgent normal normal normal bulk bulk bulk
weighted 6:3:1, the first 100 of 300: (\d+) urgent, (\d+) normal, (\d+) bulk
urgent paused: normal normal normal bulk bulk bulk, then urgent urgent urgent
All is accounted for.
"""

with support.private_redis() as redis:
    shown = re.fullmatch(EXPECTED, support.run(PRIORITIES, redis.address).stdout.decode())
    assert shown
    urgent, normal, bulk = (int(number) for number in shown.groups())
    assert urgent + normal + bulk == 100
    # Random: 60, 30 and 10 on average. Fewer than 35 urgent ones of 100 happen once in millions.
    assert urgent > 35 and bulk < 35, (urgent, normal, bulk)
    for queue in "urgent", "normal", "bulk":
        assert redis.command("EXISTS", queue, f"orizuru:{{{queue}}}:paused") == 0
        assert redis.command("EXISTS", f"orizuru:{{{queue}}}:unack") == 0
        assert redis.command("EXISTS", f"orizuru:{{{queue}}}:dead") == 0
    support.run(PRIORITIES, f"unix://{redis.path}.not", status=1)
    support.run(PRIORITIES, status=1)
