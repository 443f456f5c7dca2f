# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Installs what peers need: Debian's packages with apt-get, npm's into build/peers."""

import contextlib
import os
import pathlib
import shutil
import subprocess

from measure import say
from peer import BUILD

POLICY = pathlib.Path("/usr/sbin/policy-rc.d")


def install(needs):
    debian = sorted({package for kind, _, package in needs if kind != "npm"})
    npm = sorted({package for kind, _, package in needs if kind == "npm"})
    if npm and not shutil.which("npm"):
        debian.append("npm")
    if debian and not shutil.which("apt-get"):
        say("No apt-get here; please install (Debian's names):", *debian)
    elif debian:
        say("Installing with apt-get, without starting services:", *debian)
        apt_get("update", "-qq")
        with no_service_started():
            apt_get("install", "-y", "-qq", "--no-install-recommends", *debian)
    if npm and shutil.which("npm"):
        say(f"Installing with npm into {BUILD}:", *npm)
        BUILD.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", BUILD, "--no-audit", "--no-fund", *npm]
        subprocess.run(command, check=False)


def apt_get(*words):
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    # Packages that could not be installed are named as missing later.
    subprocess.run([*as_root(), *environment, "apt-get", *words],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)


def as_root():
    return [] if os.getuid() == 0 or not shutil.which("sudo") else ["sudo"]


@contextlib.contextmanager
def no_service_started():
    """Debian asks policy-rc.d whether a package may start its service: 101 forbids it. A file
    that is there already belongs to the machine and stays unchanged."""
    if POLICY.exists() or POLICY.is_symlink():
        if subprocess.run([POLICY, "rabbitmq-server", "start"], check=False).returncode != 101:
            raise SystemExit(f"{POLICY} lets packages start their services: install them yourself.")
        yield
        return
    # noclobber: when another process was faster, its file stays, and is not removed here.
    write = f"set -C; printf '#!/bin/sh\\nexit 101\\n' > {POLICY} && chmod 755 {POLICY}"
    subprocess.run([*as_root(), "sh", "-c", write], check=True)
    try:
        yield
    finally:
        subprocess.run([*as_root(), "rm", "-f", str(POLICY)], check=False)
