#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Draws throughput.svg and latency.svg from the JSON that run.py has written.

usage: draw.py benchmark.json FOLDER
"""

import json
import math
import pathlib
import statistics
import sys

from workloads import ONE_CORE, TWO_CORES

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 90, 170, 50, 60
# Visible on white and on black.
TEXT, GRID = "#7d8590", "#7d859055"
COLOURS = {"bare": "#d9822b", "library": "#2f81f7"}
NAMES = {"bare": "bare hiredis", "library": "this library"}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    result = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    medians = {
        (row["workload"], row["placement"], program): statistics.median(row[program])
        for row in result["rows"]
        for program in ("bare", "library")
    }
    folder = pathlib.Path(sys.argv[2])
    machine = result["machine"]
    source = f"{machine['cpu']}, Redis {machine['redis']}, {result['date'][:10]}"
    for name, drawn in (("throughput", throughput), ("latency", latency)):
        (folder / f"{name}.svg").write_text(drawn(medians, source), encoding="utf-8")


def throughput(medians, source):
    names = {1: "consume, single deferred"}
    names |= {size: f"consume, batch {size}" for size in (10, 100, 1000)}
    return chart(
        "Messages taken and acknowledged per second",
        ("messages in a batch", "messages per second"),
        lines(medians, {place: (names, place) for place in (ONE_CORE, TWO_CORES)}),
        source,
    )


def latency(medians, source):
    rates = (50, 200, 1000, 5000)
    styles = {
        percentile: ({rate: f"latency at {rate}/s, {percentile}" for rate in rates}, ONE_CORE)
        for percentile in ("p50", "p99")
    }
    return chart(
        "Time from push to handler, one core",
        ("messages per second", "microseconds"),
        lines(medians, styles),
        source,
    )


def lines(medians, styles):
    """(label, colour, dashed, points); the first style is solid, the second dashed."""
    found = []
    for dashed, (label, (names, placement)) in enumerate(styles.items()):
        for program, colour in COLOURS.items():
            keys = {x: (name, placement, program) for x, name in names.items()}
            points = [(x, medians[key]) for x, key in keys.items() if key in medians]
            if points:
                found.append((f"{NAMES[program]}, {label}", colour, bool(dashed), points))
    if not found:
        sys.exit("the file lacks what is to be drawn")
    return found


class Axis:
    """Logarithmic, from one pixel to another."""

    def __init__(self, values, begin, end):
        self.low, self.high = min(values), max(values)
        self.begin, self.end = begin, end

    def place(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.begin + share * (self.end - self.begin), 1)


def chart(title, labels, drawn, source):
    rates = sorted({x for *_, points in drawn for x, _ in points})
    values = [y for *_, points in drawn for _, y in points]
    ticks = ticks_around(min(values), max(values))
    across = Axis(rates, LEFT, WIDTH - RIGHT)
    up = Axis(ticks, HEIGHT - BOTTOM, TOP)
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13" fill="{TEXT}" role="img">',
        f"<title>{title}</title>",
        text(middle, TOP - 24, title, size=16),
        text(middle, HEIGHT - 14, labels[0]),
        text(WIDTH - 8, HEIGHT - 14, source, anchor="end", size=10),
        text(20, (TOP + HEIGHT - BOTTOM) / 2, labels[1], turned=True),
    ]
    for tick in ticks:
        y = up.place(tick)
        parts.append(f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="{GRID}"/>')
        parts.append(text(LEFT - 8, y + 4, short(tick), anchor="end"))
    for x in rates:
        parts.append(text(across.place(x), HEIGHT - BOTTOM + 20, f"{x:,}"))
    for _, colour, dashed, points in drawn:
        places = [(across.place(x), up.place(y)) for x, y in points]
        path = "L".join(f"{x} {y}" for x, y in places)
        dashes = ' stroke-dasharray="6 4"' if dashed else ""
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
    parts += legend(drawn)
    return "\n".join([*parts, "</svg>"]) + "\n"


def legend(drawn):
    parts = []
    left = WIDTH - RIGHT + 14
    for number, (label, colour, dashed, _) in enumerate(drawn):
        y = TOP + 14 + 42 * number
        dashes = ' stroke-dasharray="6 4"' if dashed else ""
        parts.append(f'<path d="M{left} {y}h28" stroke="{colour}" stroke-width="2"{dashes}/>')
        program, style = label.split(", ")
        parts.append(text(left + 34, y + 4, program, anchor="start"))
        parts.append(text(left + 34, y + 20, style, anchor="start"))
    return parts


def text(x, y, words, anchor="middle", size=None, turned=False):
    turn = f' transform="rotate(-90 {x} {y})"' if turned else ""
    big = f' font-size="{size}"' if size else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{big}{turn}>{words}</text>'


def ticks_around(low, high):
    """1, 2 and 5 times powers of ten, from below `low` to above `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    first = max(step for step in steps if step <= low)
    last = min(step for step in steps if step >= high)
    return [step for step in steps if first <= step <= last]


def short(value):
    if value >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if value >= 1e4 else f"{value:,g}"


if __name__ == "__main__":
    main()
