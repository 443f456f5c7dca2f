# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""crawler fetches each page once, through a SIGINT in the middle, and many at a time."""

import signal
import sys
import time

import support

CRAWLER = sys.argv[1]
PAGES = 1000


def crawl(address, fetched, enough):
    """Returns how many it says are left."""
    with support.Program(CRAWLER, address) as crawler:
        while len(fetched) < enough:
            fetched.append(crawler.line())
        crawler.send(signal.SIGINT)
        while not (line := crawler.line()).startswith("left: "):
            fetched.append(line)
        assert crawler.status() == 0
        return int(line.removeprefix("left: "))


with support.private_redis() as redis:
    lines = []
    left = 0

    def interrupted():  # a busy machine may be too late for it
        global left
        lines.clear()
        support.run(CRAWLER, redis.address, "add", str(PAGES))
        assert redis.command("LLEN", "pages") == PAGES
        left = crawl(redis.address, lines, PAGES / 4)
        assert len(lines) + left == PAGES, (len(lines), left)
        return left > 0

    support.eventually(interrupted)
    began = time.monotonic()
    assert crawl(redis.address, lines, PAGES) == 0
    # One after the other they take 50 ms each.
    assert time.monotonic() - began < left * 0.05
    pages = [f"/{i}" for i in range(PAGES)]
    assert sorted(lines) == sorted(f"fetched {page}, {len(page) + 10} bytes" for page in pages)
    assert redis.command("EXISTS", "pages", "orizuru:{pages}:unack", "orizuru:{pages}:dead",
                         "orizuru:{pages}:scheduled") == 0
    support.run(CRAWLER, f"unix://{redis.path}.not", status=1)
    support.run(CRAWLER, status=1)
