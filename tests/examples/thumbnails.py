# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""thumbnails does each job once, through a SIGTERM in the middle; what it logs accounts for all."""

import collections
import re
import signal
import sys

import support

THUMBNAILS = sys.argv[1]
MOST = 400


class Seen:
    """What the workers have said."""

    def __init__(self):
        self.ended = collections.defaultdict(list)  # end and kind of a job -> ids
        self.indexed = []
        self.swept = []
        self.enhanced = []  # the lines

    def add(self, line):
        word, rest = line.split(" ", 1)
        if word == "index":
            self.indexed.append(int(rest))
        elif word == "sweep":
            self.swept.append(int(rest))
        else:
            fields = dict(re.findall(r'(\S+?)=("[^"]*"|\S+)', rest))
            kind = fields.get("kind", fields["queue"])
            self.ended[word, kind].append(fields["job"])
            if kind == "enhance":
                self.enhanced.append((word, fields["attempt"], fields.get("why"),
                                      fields["attr.trace"]))

    def work_until(self, address, done):
        with support.Program(THUMBNAILS, address) as worker:
            while not done():
                self.add(worker.line())
            worker.send(signal.SIGTERM)
            while line := worker.line():
                self.add(line)
            assert worker.status() == 0


with support.private_redis() as redis:
    support.run(THUMBNAILS, redis.address, "push")
    assert redis.command("ZCARD", "orizuru:{images}:scheduled") == 1  # asked for 400 times
    seen = Seen()
    resized = seen.ended["done", "resize"]
    seen.work_until(redis.address, lambda: len(resized) > MOST / 4)
    assert len(resized) < MOST
    enhanced = seen.ended["done", "enhance"]
    seen.work_until(redis.address, lambda: len(resized) == len(seen.indexed) == MOST
                    and enhanced and len(seen.swept) > 1)
    assert len(set(resized)) == len(resized) == MOST
    assert seen.indexed == list(range(MOST))
    assert len(set(seen.swept)) == len(seen.swept)
    # What a SIGTERM interrupts does not count.
    ends = [line for line in seen.enhanced if line[0] != "requeued"]
    why = '"the time limit is over: interrupted"'
    assert ends == [("failed", "1", why, "7f3a"), ("done", "2", None, "7f3a")], seen.enhanced
    for queue in "images", "index":
        for what in "unack", "dead", "scheduled":
            assert redis.command("EXISTS", f"orizuru:{{{queue}}}:{what}") == 0
    support.run(THUMBNAILS, f"unix://{redis.path}.not", status=1)
    support.run(THUMBNAILS, status=1)
