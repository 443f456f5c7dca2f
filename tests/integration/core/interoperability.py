#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The other half of interoperability.cpp, written as a Python program that knows nothing of this
library would be: LPUSH and RPOP of msgpack, structs as arrays.

usage: interoperability.py MODE <socket> <queue>
MODE: push|pop|push_kinds|pop_kinds|dead|push_job|pop_job|readme
"""

import pathlib
import re
import secrets
import shlex
import subprocess
import sys
import time
import types

import msgpack
import redis

CRANE = ["鶴 \U0001f9a2 \0 é", [-(2**63), -1, 0, 2**63 - 1], {"a": 1, "b": -1}]

# What interoperability.cpp calls Everything: signed, unsigned, float, flag, text, binary, optional,
# crane, flock.
# No whole floats: msgpack-c writes 1.0 as the integer 1; Python writes a float.
MESSAGES = [
    [-(2**63), 2**64 - 1, 0.1, True, "", b"", None, CRANE, []],
    [2**63 - 1, 0, -1.5e300, False, "x" * 70000, bytes(range(256)), "", CRANE, [CRANE, CRANE]],
] + [
    [number, abs(number), number + 0.5, True, "n", b"\xff", "o", CRANE, [CRANE]]
    for border in (0, 2**5, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32)
    for number in (-border - 1, -border, -border + 1, border - 1, border, border + 1)
]


def push(server, queue):
    for message in MESSAGES:
        server.lpush(queue, msgpack.packb(message))


def pop(server, queue):
    for message in MESSAGES:
        payload = server.rpop(queue)
        assert msgpack.unpackb(payload) == message, (payload, message)
        assert payload == msgpack.packb(message), (payload, message)
    assert server.rpop(queue) is None


# A value of each kind of type that README.md names, in the order of interoperability.cpp's Kinds.
KINDS = [-7, 2, 1, 1500, 1_700_000_000, "text", b"\0\xff", [1, 2], {"one": 1}, [3, "x"],
         [True, 0.5], None, 5]


def push_kinds(server, queue):
    as_others = list(KINDS)
    as_others[1] = 2.0
    as_others[5:7] = [b"text", "\0é"]  # bin and str for each other
    numbers = KINDS[:6] + [[0, 255]]
    for fields in KINDS, as_others, [], KINDS + ["more", {}], numbers:
        server.lpush(queue, msgpack.packb(fields))


def pop_kinds(server, queue):
    assert msgpack.unpackb(server.rpop(queue)) == KINDS


def dead(server, queue):
    """Newest left: what interoperability.cpp buried, then what it could not decode."""
    now = time.time() * 1000
    key = "orizuru:{%s}:dead" % queue
    entries = [msgpack.unpackb(entry) for entry in server.lrange(key, 0, -1)]
    assert len(entries) == 2, entries
    for entry in entries:
        assert isinstance(entry, list) and len(entry) == 4, entry
        assert entry[0] == 2, entry
        assert isinstance(entry[3], int) and now - 600_000 < entry[3] < now + 600_000, (entry, now)
    assert entries[0][1] == msgpack.packb(MESSAGES[1])
    assert entries[0][2].decode() == "too heavy for a 鶴"
    assert entries[1][1] == b"\xc1\xff\0no msgpack"
    assert entries[1][2].startswith(b"undecodable: "), entries[1]


# The envelope of a job, byte for byte as job.hpp has it.
JOB_FIELDS = (
    "version id attempt first_enqueued_at enqueued_at first_failed_at expires_at last_error"
    " unique_id unique_queue payload"
).split()
LATER_FIELDS = "attributes kind max_attempts key ticket group".split()


def push_job(server, queue):
    """A job as a newer version might write it: with two more fields."""
    payload = msgpack.packb(MESSAGES[1])
    fields = [2, "job 鶴", 3, 1_700_000_000_000, 1_700_000_000_001, None, None, "no luck"]
    fields += ["u", "lair", payload, {"trace": "0af7 鶴"}, "crane", 9, "lake 鶴", None, "flock 鶴"]
    server.lpush(queue, msgpack.packb(fields + ["newer", {"yet": 1}]))


def pop_job(server, queue):
    """Checks the new job of interoperability.cpp, and the one that push_job had pushed."""
    new = dict(zip(JOB_FIELDS, msgpack.unpackb(server.rpop(queue)), strict=True))
    now = time.time() * 1000
    assert len(new["id"]) == 32 and int(new["id"], 16) >= 0, new
    assert now - 600_000 < new["first_enqueued_at"] == new["enqueued_at"] <= now + 1, new
    assert new["first_failed_at"] is None, new
    assert new["expires_at"] == new["enqueued_at"] + 3_600_000, new
    assert (new["version"], new["attempt"]) == (1, 1)
    assert new["last_error"] == new["unique_id"] == new["unique_queue"] == ""
    assert msgpack.unpackb(new["payload"]) == MESSAGES[0], new

    [(scheduled, _)] = server.zpopmin("orizuru:{%s}:scheduled" % queue)
    *fields, newer, yet = msgpack.unpackb(scheduled[8:])
    again = dict(zip(JOB_FIELDS + LATER_FIELDS, fields, strict=True))
    assert now - 600_000 < again["first_failed_at"] <= now + 1
    assert again.pop("enqueued_at") == again.pop("first_failed_at") + 3_600_000
    assert again == {
        "version": 2,
        "id": "job 鶴",
        "attempt": 4,
        "first_enqueued_at": 1_700_000_000_000,
        "expires_at": None,
        "last_error": "failed in C++",
        "unique_id": "u",
        "unique_queue": "lair",
        "payload": msgpack.packb(MESSAGES[1]),
        "attributes": {"trace": "0af7 鶴"},
        "kind": "crane",
        "max_attempts": 9,
        "key": "lake 鶴",
        "ticket": None,
        "group": "flock 鶴",
    }, again
    assert (newer, yet) == ("newer", {"yet": 1})


def readme(server, _queue):
    """Does what README.md and the page of the core show: their Python, then their commands of redis-cli."""
    root = pathlib.Path(__file__).parents[3]
    text = "\n".join((root / page).read_text(encoding="utf-8")
                     for page in ("README.md", "examples/core.md"))
    # It connects to a Redis of its own.
    names = {"msgpack": msgpack, "secrets": secrets, "time": time,
             "redis": types.SimpleNamespace(Redis=lambda: server)}
    dead_payload = b"\xff no order"
    entry = [2, dead_payload, b"a reason", 1_700_000_000_000]
    server.lpush("orizuru:{orders}:dead", msgpack.packb(entry))
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, "README.md", "exec"), names)
    assert [names["number"], names["items"]] == [7, ["tea"]], names
    assert [names["payload"], names["reason"]] == [dead_payload, b"a reason"], names

    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    commands = [line for line in lines + re.findall(r"`([^`\n]+)`", text)
                if line.startswith("redis-cli ")]
    assert len(commands) >= 5, commands
    socket = server.connection_pool.connection_kwargs["path"]
    for command in commands:
        words = shlex.split(command, comments=True)
        # -e: an error reply is an error.
        subprocess.run([words[0], "-e", "-s", socket, *words[1:]], check=True)


if __name__ == "__main__":
    mode, path, name = sys.argv[1:]
    modes = {"push": push, "pop": pop, "dead": dead, "push_job": push_job, "pop_job": pop_job,
             "push_kinds": push_kinds, "pop_kinds": pop_kinds, "readme": readme}
    modes[mode](redis.Redis(unix_socket_path=path), name)
