#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Measures the library against a bare hiredis program that sends the same commands.

Both run in turns against the same redis-server, which the benchmark starts for itself, and are
pinned: all on one CPU, then Redis on one and the programs on another. Only the ratios say
something about the library; the rates belong to the machine.
"""

import argparse
import datetime
import fnmatch
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys

import machine
import report
from private_redis import private_redis
from workloads import COMPARISONS, ONE_CORE, TWO_CORES, WORKLOADS

PROGRAMS = ("bare", "library")
RUN_TIMEOUT = 120  # seconds


def main():
    options = parse_options()
    workloads = [w for w in WORKLOADS if fnmatch.fnmatch(w.name, f"*{options.only}*")]
    if options.list:
        print("\n".join(workload.name for workload in workloads))
        return
    if not workloads:
        sys.exit(f"no workload is called {options.only}")
    cpus = sorted(os.sched_getaffinity(0))
    placements = {}
    if options.cores != 2:
        placements[ONE_CORE] = (cpus[0], cpus[0])
    if options.cores != 1 and len(cpus) > 1:
        placements[TWO_CORES] = (cpus[0], cpus[1])
    elif options.cores != 1:
        print("two cores: left out, this machine gives us one CPU only")

    rows = []
    for placement, (server_cpu, client_cpu) in placements.items():
        here = [w for w in workloads if placement in w.placements]
        for server, group in itertools.groupby(here, key=lambda workload: workload.server):
            with private_redis(options.redis_server, server_cpu, list(server)) as redis:
                for workload in group:
                    rows += measure(workload, placement, redis, client_cpu, options)
    result = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": machine.describe(options.redis_server, options.compiler),
        "quick": options.quick,
        "pairs": options.pairs,
        "rows": rows,
        "comparisons": compare(rows),
    }
    report.show(result)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
        print(f"all figures: {options.json}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--bare", required=True, help="the bare program")
    parser.add_argument("--library", required=True, help="the library's program")
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--compiler", default="unknown", help="with which both were built")
    parser.add_argument("--only", metavar="PATTERN", default="", help="part of a name, or a glob")
    parser.add_argument("--cores", type=int, choices=(1, 2), help="one placement only")
    parser.add_argument("--pairs", type=int, default=5, help="turns of each program")
    parser.add_argument("--quick", action="store_true", help="one turn of a few messages, no verdict")
    parser.add_argument("--list", action="store_true", help="names the workloads and ends")
    parser.add_argument("--json", metavar="PATH", help="where all figures go")
    options = parser.parse_args()
    if options.quick:
        options.pairs = 1
    return options


def measure(workload, placement, redis, cpu, options):
    """A row for each figure of the workload."""
    arguments = {**workload.arguments, **(workload.quick if options.quick else {})}
    runs = {program: [] for program in PROGRAMS}
    for pair in range(options.pairs):
        # Whoever comes second finds the machine warm.
        for program in PROGRAMS if pair % 2 == 0 else reversed(PROGRAMS):
            redis.empty()
            path = getattr(options, program)
            outcome = run(path, workload.command, redis.socket, arguments, cpu)
            if "missing" in outcome:
                print(f"{workload.name}: left out, the {program} has no {outcome['missing']}")
                return []
            runs[program].append(outcome)
    rows = [row_of(workload, figure, placement, runs) for figure in workload.figures]
    for row in rows:
        print(report.line(row, options.quick), flush=True)
    return rows


def run(path, command, socket, arguments, cpu):
    words = [path, command, socket] + [f"{name}={value}" for name, value in arguments.items()]
    ended = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
        timeout=RUN_TIMEOUT,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    )
    if ended.returncode != 0:
        sys.exit(f"failed with {ended.returncode}: {' '.join(words)}")
    return json.loads(ended.stdout)


def row_of(workload, figure, placement, runs):
    values = {program: [figure.value(r) for r in runs[program]] for program in PROGRAMS}
    ratios = [library / bare for bare, library in zip(values["bare"], values["library"])]
    ratio = statistics.median(ratios)
    return {
        "workload": workload.name + figure.name,
        "arguments": workload.arguments,
        "placement": placement,
        "unit": figure.unit,
        "bare": values["bare"],
        "library": values["library"],
        "ratios": ratios,
        "ratio": ratio,
        "more_is_better": figure.more_is_better,
        "target": figure.targets.get(placement),
        "met": within(figure.targets.get(placement), ratio, figure.more_is_better),
        "cpu": {
            program: {
                side: statistics.median(r[f"{side}_cpu"] / r["messages"] for r in runs[program])
                for side in ("client", "server")
            }
            for program in PROGRAMS
        },
    }


def within(bound, value, more_is_better):
    """None where there is no bound."""
    if bound is None:
        return None
    return value >= bound if more_is_better else value <= bound


def compare(rows):
    """A line for each comparison whose workloads were both measured."""
    medians = {
        (row["workload"], row["placement"], program): statistics.median(row[program])
        for row in rows
        for program in PROGRAMS
    }
    lines = []
    for comparison in COMPARISONS:
        for placement in (ONE_CORE, TWO_CORES):
            pairs = {
                program: (
                    medians.get((comparison.workload, placement, program)),
                    medians.get((comparison.basis, placement, program)),
                )
                for program in PROGRAMS
            }
            if None in itertools.chain(*pairs.values()):
                continue
            values = {program: value / basis for program, (value, basis) in pairs.items()}
            values["library / bare"] = values["library"] / values["bare"]
            lines.append(
                {
                    "name": comparison.name,
                    "placement": placement,
                    **values,
                    "judged": comparison.judged,
                    "more_is_better": comparison.more_is_better,
                    "target": comparison.bound,
                    "met": within(
                        comparison.bound, values[comparison.judged], comparison.more_is_better
                    ),
                }
            )
    return lines


if __name__ == "__main__":
    main()
