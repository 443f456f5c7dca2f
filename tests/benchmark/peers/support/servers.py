# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Private servers: each in a temporary folder, on a Unix socket or a free port of 127.0.0.1, and
ended by its pid. The system's services are neither used nor touched."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time


@contextlib.contextmanager
def private_server(kind):
    """Returns the address of a new server of that kind, and its process."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="orizuru-peers-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield SERVERS[kind](stack, folder)


def redis(stack, folder):
    path = folder / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", path, "--dir", folder]
    server = start(stack, folder, command + ["--save", "", "--appendonly", "no"])
    wait_for(server, socket.AF_UNIX, str(path))
    return str(path), server


def beanstalkd(stack, folder):
    path = folder / "beanstalkd.sock"
    server = start(stack, folder, ["beanstalkd", "-l", f"unix:{path}"])
    wait_for(server, socket.AF_UNIX, str(path))
    return str(path), server


def nats(stack, folder):
    port = free_port()
    command = ["nats-server", "--addr", "127.0.0.1", "--port", port, "--jetstream"]
    server = start(stack, folder, command + ["--store_dir", folder])
    wait_for(server, socket.AF_INET, ("127.0.0.1", port))
    return f"nats://127.0.0.1:{port}", server


def rabbitmq(stack, folder):
    port, epmd_port = free_port(), free_port()
    config = folder / "rabbitmq.conf"
    config.write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n", encoding="ascii")
    environment = {
        "HOME": folder,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": epmd_port,
        "RABBITMQ_CONFIG_FILE": config,
        "RABBITMQ_CONF_ENV_FILE": folder / "none",
        "RABBITMQ_DIST_PORT": free_port(),
        "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "enabled_plugins",
        "RABBITMQ_LOG_BASE": folder,
        "RABBITMQ_MNESIA_BASE": folder,
        "RABBITMQ_NODENAME": "peers@localhost",
        # The script becomes the server, instead of waiting for it.
        "RUNNING_UNDER_SYSTEMD": "true",
    }
    # Erlang would leave its port mapper behind as a daemon: this one ends with the server.
    epmd = start(stack, folder, ["epmd", "-port", epmd_port, "-address", "127.0.0.1"])
    wait_for(epmd, socket.AF_INET, ("127.0.0.1", epmd_port))
    # Not the one in PATH: it changes to the user and the folders of the system's service.
    server = start(stack, folder, ["/usr/lib/rabbitmq/bin/rabbitmq-server"], environment)
    wait_for(server, socket.AF_INET, ("127.0.0.1", port))
    return f"127.0.0.1:{port}", server


def postgres(stack, folder):
    """Beside it a Redis, for those that need both. Both sockets lie in the folder."""
    redis(stack, folder)
    as_nobody = []
    if os.geteuid() == 0:  # as which it refuses to run
        as_nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        shutil.chown(folder, "nobody")
    binaries = pathlib.Path(subprocess.check_output(["pg_config", "--bindir"], text=True).strip())
    make = [binaries / "initdb", "-D", folder / "data", "-U", "peer", "--auth=trust"]
    subprocess.run([*as_nobody, *make], check=True, stdout=subprocess.DEVNULL)
    command = [binaries / "postgres", "-D", folder / "data", "-k", folder]
    server = start(stack, folder, as_nobody + command + ["-c", "listen_addresses="])
    wait_for(server, socket.AF_UNIX, str(folder / ".s.PGSQL.5432"))
    rows = ("CREATE TABLE rows (id integer PRIMARY KEY, number integer NOT NULL);"
            "INSERT INTO rows SELECT n, 0 FROM generate_series(0, 999) AS n")
    client = ["psql", "-q", "-h", folder, "-U", "peer", "-d", "postgres"]
    for _ in range(100):
        if subprocess.run([*client, "-c", rows], check=False, stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.1)  # it takes connections before it answers
        else:
            return str(folder), server
    raise RuntimeError("PostgreSQL does not answer")


SERVERS = {one.__name__: one for one in (redis, beanstalkd, nats, rabbitmq, postgres)}


def start(stack, folder, command, environment=()):
    """Starts a process in a group of its own, which ends with the stack."""
    words = [str(word) for word in command]
    log = stack.enter_context(open(folder / f"{os.path.basename(words[0])}.log", "wb"))
    server = subprocess.Popen(
        words,
        cwd=folder,
        env=os.environ | {name: str(value) for name, value in dict(environment).items()},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    server.log = pathlib.Path(log.name)
    stack.callback(end, server)
    return server


def end(process):
    """Ends a process that was started here, with its children."""
    for send in (process.terminate, lambda: os.killpg(process.pid, 9)):
        with contextlib.suppress(ProcessLookupError):
            send()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)


def wait_for(server, family, address, patience=60):
    """Returns when the server takes connections."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), socket.socket(family) as probe:
            probe.connect(address)
            return
        time.sleep(0.02)
    raise RuntimeError(f"{server.args[0]} did not start:\n" + server.log.read_text()[-2000:])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
