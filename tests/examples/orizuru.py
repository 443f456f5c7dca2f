# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The program orizuru: its address, its exit codes, and its end at a signal."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
import unicodedata
import urllib.request

import support

ORIZURU = sys.argv[1]


def environment(address):
    return {**os.environ, "ORIZURU_URL": address}


# An envelope with an id of 32 digits, enqueued in 1970; and the entry of the dead list with that payload.
ID = b"5f0c9d2e" * 4
JOB = b"\x9b\x01\xd9\x20" + ID + b"\x01\x00\x00\xc0\xc0\xa0\xa0\xa0\xc4\x01x"
DEAD = b"\x94\x02" + b"".join(
    b"\xc6" + len(part).to_bytes(4, "big") + part for part in (JOB, b"no such user: 7")
) + b"\x00"


def check_commands_of_readme(redis):
    """Each command that examples/program.md shows ends well, with one message less if it removes."""
    text = (support.SOURCE_ROOT / "examples/program.md").read_text(encoding="utf-8")
    section = text.split("\n## The program\n", 1)[1].split("\n## ", 1)[0]
    commands = re.findall(r"^build/examples/orizuru (.*?)(?: +#.*)?$", section, re.MULTILINE)
    assert len(commands) > 10 and "ls -n 2" in commands, commands
    for command in commands:
        if command == "ls -n 2":
            continue
        redis.command("FLUSHALL")
        redis.command("LPUSH", "orders", b"no job")
        redis.command("SADD", "orizuru:queues", "orders")
        dead = "dead" in command
        place = "orizuru:{orders}:dead" if dead else "orders"
        redis.command("LPUSH", place, DEAD if dead else JOB)
        ended = support.run(ORIZURU, *shlex.split(command), env=environment(redis.address))
        assert "5f0c" not in command or ID in ended.stdout, ended
        removes = command.split()[0] in ("rm", "mv", "clear", "cancel") or command.startswith("run") and dead
        removes = removes and "--dry-run" not in command
        assert redis.command("LLEN", place) == (1 if dead else 2) - removes, command


def fields_of(document):
    """Their names, in order; of an object in it with its own."""
    return [(name, fields_of(value)) if isinstance(value, dict) and name != "attributes" else name
            for name, value in document.items()]


