# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""A redis-server of the benchmark's own on a Unix socket, pinned to some CPUs."""

import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
import time

PATIENCE = 30  # seconds


class Redis:
    def __init__(self, server, folder, cpus, arguments):
        self.socket = str(pathlib.Path(folder) / "redis.sock")
        self._server = subprocess.Popen(
            [server, "--port", "0", "--unixsocket", self.socket, "--dir", folder]
            + ["--logfile", str(pathlib.Path(folder) / "redis.log"), "--save", ""]
            + arguments,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        self._connection = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + PATIENCE
        while self._connection.connect_ex(self.socket) != 0:
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("redis-server does not start")
            time.sleep(0.005)

    def empty(self):
        """Removes all keys and waits for that: nothing is left to do in the background."""
        self._connection.sendall(b"FLUSHALL SYNC\r\n")
        reply = self._connection.recv(1000)
        if reply != b"+OK\r\n":
            raise RuntimeError(f"FLUSHALL was answered by {reply!r}")

    def end(self):
        self._connection.close()
        self._server.kill()
        self._server.wait()


@contextlib.contextmanager
def private_redis(server, cpus, arguments):
    with tempfile.TemporaryDirectory(prefix="orizuru-benchmark-") as folder:
        redis = Redis(server, folder, cpus, arguments)
        try:
            yield redis
        finally:
            redis.end()
