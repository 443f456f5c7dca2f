# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""job_worker hashes every file, through a Ctrl-C and a kill; a missing file is buried."""

import pathlib
import signal
import sys
import tempfile

import support

JOB_WORKER = sys.argv[1]
# Their output does not fit into a pipe: a worker whose lines are not read has to wait.
FILES = 2500


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def make_files(folder):
    expected = {}
    for number in range(FILES):
        path = folder / str(number % 3) / f"file {number}"
        path.parent.mkdir(exist_ok=True)
        data = bytes(str(number), "ascii") * (number % 50)
        path.write_bytes(data)
        expected[str(path)] = fnv1a(data)
    return expected


def work(redis, seen, until, end):
    """A process works until `until` files are hashed; `end` ends it and reads its last lines."""
    with support.Program(JOB_WORKER, redis.address, "work") as worker:
        while len(seen) < until:
            hash_, path = worker.line().split("  ", 1)
            seen[path] = hash_
        return end(worker)


def kill(seen):
    def end(worker):
        worker.kill()
        while line := worker.line():
            hash_, path = line.split("  ", 1)
            seen[path] = hash_

    return end


def stop(seen):
    def end(worker):
        worker.send(signal.SIGINT)
        while not (line := worker.line()).startswith("done: "):
            hash_, path = line.split("  ", 1)
            seen[path] = hash_
        assert worker.status() == 0
        return line

    return end


with support.private_redis() as redis, tempfile.TemporaryDirectory() as folder:
    expected = make_files(pathlib.Path(folder))
    gone = pathlib.Path(folder) / "gone"
    gone.write_text("soon")
    support.run(JOB_WORKER, redis.address, "add", folder)
    assert redis.command("LLEN", "files") == FILES + 1
    gone.unlink()

    seen = {}
    work(redis, seen, 10, stop(seen))
    interrupted = len(seen)
    assert interrupted < FILES
    work(redis, seen, interrupted + 10, kill(seen))
    assert len(seen) < FILES
    # The jobs of the killed one come back after its lease of 5 s, by the collector in the next one,
    # which trusts a server that is up for 10 s.
    dead = "orizuru:{files}:dead"

    def is_done():
        lists = redis.command("KEYS", "orizuru:{files}:processing:*")
        return (
            redis.command("LLEN", dead) == 1
            and redis.command("SCARD", "orizuru:{files}:consumers") == 1
            and redis.command("EXISTS", "files", "orizuru:{files}:suspects") == 0
            # A fence has another type, and the element that is left is the header.
            and all(redis.command("TYPE", key) != b"list" or redis.command("LLEN", key) == 1
                    for key in lists)
        )

    def finish(worker):
        support.eventually(is_done)
        return stop(seen)(worker)

    counts = work(redis, seen, FILES, finish)
    assert seen == expected, set(expected) - set(seen)
    assert counts.endswith(", dead: 1"), counts
    [entry] = redis.command("LRANGE", dead, 0, -1)
    assert b"cannot read " + bytes(gone) in entry, entry
    for key in "files", "orizuru:{files}:scheduled", "orizuru:{files}:unack":
        assert redis.command("EXISTS", key) == 0, key
    assert redis.command("SCARD", "orizuru:{files}:consumers") == 0

    support.run(JOB_WORKER, redis.address, "add", f"{folder}/nowhere", status=1)
    support.run(JOB_WORKER, redis.address, status=1)
