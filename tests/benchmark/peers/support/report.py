# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The table, as plain text and as Markdown."""

import datetime
import os
import platform
import shlex
import sys

HEADINGS = (
    "peer", "settings", "messages", "produce/s", "consume+ack/s", "both at once/s",
    "latency p50/p99 µs", "memory client/server MB", "transport", "durability", "not like for like",
)

USUAL = ("Unix socket", "memory")


def rate(value):
    if value >= 1e6:
        return f"{value / 1e6:.2f}M"
    return f"{value / 1e3:.{1 if value < 1e5 else 0}f}k" if value >= 1000 else f"{value:.0f}"


def row(peer, mode, count, results):
    """`results` has the figures of each placement, or the reason why there are none."""

    def cell(form):
        return " · ".join("failed" if isinstance(one, str) else form(one) for one in results)

    failures = [one for one in results if isinstance(one, str)]
    return (
        peer.name,
        mode["settings"],
        f"{count:,}",
        cell(lambda one: rate(one["produce"])),
        cell(lambda one: rate(one["consume"])),
        cell(lambda one: rate(one["both"])),
        cell(lambda one: f"{one['p50']:.0f}/{one['p99']:.0f}"),
        cell(lambda one: f"{one['client_memory']:.0f}/{one['server_memory']:.0f}"),
        mode["transport"],
        mode["durability"],
        "; ".join(dict.fromkeys([*failures, mode["note"]])),
    )


def plain(rows):
    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows)]
    lines = [HEADINGS, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines
    )


def markdown(rows):
    """The columns for a page: without counts and memory; transport and durability only where they
    are unusual."""
    lines = [narrow(HEADINGS), ["---"] * 2 + ["--:"] * 4 + ["---"], *map(narrow, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def narrow(line):
    *transport_and_durability, note = line[8:]
    unusual = [one for one in transport_and_durability if one not in (*USUAL, *HEADINGS)]
    return [*line[:2], *line[3:7], "; ".join([*unusual, note])]


def circumstances(options, placements, versions, missing):
    """The notes to the table, one sentence in each line."""
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        models = [line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name")]
    yield f"{datetime.date.today()}, {models[0] if models else platform.machine()}, " + (
        f"{os.cpu_count()} cores, Linux {platform.release()}, "
        f"load {os.getloadavg()[2]:.1f} in the last 15 minutes."
    )
    yield "Command: " + shlex.join(["tests/benchmark/peers/run", *sys.argv[1:]])
    yield (
        f"Median of {options.repetitions}; a message is an id and 16 bytes; the handler only "
        f"counts; latency from before the push to the handler at {options.rate} messages per "
        "second, pushed one by one."
    )
    yield "Unless a row says otherwise: over a Unix socket, kept in memory."
    yield (
        "Memory is the peak resident size of the consumer and of the server, which grows with "
        "the messages that wait, all of them after produce."
    )
    if len(placements) > 1:
        yield "Each cell has two figures: " + " · ".join(placements) + "."
    else:
        yield "Placement: " + placements[0] + "."
    yield "Versions: " + ", ".join(f"{name} {what}" for name, what in sorted(versions.items())) + "."
    if missing:
        yield "Not here: " + ", ".join(missing) + "."
