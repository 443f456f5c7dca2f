# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""quickstart counts like wc, accounts for everything, and leaves nothing in Redis.

usage: quickstart.py QUICKSTART [DIRECTORY]
With a directory, it counts this one only.
"""

import os
import pathlib
import pty
import subprocess
import sys
import tempfile

import support

QUICKSTART, *DIRECTORIES = sys.argv[1:]


def wc(directory):
    files = subprocess.run(
        ["find", directory, "-type", "f", "-print0"], stdout=subprocess.PIPE, check=True
    ).stdout
    last = subprocess.run(
        ["wc", "--files0-from=-"],
        input=files,
        stdout=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        check=True,
    ).stdout.splitlines()[-1]
    return [int(number) for number in last.split()[:3]], files.count(b"\0")


def check(redis, directory):
    wrote = support.run(QUICKSTART, redis.address, directory).stdout.decode(errors="replace")
    totals = next(line for line in wrote.splitlines() if line.endswith(" total"))
    rows = {}
    for line in wrote.splitlines():
        *name, number = line.split() or [""]
        if number.isdigit():
            rows[" ".join(name)] = int(number)
    expected, files = wc(directory)
    assert [int(number) for number in totals.split()[:3]] == expected, (totals, expected)
    assert rows["enqueued"] == files + 8 + 5, rows
    assert rows["counted"] == files, rows
    assert rows["retried"] == 16, rows
    assert rows["buried"] == 8, rows
    assert rows["undecodable"] == 5, rows
    assert rows["reclaimed"] >= 1 and rows["duplicates dropped"] >= 1, rows
    assert wrote.count(": No such file or directory, tried 3 times") == 8
    assert wrote.count("dead: undecodable: ") == 5
    assert wrote.endswith("All is accounted for.\n")
    assert redis.command("KEYS", "*") == []


def make_awkward(folder):
    """Makes files and others, with names and contents of all kinds."""
    name = os.fsencode(folder) + b"/"
    contents = {
        b"empty": b"",
        b"all bytes": bytes(range(256)) * 300,
        b"each byte alone": b"".join(b" %c " % byte for byte in range(256)),
        b"no newline at the end": b"a b",
        b"word across blocks": b"x" * 65535 + b"yz " + b"w" * 65536 + b" e",
        b"unprintable words": b"\x01 \x80\xff \x01a\x02 a\x01b \xc3\xa9 \x0b\x0c\r",
        b"new\nline": b"1\n",
        b"not utf-8 \xff\xfe": b"2\n",
        b"-n": b"3\n",
        b" ": b"4\n",
        b"'\"*?": b"5\n",
    }
    os.makedirs(name + b"deep\n/\xff/er")
    for file, content in contents.items():
        for place in (name, name + b"deep\n/\xff/er/"):
            with open(place + file, "wb") as output:
                output.write(content)
    os.mkdir(name + b"empty folder")
    os.mkfifo(name + b"fifo")
    os.symlink(b"empty", name + b"link to a file")
    os.symlink(b"deep\n", name + b"link to a folder")
    os.symlink(b"nowhere", name + b"broken link")


def on_a_terminal(redis):
    master, slave = pty.openpty()
    with subprocess.Popen(
        [QUICKSTART, redis.address, support.SOURCE_ROOT / "include"], stdout=slave
    ) as process:
        os.close(slave)
        wrote = b""
        while True:
            try:
                wrote += os.read(master, 65536)
            except OSError:  # the other end is closed
                break
        assert process.wait(support.PATIENCE) == 0
    assert b"\r[" + b"#" * 50 + b"]" in wrote, wrote


def check_all_kinds(server, scratch):
    (scratch / "awkward").mkdir()
    make_awkward(scratch / "awkward")
    (scratch / "one").mkdir()
    (scratch / "one" / "file").write_text("a single file\n")
    (scratch / "none").mkdir()

    check(server, support.SOURCE_ROOT / "include")
    check(server, scratch / "awkward")
    check(server, scratch / "one")
    on_a_terminal(server)

    support.run(QUICKSTART, server.address, scratch / "none", status=1)
    support.run(QUICKSTART, server.address, scratch / "nowhere", status=1)
    support.run(QUICKSTART, f"unix://{scratch}/no.sock", scratch / "one", status=1)
    support.run(QUICKSTART, "redis://:6379:", status=1)
    support.run(QUICKSTART, status=1)


with support.private_redis() as redis_server, tempfile.TemporaryDirectory() as folder:
    if not DIRECTORIES:
        check_all_kinds(redis_server, pathlib.Path(folder))
    for tree in DIRECTORIES:
        check(redis_server, tree)
