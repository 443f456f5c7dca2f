# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The benchmark's tables, as text."""

import statistics

COLUMNS = "{:<52} {:<9} {:>10} {:>10} {:>6}  {:<12} {}"
COMPARISON = "{:<52} {:<9} {:>10} {:>10} {}"
HEADING = COLUMNS.format("workload", "placement", "bare", "library", "ratio", "min..max", "target")


def line(row, quick=False):
    return COLUMNS.format(
        row["workload"],
        row["placement"],
        quantity(statistics.median(row["bare"]), row["unit"]),
        quantity(statistics.median(row["library"]), row["unit"]),
        f"{row['ratio']:.2f}",
        f"{min(row['ratios']):.2f}..{max(row['ratios']):.2f}",
        "" if quick else target(row),
    ).rstrip()


def target(row):
    if row["target"] is None:
        return ""
    sign = ">=" if row["more_is_better"] else "<="
    return f"{sign} {row['target']:.2f} {'met' if row['met'] else 'MISSED'}"


def quantity(value, unit):
    for factor, prefix in ((1e6, "M"), (1e3, "k")):
        if unit == "/s" and value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def show(result):
    rows = result["rows"]
    print("\n" + HEADING)
    for row in rows:
        print(line(row, result["quick"]))
    print("\nCPU time per message, ns" + " " * 29 + "client: bare  library   Redis: bare  library")
    for row in rows:
        cpu = row["cpu"]
        print(
            f"{row['workload']:<52} {row['placement']:<9}"
            + "".join(
                f" {cpu[program][side] * 1e9:>9.0f}"
                for side in ("client", "server")
                for program in ("bare", "library")
            )
        )
    if result["comparisons"]:
        heading = ("workloads compared", "placement", "bare", "library", "bound")
        print("\n" + COMPARISON.format(*heading))
    for comparison in result["comparisons"]:
        print(
            COMPARISON.format(
                comparison["name"],
                comparison["placement"],
                f"{comparison['bare']:.2f}",
                f"{comparison['library']:.2f}",
                "" if result["quick"] else f"{comparison['judged']} {target(comparison)}",
            )
        )
    machine = result["machine"]
    print(
        f"\n{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}, "
        f"Redis {machine['redis']}, {machine['compiler']}, {result['date']}, "
        + ("too few messages to judge" if result["quick"] else f"median of {result['pairs']} pairs")
    )
