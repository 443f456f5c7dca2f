# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Runs one mode of one peer through all phases. README.md describes the dialogue with programs."""

import contextlib
import os
import select
import statistics
import subprocess
import sys
import time

from peer import ENVIRONMENT
from servers import end, private_server

PATIENCE = 120  # seconds for one phase


class Failed(RuntimeError):
    """A program ended, was too slow, or did not handle each message once."""


class Program:
    """A running producer or consumer."""

    def __init__(self, stack, command, role, mode, address, queue, count, rate):
        self.count = count
        self.input = b""
        words = [*command, role, mode, address, queue, str(count), str(rate)]
        self.process = subprocess.Popen(
            words,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        stack.callback(end, self.process)
        self.expect("ready")

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def finish(self):
        """Its seconds, p50, p99, and the peak of its memory in MB."""
        count, checksum, *numbers = self.expect("done")
        if (int(count), int(checksum)) != (self.count, self.count * (self.count - 1) // 2):
            raise Failed(f"{count} of {self.count} messages, checksum {checksum}")
        seconds, p50, p99 = map(float, numbers)
        memory = peak_memory(self.process.pid)
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        return seconds, p50, p99, memory

    def expect(self, word):
        """The words after `word` in the next line that begins with it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            line, found, rest = self.input.partition(b"\n")
            if found:
                self.input = rest
                words = line.decode().split()
                if words[:1] == [word]:
                    return words[1:]
                continue
            readable, _, _ = select.select(
                [self.process.stdout], [], [], max(0, deadline - time.monotonic())
            )
            if not readable:
                raise Failed(f"no '{word}' within {PATIENCE} s")
            received = os.read(self.process.stdout.fileno(), 65536)
            if not received:
                raise Failed(f"its program ended before '{word}'")
            self.input += received


def peak_memory(pid):
    """The memory of a process and its children, in MB; nothing of those that have just ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            lines = [line.split() for line in status]
    except FileNotFoundError:
        return 0
    own = sum(int(words[1]) for words in lines if words[:1] == ["VmHWM:"]) / 1024
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return own + sum(peak_memory(child) for child in children.read().split())


def measure(peer, command, mode, count, options):
    """The medians of one mode on a server of its own."""
    with private_server(peer.server) as (address, server):
        rounds = []
        for number in range(options.repetitions):
            rounds.append(one_round(command, mode, address, f"q{number}", count, options))
        figures = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
        return figures | {"server_memory": peak_memory(server.pid)}


def one_round(command, mode, address, queue, count, options):
    with contextlib.ExitStack() as stack:

        def program(role, name, how_many=count, speed=0):
            where = (address, queue + name)
            return Program(stack, command, role, mode, *where, how_many, speed)

        producer = program("produce", "-one")
        producer.go()
        produced = producer.finish()
        consumed = program("consume", "-one").finish()

        consumer, producer = program("consume", "-both"), program("produce", "-both")
        begin = time.monotonic()
        producer.go()
        consumer.finish()
        both = time.monotonic() - begin
        producer.finish()

        few = options.rate * (1 if options.quick else 3)
        consumer = program("consume", "-late", few, options.rate)
        producer = program("produce", "-late", few, options.rate)
        producer.go()
        late = consumer.finish()
        producer.finish()

    return {
        "produce": count / produced[0],
        "consume": count / consumed[0],
        "both": count / both,
        "p50": late[1],
        "p99": late[2],
        "client_memory": consumed[3],
    }


def say(*words):
    print(*words, file=sys.stderr, flush=True)
