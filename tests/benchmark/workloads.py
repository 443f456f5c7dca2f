# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""What is measured: the command lines of both programs, and the targets."""

import dataclasses

ONE_CORE = "one core"
TWO_CORES = "two cores"


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure of a run. Targets are bounds of library / bare, by placement."""

    name: str
    unit: str
    value: object  # of the program's output, a dict
    more_is_better: bool = True
    targets: dict = dataclasses.field(default_factory=dict)

    def meets(self, placement, ratio):
        """None where there is no target."""
        target = self.targets.get(placement)
        if target is None:
            return None
        return ratio >= target if self.more_is_better else ratio <= target


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    command: str
    arguments: dict
    figures: tuple
    placements: tuple = (ONE_CORE, TWO_CORES)
    server: tuple = ("--appendonly", "no")
    quick: dict = dataclasses.field(default_factory=dict)


def rate(one_core=None, two_cores=None):
    targets = {ONE_CORE: one_core, TWO_CORES: two_cores}
    return (Figure("", "/s", lambda run: run["messages"] / run["seconds"], targets=targets),)


def produce(name, count, target=None, **arguments):
    return Workload(
        f"produce, {name}", "produce", {"count": count, **arguments}, rate(target), quick={"count": 2000}
    )


def consume(name, command, count, figures, **arguments):
    arguments = {"count": count, "size": 0, "in_flight": 1, **arguments}
    return Workload(f"consume, {name}", command, arguments, figures, quick={"count": 2000})


WORKLOADS = [
    produce("push_all", 1_000_000, 0.85, way="all", chunk=1000, in_flight=1),
    produce("push_all, bare with 2 in flight", 1_000_000, 0.85, way="all", chunk=1000, in_flight=2),
    produce("single", 25_000, way="each", chunk=1, in_flight=1),
    consume("single immediate", "single", 10_000, rate(0.95), batch=1, ack="immediate"),
    consume("single deferred", "consume", 20_000, rate(0.95), batch=1, ack="deferred"),
    consume("batch 10", "consume", 150_000, rate(), batch=10, ack="deferred"),
    consume("batch 100", "consume", 500_000, rate(0.85, 1.0), batch=100, ack="deferred"),
    consume("batch 1000", "consume", 700_000, rate(0.85, 1.0), batch=1000, ack="deferred"),
]
