#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Measures what a program pays to compile the library, beside a baseline without it.

Each row is one translation unit. The units take turns, so that a busy machine slows all of them:
compare the ratios. Header-only is the default; compiled once defines ORIZURU_SEPARATE_COMPILATION.
"""

import argparse
import dataclasses
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ["-O2", "-std=c++20", "-DMSGPACK_NO_BOOST"]
ONCE = "-DORIZURU_SEPARATE_COMPILATION"


@dataclasses.dataclass(frozen=True)
class Unit:
    name: str
    source: str
    flags: tuple = ()


BASELINE = Unit("baseline", "baseline.cpp")
UNITS = [
    BASELINE,
    Unit("hello, header-only", "hello.cpp"),
    Unit("hello, compiled once", "hello.cpp", (ONCE,)),
    Unit("worker, header-only", "worker.cpp"),
    Unit("worker, compiled once", "worker.cpp", (ONCE,)),
    Unit("the library itself", "orizuru.cpp", (ONCE,)),
]


@dataclasses.dataclass(frozen=True)
class Cost:
    seconds: float
    megabytes: float


def main():
    options = parse_options()
    units = [BASELINE] + [u for u in UNITS if u is not BASELINE and options.only in u.name]
    costs = {unit.name: [] for unit in units}
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(options.rounds):
            for unit in units:
                costs[unit.name].append(compile_once(unit, options, scratch))
    print(f"{shlex.join(options.compiler + FLAGS)} -c, median of {options.rounds}")
    show({name: median(rounds) for name, rounds in costs.items()})


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--compiler", type=shlex.split, default=["g++"])
    parser.add_argument("--include", default=HERE.parents[2] / "include", type=pathlib.Path)
    parser.add_argument("--only", metavar="WORD", default="", help="the units with it in the name")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def compile_once(unit, options, scratch):
    directory = options.include if unit.source == "orizuru.cpp" else HERE
    command = options.compiler + FLAGS + list(unit.flags)
    command += [f"-I{options.include}", "-c", str(directory / unit.source)]
    command += ["-o", os.path.join(scratch, "unit.o")]
    return run(command)


def run(command):
    with subprocess.Popen(command) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed: {shlex.join(command)}")
    return Cost(used.ru_utime, used.ru_maxrss / 1024)


def median(rounds):
    return Cost(
        statistics.median(cost.seconds for cost in rounds),
        statistics.median(cost.megabytes for cost in rounds),
    )


def show(medians):
    baseline = medians[BASELINE.name]
    print(f"{'':24}{'user CPU':>10}{'ratio':>8}{'memory':>10}")
    for name, cost in medians.items():
        ratio = cost.seconds / baseline.seconds
        print(f"{name:24}{cost.seconds:8.2f} s{ratio:8.2f}{cost.megabytes:7.0f} MB")


if __name__ == "__main__":
    main()
