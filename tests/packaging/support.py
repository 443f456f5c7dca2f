# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""What the tests of this folder share: a scratch folder, a redis-server, commands that must work."""

import contextlib
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import tempfile
import time

CXX = shlex.split(os.environ["CXX"])
MESON = os.environ["MESON"]
SOURCE_ROOT = pathlib.Path(os.environ["SOURCE_ROOT"])
CONSUMER = pathlib.Path(__file__).with_name("consumer.cpp")


@contextlib.contextmanager
def scratch():
    """A folder outside of the source tree, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="orizuru-packaging-") as folder:
        yield pathlib.Path(folder).resolve()


def run(*command, fails=False, **options):
    """Runs a command, shows it and what it prints, and returns that."""
    words = [str(word) for word in command]
    print("+", shlex.join(words), flush=True)
    ended = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    print(ended.stdout, flush=True)
    if (ended.returncode != 0) != fails:
        raise SystemExit(f"{words[0]} returned {ended.returncode}")
    return ended.stdout


def flags(*packages, **options):
    """The compiler's and linker's flags, as pkg-config gives them."""
    return shlex.split(run("pkg-config", "--cflags", "--libs", *packages, **options))


def compile_consumer(output, *flags_after):
    run(*CXX, "-std=c++20", "-Wall", "-Wextra", CONSUMER, "-o", output, *flags_after)


def copy_as_subproject(folder):
    """What a parent project needs of this tree: neither tests nor examples."""
    folder.mkdir(parents=True)
    shutil.copy(SOURCE_ROOT / "meson.build", folder)
    shutil.copytree(SOURCE_ROOT / "include", folder / "include")
    (folder / "subprojects").mkdir()
    for wrap in (SOURCE_ROOT / "subprojects").glob("*.wrap"):
        shutil.copy(wrap, folder / "subprojects")
    shutil.copytree(
        SOURCE_ROOT / "subprojects" / "packagefiles", folder / "subprojects" / "packagefiles"
    )


def build_with_parent(folder, *setup_options, env=None):
    """Builds the consumer in a Meson project that has this one as its subproject."""
    shutil.copy(CONSUMER, folder)
    (folder / "meson.build").write_text(
        """
project('parent', 'cpp', default_options: ['cpp_std=c++20', 'warning_level=3', 'werror=true'])
orizuru_dep = dependency('orizuru', fallback: 'orizuru')
executable('consumer', 'consumer.cpp', dependencies: orizuru_dep)
"""
    )
    # An orizuru that is installed on this machine is not the one to be tested.
    run(MESON, "setup", "--force-fallback-for=orizuru", *setup_options, "build", cwd=folder, env=env)
    run(MESON, "compile", "-C", "build", cwd=folder, env=env)
    return folder / "build" / "consumer"


def answers(path):
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        return client.recv(7) == b"+PONG\r\n"
    return False


@contextlib.contextmanager
def redis_server(folder):
    """A redis-server on a Unix socket in the folder; gives its address."""
    path = folder / "redis.sock"
    server = subprocess.Popen(
        [os.environ["REDIS_SERVER"], "--port", "0", "--unixsocket", path, "--dir", folder]
        + ["--save", "", "--appendonly", "no", "--logfile", folder / "redis.log"],
        stdin=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while not answers(path):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("redis-server: " + (folder / "redis.log").read_text())
            time.sleep(0.01)
        yield f"unix://{path}"
    finally:
        server.kill()
        server.wait()


def check_consumer(program, *, hiredis=None, msgpack=None):
    """Runs the consumer, and sees to it that it was built with the libraries that were meant."""
    with scratch() as folder, redis_server(folder) as address:
        told = run(program, address, timeout=60).splitlines()
    if told[-1] != "ok":
        raise SystemExit("the consumer did not say ok")
    for line in [f"hiredis {hiredis}" if hiredis else "", f"msgpack {msgpack}" if msgpack else ""]:
        if line and line not in told:
            raise SystemExit(f"not built with {line}")
