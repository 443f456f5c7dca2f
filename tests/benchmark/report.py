# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The benchmark's tables, as text."""

import statistics

ROW = "{:<48} {:<9} {:>10} {:>10} {:>6}  {:<12} {}"
CPU_TIME = "{:<48} {:<9} {:>10} {:>10} {:>10} {:>10}"
COMPARISON = "{:<48} {:<9} {:>10} {:>10}  {}"


def show(result):
    verdicts = not result["quick"]
    heading = ("workload", "placement", "bare", "library", "ratio", "min..max", "target")
    print("\n" + ROW.format(*heading))
    for row in result["rows"]:
        print(line(row, verdicts))
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


def show_cpu_time(rows):
    heading = ("CPU time per message, ns", "", "client:", "", "Redis:", "")
    print("\n" + CPU_TIME.format(*heading).rstrip())
    print(CPU_TIME.format("", "placement", "bare", "library", "bare", "library"))
    for row in rows:
        if "cpu" in row:
            nanoseconds = [
                f"{row['cpu'][program][side] * 1e9:.0f}"
                for side in ("client", "server")
                for program in ("bare", "library")
            ]
            print(CPU_TIME.format(row["workload"], row["placement"], *nanoseconds))


def show_comparisons(comparisons, verdicts):
    heading = ("workloads compared", "placement", "bare", "library", "bound")
    print("\n" + COMPARISON.format(*heading))
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