def check_json_of_readme(redis):
    """examples/program.md shows the fields of --json."""
    text = (support.SOURCE_ROOT / "examples/program.md").read_text(encoding="utf-8")
    section = text.split("\n## The program\n", 1)[1].split("\n## ", 1)[0]
    shown = [json.loads(block) for block in
             re.findall(r"^```json\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)]
    queue, consumer, message = map(fields_of, shown)
    redis.command("LPUSH", "orizuru:{orders}:dead", DEAD)
    redis.command("SADD", "orizuru:{orders}:consumers", "w:h:1:0123456789abcdef")
    redis.command("HSET", "orizuru:{orders}:worker:w:h:1:0123456789abcdef", "threads", "4")

    def answer(*arguments):
        ended = support.run(ORIZURU, "-u", redis.address, *arguments, "--json")
        return json.loads(ended.stdout)

    assert fields_of(answer("ls", "orders")["queues"][0]) == queue
    assert fields_of(answer("show", "orders")) == [*queue, "consumer_list"]
    assert fields_of(answer("workers", "orders")["consumers"][0]) == consumer
    assert fields_of(answer("peek", "orders", "--where", "dead")["messages"][0]) == message
    redis.command("SADD", "orizuru:queues", "orders")
    steps = {"rm orders 5f0c --dry-run": "run`, `rm", "pause orders": "pause",
             "resume orders": "resume", "forget orders": "forget"}
    for command, name in steps.items():
        row = re.search(rf"^\| `{name}.*", section, re.MULTILINE)[0]
        for field in answer(*command.split()):
            assert f'"{field}":' in row, (field, row)
    redis.command("FLUSHALL")


def check_exit_codes(redis):
    listed = support.run(ORIZURU, "-u", redis.address, "ls", "q", "--json", env=environment("x://"))
    assert json.loads(listed.stdout)["queues"][0]["waiting"] == 1
    away = support.run(ORIZURU, "ls", status=1, env=environment(f"unix://:secret@{redis.path}.not"))
    assert f"{redis.path}.not".encode() in away.stderr and b"secret" not in away.stderr
    assert away.stdout == b""
    wrong = support.run(ORIZURU, "ls", status=2, env=environment("redis://:secret@h:x"))
    assert b"secret" not in wrong.stderr
    encrypted = support.run(ORIZURU, "-u", "rediss://127.0.0.1:1", "ls", status=1)
    assert b"rediss://127.0.0.1:1: " in encrypted.stderr
    support.run(ORIZURU, "fold", status=2)
    build = (support.SOURCE_ROOT / "meson.build").read_text(encoding="utf-8")
    version = re.search(r"version: '(.+?)'", build)[1].encode()
    assert support.run(ORIZURU, "--version").stdout == b"orizuru " + version + b"\n"
    assert b"--no-payloads" in support.run(ORIZURU, "web", "--help").stdout
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([ORIZURU, "ls", "q"], stdout=full, stderr=subprocess.PIPE,
                               check=False, env=environment(redis.address))
    assert ended.returncode == 1 and b"written" in ended.stderr, ended


def check_closed_streams(redis):
    """What is closed when it starts never becomes a connection: nobody's words reach Redis there."""
    redis.command("SADD", "orizuru:queues", "DEL important")
    for closed in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        redis.command("SET", "important", "treasure")
        for arguments in (["ls"], ["ls", "--json"], ["peek", "DEL important", "--where", "dead"],
                          ["show", "DEL important", "--fold"], ["--help"]):
            def close(descriptors=closed):
                for descriptor in descriptors:
                    os.close(descriptor)

            ended = subprocess.run([ORIZURU, *arguments], preexec_fn=close, check=False,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment(redis.address))
            what = closed, arguments, ended
            assert redis.command("GET", "important") == b"treasure", what
            wrong = "--fold" in arguments
            assert ended.returncode == (2 if wrong else 1 if 1 in closed else 0), what
            if 2 not in closed:
                assert (b"written" in ended.stderr) == (1 in closed and not wrong), what
            if 1 not in closed and not wrong:
                assert ended.stdout, what
    redis.command("SREM", "orizuru:queues", "DEL important")
    # A link that nobody can read would leave a page that nobody can open.
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([ORIZURU, "-u", redis.address, "web", "127.0.0.1:0"], check=False,
                               stdout=full, stderr=subprocess.PIPE, timeout=support.PATIENCE)
    assert ended.returncode == 1 and b"link" in ended.stderr, ended


def check_stops_at(redis, number):
    command = [ORIZURU, "-u", redis.address, "ls", "q", "-n", "3600", "--json"]
    with support.Program(*command) as program:
        assert json.loads(program.line())["queues"][0]["queue"] == "q"
        program.send(number)
        assert program.status() == 0


def has_sigint_among(kind, pid):
    """In one of the sets of signals that /proc tells of the process and its first thread."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    signals = int(re.search(rf"^{kind}:\s+(\w+)", status, re.MULTILINE)[1], 16)
    return bool(signals >> (signal.SIGINT - 1) & 1)


def has_socket(pid):
    try:
        files = pathlib.Path(f"/proc/{pid}/fd").iterdir()
        return any(os.readlink(file).startswith("socket:") for file in files)
    except FileNotFoundError:  # closed meanwhile
        return False


def check_second_signal(redis):
    """It ends the program at once, while that waits for Redis."""
    redis.pause()
    none = subprocess.DEVNULL
    command = [ORIZURU, "-u", redis.address, "ls", "q", "-n", "1"]
    with subprocess.Popen(command, stdin=none, stdout=none, stderr=none) as program:
        support.eventually(lambda: has_socket(program.pid))
        # The first thread waits for Redis; the one that waits for signals may show them as let through.
        assert has_sigint_among("SigBlk", program.pid)
        program.send_signal(signal.SIGINT)
        support.eventually(lambda: not has_sigint_among("ShdPnd", program.pid))
        assert program.poll() is None
        program.send_signal(signal.SIGINT)
        status = program.wait(support.PATIENCE)
        assert status == -signal.SIGINT, status
    redis.go_on()


def check_web(redis):
    """It prints the page's link, serves the page and its data, and ends at a signal."""
    command = [ORIZURU, "web", "127.0.0.1:0", "--read-only", "-u", redis.address]
    with support.Program(*command) as program:
        origin, token = re.fullmatch(r"(http://127[.]0[.]0[.]1:\d+)/#token=(\S+)", program.line()).groups()
        with urllib.request.urlopen(origin) as page:
            assert b"<title>" in page.read()
        request = urllib.request.Request(f"{origin}/api/queues",
                                         headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request) as answer:
            assert "queues" in json.load(answer)
        program.send(signal.SIGTERM)
        assert program.status() == 0
    wrong = support.run(ORIZURU, "-u", redis.address, "web", "--fold", status=2)
    assert b"--fold" in wrong.stderr
    away = support.run(ORIZURU, "-u", redis.address, "web", "192.0.2.1:80", status=2)
    assert b"192.0.2.1" in away.stderr


def frames(redis, *arguments, lines=0, columns=0, kind="xterm"):
    """Two answers of `ls` that goes on, as a terminal gets them."""
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    command = [ORIZURU, "-u", redis.address, "ls", *arguments, "-n", "0.1"]
    end = b"\x1b[J" if kind != "dumb" else b"queue "
    with subprocess.Popen(command, stdin=theirs, stdout=theirs,
                          env={**os.environ, "TERM": kind}) as program:
        os.close(theirs)
        seen = b""
        while seen.count(end) < 3:
            seen += os.read(ours, 4096)
        program.send_signal(signal.SIGINT)
        while True:
            try:
                os.read(ours, 4096)
            except OSError:
                break
        assert program.wait() == 0
    os.close(ours)
    return seen.split(end)


def columns_of(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line.decode())


def check_small_terminal(redis):
    """The heads stay, and no line breaks or scrolls, whatever the queues are."""
    redis.command("SADD", "orizuru:queues", *(f"queue {i} " + "鶴x" * 90 for i in range(60)))
    for lines, columns in [(20, 60), (20, 80), (20, 200), (5, 30), (2, 10), (1, 1)]:
        for frame in frames(redis, lines=lines, columns=columns)[:2]:
            shown = frame.replace(b"\x1b[2J", b"").replace(b"\x1b[H", b"").replace(b"\x1b[K", b"")
            shown = shown.split(b"\n")
            assert shown[-1] == b"" and len(shown) - 1 <= max(lines - 1, 2), shown
            assert max(map(columns_of, shown)) <= columns, shown
            if columns >= 60:
                assert shown[0].startswith(b"queue "), shown
                assert len(shown) == lines, shown
                assert shown[1].startswith(b"queue 0 ") and "…".encode() in shown[1], shown
                assert shown[-2].startswith("… and ".encode()), shown
                assert b" held" in shown[0] and b" dead" in shown[0], shown
            if columns == 80:
                assert b" nobody" in shown[1], shown
    redis.command("SADD", "orizuru:queues", b"odd\x1b[2J")
    redis.command("LPUSH", b"odd\x1b[2J", "x")
    ours, theirs = pty.openpty()
    with subprocess.Popen([ORIZURU, "-u", redis.address, "metrics"], stdout=theirs) as program:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end
            while some := os.read(ours, 4096):
                shown += some
        assert program.wait() == 0 and b"odd\\\\u{1b}[2J" in shown and b"\x1b" not in shown, shown
    os.close(ours)
    # A pipe gets whole names, and a terminal without a cursor only lines.
    piped = support.run(ORIZURU, "-u", redis.address, "ls")
    assert piped.stdout.count("鶴x".encode() * 90) == 60
    assert not any(b"\x1b" in frame for frame in frames(redis, kind="dumb", lines=20, columns=60))
    redis.command("DEL", "orizuru:queues", b"odd\x1b[2J")


def check_terminal(redis):
    """It writes in place."""
    first, second, *_ = frames(redis, "q", lines=24, columns=120)
    assert first.startswith(b"\x1b[2J\x1b[Hqueue "), first
    assert second.startswith(b"\x1b[Hqueue ") and second.count(b"\x1b[K\n") == 2, second


with support.private_redis() as server:
    server.command("LPUSH", "q", "a message")
    check_exit_codes(server)
    check_closed_streams(server)
    check_stops_at(server, signal.SIGINT)
    check_stops_at(server, signal.SIGTERM)
    check_second_signal(server)
    check_web(server)
    check_terminal(server)
    check_small_terminal(server)
    server.command("FLUSHALL")
    check_json_of_readme(server)
    check_commands_of_readme(server)
