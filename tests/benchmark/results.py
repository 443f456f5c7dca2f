# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Combines the runs of both programs."""

import itertools
import statistics

from workloads import COMPARISONS, ONE_CORE, TWO_CORES

PROGRAMS = ("bare", "library")


def row_of(workload, figure, placement, runs):
    values = {program: [figure.value(r) for r in runs[program]] for program in PROGRAMS}
    ratios = [library / bare for bare, library in zip(values["bare"], values["library"])]
    ratio = statistics.median(ratios)
    return {
        "name": workload.name,
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
    }


def cpu_times(runs):
    """Seconds per message."""
    return {
        program: {
            side: statistics.median(r[f"{side}_cpu"] / r["messages"] for r in runs[program])
            for side in ("client", "server")
        }
        for program in PROGRAMS
    }


def within(bound, value, more_is_better):
    """None where there is no bound."""
    if bound is None:
        return None
    return value >= bound if more_is_better else value <= bound


def compare(rows):
    """One for each comparison whose workloads were both measured."""
    medians = {}
    for row, program in itertools.product(rows, PROGRAMS):
        key = (row["workload"], row["placement"], program)
        medians["figure", *key] = statistics.median(row[program])
        if "cpu" in row:
            medians["cost", *key] = sum(row["cpu"][program].values())
    compared = []
    for comparison in COMPARISONS:
        for placement in (ONE_CORE, TWO_CORES):
            pairs = {
                program: (
                    medians.get((comparison.of, comparison.workload, placement, program)),
                    medians.get((comparison.of, comparison.basis, placement, program)),
                )
                for program in PROGRAMS
            }
            if None in itertools.chain(*pairs.values()):
                continue
            values = {program: value / basis for program, (value, basis) in pairs.items()}
            values["library / bare"] = values["library"] / values["bare"]
            compared.append(
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
    return compared
