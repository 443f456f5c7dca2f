# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Sidekiq's client pushes jobs that a Consumer<Raw> takes, and its server runs those of a Producer<Raw>."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.environ["EXAMPLES_TESTS"])
from support import PATIENCE, private_redis  # noqa: E402

OURS, RUBY = sys.argv[1], sys.argv[2]
SIDEKIQ = pathlib.Path(__file__).with_suffix(".rb")
PUSHED = 1000
RUN = 500


def output(*command):
    words = [str(word) for word in command]
    return subprocess.run(
        words, check=True, stdout=subprocess.PIPE, text=True, timeout=2 * PATIENCE
    ).stdout.splitlines()


with private_redis() as redis:
    output(RUBY, SIDEKIQ, redis.path, "push", PUSHED)
    jobs = [json.loads(line) for line in output(OURS, redis.address, "consume", PUSHED)]
    assert [job["args"] for job in jobs] == [[number] for number in range(PUSHED)], "in order"
    assert all(job["class"] == "Handler" and len(job["jid"]) == 24 for job in jobs)
    assert redis.command("LLEN", "queue:default") == 0

    output(OURS, redis.address, "produce", RUN)
    ran = output(RUBY, SIDEKIQ, redis.path, "run", RUN)
    assert ran == [str(number) for number in range(RUN)], "each once"
    assert redis.command("LLEN", "queue:default") == 0
