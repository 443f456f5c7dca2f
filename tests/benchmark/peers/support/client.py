# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The Python programs' side of the dialogue with `run`; README.md describes it."""

import sys
import threading
import time


class Task:
    """The request of `run`: produce|consume MODE ADDRESS QUEUE COUNT RATE."""

    def __init__(self, arguments):
        self.role, self.mode, self.address, self.queue, count, rate = arguments
        self.count, self.rate = int(count), int(rate)


def say(*words):
    print(*words, flush=True)


def produce(task, push, batch):
    """Pushes ids and names, `batch` of them with one call; one by one when there is a rate."""
    say("ready")
    sys.stdin.readline()
    begin = time.monotonic()
    batch = 1 if task.rate else batch
    for first in range(0, task.count, batch):
        name = "sixteen letters."
        if task.rate:
            time.sleep(max(0, begin + first / task.rate - time.monotonic()))
            name = f"{time.monotonic_ns():016x}"
        push([(number, name) for number in range(first, min(first + batch, task.count))])
    seconds = time.monotonic() - begin
    say("done", task.count, task.count * (task.count - 1) // 2, seconds, 0, 0)
    sys.stdin.readline()


class Tally:
    """Counts the handled messages, from the first one on."""

    def __init__(self, task):
        self.task, self.count, self.sum, self.ages = task, 0, 0, []

    def handle(self, number, name):
        """The handler of all peers: it does nothing but count."""
        if self.count == 0:
            self.begin = time.monotonic()
        self.count += 1
        self.sum += number
        if self.task.rate:
            self.ages.append((time.monotonic_ns() - int(name, 16)) / 1000)

    def complete(self):
        return self.count >= self.task.count

    def done(self):
        seconds = time.monotonic() - self.begin
        ages = sorted(self.ages) or [0]
        percentiles = (ages[len(ages) * percent // 100] for percent in (50, 99))
        say("done", self.count, self.sum, seconds, *percentiles)


def end_with_stdin():
    """For workers that own the main thread: ends the process when `run` has the figures."""
    import os

    threading.Thread(target=lambda: (sys.stdin.readline(), os._exit(0)), daemon=True).start()
