#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Measures the library against a bare hiredis program that sends the same commands.

Both run in turns against the same redis-server, which the benchmark starts for itself, and are
pinned: all on one CPU, then Redis on one and the programs on another; then so are the programs'
threads, while the programs may use both CPUs. Only the ratios say something about the library; the
rates belong to the machine.
"""

import argparse
import dataclasses
import datetime
import fnmatch
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys

import machine
import report
import results
from private_redis import private_redis
from results import PROGRAMS
from workloads import ONE_CORE, TWO_CORES, APART, WORKLOADS

RUN_TIMEOUT = 60  # seconds


@dataclasses.dataclass(frozen=True)
class Placement:
    """The CPUs of Redis and of the programs, and what the programs are told of it."""

    redis: set
    programs: set
    arguments: dict = dataclasses.field(default_factory=dict)


def main():
    # So that the started programs end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    options = parse_options()
    workloads = chosen(options.only)
    if options.list:
        print("\n".join(workload.name for workload in workloads))
        return
    described = machine.describe(options.redis_server, options.compiler)
    print(report.heading())
    rows = []
    for name, placement in placements(options.cores).items():
        here = [workload for workload in workloads if name in workload.placements]
        for server, group in itertools.groupby(here, key=lambda workload: workload.server):
            with private_redis(options.redis_server, placement.redis, list(server)) as redis:
                for workload in group:
                    rows += measure(workload, name, placement, redis, options)
    result = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": described,
        "quick": options.quick,
        "pairs": options.pairs,
        "rows": rows,
        "comparisons": results.compare(rows),
    }
    report.show_rest(result)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
        print(f"all figures: {options.json}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--bare", required=True, help="the bare program")
    parser.add_argument("--library", required=True, help="the library's program")
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--compiler", default="unknown", help="with which both were built")
    parser.add_argument("--only", metavar="PATTERN", default="", help="a name, part of one, a glob")
    parser.add_argument("--cores", type=int, choices=(1, 2), help="one placement only")
    parser.add_argument("--pairs", type=int, default=5, help="turns of each program")
    parser.add_argument("--quick", action="store_true", help="a few messages once, no verdict")
    parser.add_argument("--list", action="store_true", help="names the workloads and ends")
    parser.add_argument("--json", metavar="PATH", help="where all figures go")
    options = parser.parse_args()
    if options.quick:
        options.pairs = 1
    return options


def chosen(pattern):
    """The workload of this name, or all whose names contain the pattern."""
    exact = [workload for workload in WORKLOADS if workload.name == pattern]
    found = exact or [w for w in WORKLOADS if fnmatch.fnmatch(w.name, f"*{pattern}*")]
    return found or sys.exit(f"no workload is called {pattern}")


def placements(cores):
    cpus = sorted(os.sched_getaffinity(0))
    found = {}
    if cores in (None, 1):
        found[ONE_CORE] = Placement({cpus[0]}, {cpus[0]})
    if cores in (None, 2) and len(cpus) > 1:
        found[TWO_CORES] = Placement({cpus[0]}, {cpus[1]})
        found[APART] = Placement({cpus[0]}, set(cpus[:2]), {"cpu": cpus[1]})
    elif cores in (None, 2):
        print("two cores: left out, this machine gives us one CPU only")
    return found


def measure(workload, name, placement, redis, options):
    """A row for each figure of the workload."""
    arguments = {**workload.arguments, **(workload.quick if options.quick else {})}
    arguments.update(placement.arguments)
    runs = {program: [] for program in PROGRAMS}
    for pair in range(options.pairs):
        # The program that comes second finds the machine warm.
        for program in PROGRAMS if pair % 2 == 0 else reversed(PROGRAMS):
            redis.empty()
            path = getattr(options, program)
            outcome = run(path, workload.command, redis.socket, arguments, placement.programs)
            if "missing" in outcome:
                print(f"{workload.name}: left out, the {program} has no {outcome['missing']}")
                return []
            runs[program].append(outcome)
    rows = [results.row_of(workload, figure, name, runs) for figure in workload.figures]
    if workload.command != "memory":
        rows[0]["cpu"] = results.cpu_times(runs)
    for row in rows:
        print(report.line(row, not options.quick), flush=True)
    return rows


def run(path, command, socket, arguments, cpus):
    words = [path, command, socket] + [f"{name}={value}" for name, value in arguments.items()]
    try:
        ended = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
            timeout=RUN_TIMEOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"waited {RUN_TIMEOUT} s for the messages: {' '.join(words)}")
    if ended.returncode != 0:
        sys.exit(f"failed with {ended.returncode}: {' '.join(words)}")
    return json.loads(ended.stdout)


if __name__ == "__main__":
    main()
