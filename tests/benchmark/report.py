# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The benchmark's tables, as text."""

import statistics

ROW = "{:<48} {:<9} {:>10} {:>10} {:>6}  {:<12} {}"
CPU_TIME = "{:<48} {:<9} {:>10} {:>10} {:>10} {:>10} {:>6}"
COMPARISON = "{:<48} {:<9} {:>10} {:>10}  {}"


def heading():
    return ROW.format("workload", "placement", "bare", "library", "ratio", "min..max", "target")


def line(row, verdicts):
    return ROW.format(
        row["workload"],
        row["placement"],
        quantity(statistics.median(row["bare"]), row["unit"]),
        quantity(statistics.median(row["library"]), row["unit"]),
        f"{row['ratio']:.2f}",
        f"{min(row['ratios']):.2f}..{max(row['ratios']):.2f}",
        target(row) if verdicts else "",
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


def show_rest(result):
    """Prints everything after the rows."""
    verdicts = not result["quick"]
    show_cpu_time(result["rows"])
    if result["comparisons"]:
        show_comparisons(result["comparisons"], verdicts)
    machine = result["machine"]
    print(
        f"\n{machine['cpu']}, {machine['cpus']} CPUs, load {machine['load']:.1f} at the start, "
        f"Linux {machine['kernel']}, Redis {machine['redis']}, {machine['compiler']}\n"
        f"{result['date']}, "
        + (f"medians of {result['pairs']} pairs" if verdicts else "too few messages to judge")
    )


def show_cpu_time(rows):
    sides = ("CPU time per message, ns", "", "client:", "", "Redis:", "", "")
    print("\n" + CPU_TIME.format(*sides).rstrip())
    names = ("bare", "library", "bare", "library", "ratio")
    print(CPU_TIME.format("", "placement", *names))
    for row in rows:
        if "cpu" not in row:
            continue
        bare, library = (
            [row["cpu"][program][side] * 1e9 for side in ("client", "server")]
            for program in ("bare", "library")
        )
        print(
            CPU_TIME.format(
                row["name"],
                row["placement"],
                *(f"{value:.0f}" for pair in zip(bare, library) for value in pair),
                f"{sum(bare) / sum(library):.2f}",
            )
        )


def show_comparisons(comparisons, verdicts):
    names = ("workloads compared", "placement", "bare", "library", "bound")
    print("\n" + COMPARISON.format(*names))
    for comparison in comparisons:
        print(
            COMPARISON.format(
                comparison["name"],
                comparison["placement"],
                f"{comparison['bare']:.2f}",
                f"{comparison['library']:.2f}",
                f"{comparison['judged']} {target(comparison)}" if verdicts else "",
            ).rstrip()
        )
