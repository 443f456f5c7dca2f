# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Shared by the tests of the examples: a redis-server, its commands, and running programs."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

SOURCE_ROOT = pathlib.Path(os.environ["SOURCE_ROOT"])
PATIENCE = 60  # seconds, far beyond what a healthy run needs


class Redis:
    """A private redis-server on a Unix socket, and one connection to it."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "redis.sock"
        self.address = f"unix://{self.path}"
        self._server = None
        self._connection = None
        self._replies = None
        self.start()

    def start(self):
        self._server = subprocess.Popen(
            [os.environ["REDIS_SERVER"], "--port", "0", "--unixsocket", self.path]
            + ["--dir", self.path.parent, "--save", "", "--appendonly", "no"]
            + ["--logfile", self.path.parent / "redis.log"],
            stdin=subprocess.DEVNULL,
        )
        eventually(self._connect)

    def kill(self):
        self._server.kill()
        self._server.wait()

    def pause(self):
        self._server.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._server.send_signal(signal.SIGCONT)

    def _connect(self):
        self._connection = socket.socket(socket.AF_UNIX)
        try:
            self._connection.connect(str(self.path))
        except OSError:
            assert self._server.poll() is None, "redis-server has ended"
            return False
        self._replies = self._connection.makefile("rb")
        return self.command("PING") == b"PONG"

    def command(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self._connection.sendall(b"*%d\r\n" % len(words) + b"".join(parts))
        return self._reply()

    def _reply(self):
        line = self._replies.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return self._replies.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        assert kind != b"-", rest
        return int(rest) if kind == b":" else rest


@contextlib.contextmanager
def private_redis():
    with tempfile.TemporaryDirectory(prefix="orizuru-examples-") as folder:
        redis = Redis(folder)
        try:
            yield redis
        finally:
            redis.kill()


def eventually(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def run(*command, status=0, **options):
    """Runs a program to its end; returns its output."""
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240, check=False, **options
    )
    print("+", command, "->", ended.returncode)
    print((ended.stdout + ended.stderr).decode(errors="replace"), flush=True)
    assert ended.returncode == status, ended.returncode
    return ended


class Program:
    """A program that runs beside the test; its lines are read as they come."""

    def __init__(self, *command):
        print("+", command, flush=True)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def line(self):
        line = self._process.stdout.readline().rstrip("\n")
        print("  ", line, flush=True)
        return line

    def write(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def kill(self):
        self._process.kill()
        self._process.wait()

    def send(self, number):
        self._process.send_signal(number)

    def status(self):
        return self._process.wait(PATIENCE)

    def end_of_input(self):
        self._process.stdin.close()
        assert self._process.wait(PATIENCE) == 0

    def stop(self, number=signal.SIGTERM):
        self._process.send_signal(number)
        assert self.line() == "stopped"
        assert self._process.wait(PATIENCE) == 0
