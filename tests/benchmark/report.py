# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The benchmark's tables, as text."""

import statistics

COLUMNS = "{:<52} {:<9} {:>10} {:>10} {:>6}  {:<12} {}"
HEADING = COLUMNS.format("workload", "placement", "bare", "library", "ratio", "min..max", "target")


def line(row):
    return COLUMNS.format(
        row["workload"],
        row["placement"],
        quantity(statistics.median(row["bare"]), row["unit"]),
        quantity(statistics.median(row["library"]), row["unit"]),
        f"{row['ratio']:.2f}",
        f"{min(row['ratios']):.2f}..{max(row['ratios']):.2f}",
        target(row),
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
        print(line(row))
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
    machine = result["machine"]
    print(
        f"\n{machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}, "
        f"Redis {machine['redis']}, {machine['compiler']}, {result['date']}, "
        f"median of {result['pairs']} pairs"
    )
