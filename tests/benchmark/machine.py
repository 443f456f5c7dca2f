# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Names the machine: a figure means nothing without it. A busy machine spoils the figures."""

import os
import pathlib
import platform
import subprocess


def describe(redis_server, compiler):
    return {
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "kernel": platform.release(),
        "redis": redis_version(redis_server),
        "compiler": compiler,
    }


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def redis_version(redis_server):
    text = subprocess.run(
        [redis_server, "--version"], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    return next(word[2:] for word in text.split() if word.startswith("v="))
