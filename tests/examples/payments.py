# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""payments moves the money once, whichever process is killed, and says so; so does the ledger."""

import contextlib
import os
import pathlib
import pwd
import subprocess
import sys
import tempfile

import support

PAYMENTS = sys.argv[1]
BIN = pathlib.Path(os.environ["POSTGRES_BIN"])
TRANSFERS = 600


def unprivileged():
    """PostgreSQL does not run as root."""
    if os.geteuid() == 0:
        return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    return []


@contextlib.contextmanager
def postgres(folder):
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    data = pathlib.Path(folder) / "data"
    subprocess.run([*unprivileged(), BIN / "initdb", "-D", data, "-U", "bank", "--auth=trust"]
                   + ["--no-sync", "--encoding=UTF8", "--locale=C"],
                   check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([*unprivileged(), BIN / "postgres", "-D", data, "-k", folder]
                              + ["-c", "listen_addresses=", "-c", "fsync=off"],
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        support.eventually(lambda: psql(folder, "SELECT 1") == "1")
        yield f"host={folder} user=bank dbname=postgres"
    finally:
        server.kill()
        server.wait()


def psql(folder, query):
    done = subprocess.run([BIN / "psql", "-h", folder, "-U", "bank", "-d", "postgres"]
                          + ["-At", "-c", query], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def main():
    with support.private_redis() as redis, tempfile.TemporaryDirectory() as folder:
        with postgres(folder) as database:
            wrote = support.run(PAYMENTS, redis.address, database, str(TRANSFERS)).stdout.decode()
            assert "Redis is emptied" in wrote
            assert wrote.endswith("Each transfer was carried out once.\n")
            states = psql(folder, "SELECT state, count(*) FROM orizuru_ledger GROUP BY state")
            assert states == f"completed|{TRANSFERS}", states
            done = psql(folder, "SELECT count(*), count(DISTINCT transfer) FROM carried_out")
            assert done == f"{TRANSFERS}|{TRANSFERS}", done
            assert psql(folder, "SELECT sum(balance) FROM accounts") == "50000"


main()
