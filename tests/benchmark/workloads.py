# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The workloads: the command lines of both programs, and the targets."""

import dataclasses

ONE_CORE = "one core"
TWO_CORES = "two cores"
APART = "two CPUs"


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure of a run. Targets are bounds of library / bare, by placement."""

    name: str
    unit: str
    value: object  # a function of the program's output, a dict
    more_is_better: bool = True
    targets: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    command: str
    arguments: dict
    figures: tuple
    quick: dict
    placements: tuple = (ONE_CORE, TWO_CORES)
    server: tuple = ("--appendonly", "no")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two workloads of the same program and placement: how `workload` compares with `basis`."""

    name: str
    workload: str
    basis: str
    bound: float
    of: str = "cost"  # CPU time of client and Redis per message; or the workload's "figure"
    judged: str = "library"  # or "bare", or "library / bare"
    more_is_better: bool = False


def rate(one_core=None, two_cores=None):
    targets = {ONE_CORE: one_core, TWO_CORES: two_cores}
    return (Figure("", "/s", lambda run: run["messages"] / run["seconds"], targets=targets),)


def latency(p50=None, p99=None):
    def figure(name, target=None):
        return Figure(f", {name}", "us", lambda run: run[name], False, {ONE_CORE: target})

    return (figure("p50", p50), figure("p99", p99), figure("max"))


def memory():
    return (Figure("", "MB", lambda run: run["resident"] / 1e6, False),)


def produce(name, count, target=None, **arguments):
    return Workload(
        f"produce, {name}", "produce", {"count": count, **arguments}, rate(target), {"count": 2000}
    )


def single_pushes(count):
    workload = produce("single", count, way="each", chunk=1, in_flight=1)
    targets = {ONE_CORE: 0.95, APART: 1.3}
    figures = tuple(dataclasses.replace(figure, targets=targets) for figure in workload.figures)
    return dataclasses.replace(
        workload, figures=figures, placements=(ONE_CORE, TWO_CORES, APART)
    )


def consume(name, count, figures, command="consume", **arguments):
    arguments = {"count": count, "size": 0, "in_flight": 1, "ack": "deferred", **arguments}
    few = min(count, 2000, (8 << 20) // max(arguments["size"], 1))
    return Workload(name, command, arguments, figures, {"count": few})


def consumers(number):
    arguments = {"consumers": number, "count": 500_000, "batch": 100, "in_flight": 1}
    return Workload(
        f"{number} consumer{'s'[: number > 1]}, batch 100",
        "consumers",
        {**arguments, "ack": "deferred"},
        rate(),
        {"count": 2000},
    )


def held(number, pick, count=300_000):
    return Workload(
        f"{number:,} held, {pick} acked, batch 100",
        "held",
        {"held": number, "pick": pick, "count": count, "batch": 100, "ack": "deferred"},
        rate(),
        {"count": 2000, "held": min(number, 200)},
        (ONE_CORE,),
    )


def groups(name, order, rounds, **arguments):
    arguments = {"order": order, "rounds": rounds, "ack": "immediate", **arguments}
    return Workload(name, "groups", arguments, rate(), {"rounds": 2}, (ONE_CORE,))


def backlog(waiting):
    arguments = {"waiting": waiting, "rounds": 10_000, "batch": 10, "ack": "deferred"}
    quick = {"waiting": min(waiting, 1000), "rounds": 20}
    name = f"backlog of {waiting:,}, push 10 and take 10"
    return Workload(name, "backlog", arguments, rate(), quick, (ONE_CORE,))


def latency_at(per_second, seconds, **targets):
    return Workload(
        f"latency at {per_second}/s",
        "latency",
        {"rate": per_second, "count": per_second * seconds, "batch": 1, "ack": "immediate"},
        latency(**targets),
        {"rate": 2000, "count": 20},
        (ONE_CORE, TWO_CORES, APART),
    )


def memory_with(waiting):
    return Workload(
        f"memory with {waiting:,} waiting",
        "memory",
        {"waiting": waiting, "count": 1000, "batch": 100, "ack": "deferred"},
        memory(),
        {"waiting": 1000},
        (ONE_CORE,),
    )


def stored(fsync):
    workload = consume(f"consume, batch 100, AOF {fsync}", 200_000, rate(), batch=100)
    return dataclasses.replace(
        workload,
        placements=(ONE_CORE,),
        server=("--appendonly", "yes", "--appendfsync", fsync)
        + ("--auto-aof-rewrite-percentage", "0"),
    )


def both(in_flight):
    name = "both at once, batch 100" + in_flight_name(in_flight)
    arguments = {"chunk": 1000, "batch": 100, "in_flight": in_flight, "ack": "deferred"}
    return Workload(name, "both", {"count": 400_000, **arguments}, rate(0.85), {"count": 2000})


def in_flight_name(in_flight):
    return "" if in_flight == 1 else f" (bare: {in_flight} in flight)"


def batch(size, count, target=None, in_flight=1, **arguments):
    # Two in flight on two cores must beat one in flight.
    two_cores = 1.0 if target and in_flight == 1 else None
    return consume(
        f"consume, batch {size}{in_flight_name(in_flight)}",
        count,
        rate(target, two_cores),
        batch=size,
        in_flight=in_flight,
        **arguments,
    )


def by_hand(ack, one_core, two_cpus):
    """Against what people write themselves: no header, fence or lease."""
    arguments = {"count": 20_000, "size": 0, "batch": 1, "ack": ack}
    targets = {ONE_CORE: one_core, APART: two_cpus}
    figure = Figure("", "/s", lambda run: run["messages"] / run["seconds"], targets=targets)
    return Workload(
        f"one by one, {ack} (bare: BLMOVE and LREM by hand)",
        "by_hand",
        arguments,
        (figure,),
        {"count": 2000},
        (ONE_CORE, APART),
    )


def payload(name, size, count):
    return consume(f"consume, batch 10, payload {name}", count, rate(), batch=10, size=size)


def settle_alone(name, size):
    return groups(
        f"settle alone, payload {name}", "forward", 20, group=50, batch=1, size=size, timed="acks"
    )


def reordered(order):
    return groups(
        f"100 fetched, {order} order acked one by one",
        order,
        100,
        group=100,
        batch=100,
        size=0,
        timed="all",
    )


def jobs(name, command):
    arguments = {"queues": 1, "count": 500_000, "batch": 100, "ack": "deferred"}
    return Workload(name, command, arguments, rate(), {"count": 2000})


def queues(way, batch, count, ack):
    """A Worker with 10 threads, against a thread for each queue."""
    return Workload(
        f"3 queues, {way.upper()} and Worker, batch {batch}",
        "queues",
        {"queues": 3, "count": count, "way": way, "batch": batch, "ack": ack},
        rate(),
        {"count": 1000},
    )


def lateness(waiting):
    return Workload(
        f"lateness with {waiting:,} scheduled",
        "lateness",
        {"waiting": waiting, "rate": 500, "count": 2000, "batch": 1, "ack": "immediate"},
        latency(),
        {"waiting": 1000, "count": 20},
    )


WORKLOADS = [
    produce("push_all", 1_000_000, 0.85, way="all", chunk=1000, in_flight=1),
    produce(f"push_all{in_flight_name(2)}", 1_000_000, 0.85, way="all", chunk=1000, in_flight=2),
    single_pushes(25_000),
    produce(
        f"100 buffered{in_flight_name(2)}", 500_000, way="buffered", chunk=100, in_flight=2
    ),
    consume("consume, single immediate", 10_000, rate(0.95), "single", batch=1, ack="immediate"),
    consume("consume, single deferred", 20_000, rate(0.95), batch=1),
    by_hand("immediate", 0.9, 1.5),
    by_hand("deferred", None, 1.5),
    batch(10, 150_000),
    batch(10, 150_000, in_flight=2),
    batch(100, 700_000, 0.85),
    batch(100, 700_000, 0.85, in_flight=2),
    batch(1000, 1_000_000, 0.85),
    batch(1000, 1_000_000, 0.85, in_flight=2),
    both(1),
    both(2),
    latency_at(50, 4, p50=1.10, p99=1.25),
    latency_at(200, 2),
    latency_at(1000, 1, p50=1.10, p99=1.25),
    latency_at(5000, 1),
    payload("32 B", 32, 150_000),
    payload("1 KiB", 1 << 10, 100_000),
    payload("64 KiB", 64 << 10, 5_000),
    payload("1 MiB", 1 << 20, 300),
    settle_alone("32 B", 32),
    settle_alone("1 MiB", 1 << 20),
    *[reordered(order) for order in ("forward", "reverse", "random")],
    *[consumers(number) for number in (1, 2, 4, 8)],
    *[backlog(waiting) for waiting in (10, 1_000, 100_000, 1_000_000)],
    *[held(number, "oldest") for number in (10, 100, 1_000, 10_000)],
    held(100, "newest"),
    held(100, "random"),
    *[memory_with(waiting) for waiting in (1_000, 1_000_000)],
    jobs("jobs, batch 100, Consumer", "jobs"),
    jobs("jobs, batch 100, Worker", "worker"),
    *[queues(way, 1, 20_000, "immediate") for way in ("brpop", "blmove", "lrem")],
    *[queues(way, 100, 100_000, "deferred") for way in ("brpop", "blmove")],
    lateness(100_000),
    *[stored(fsync) for fsync in ("no", "everysec", "always")],
]

# With a thousand times as many messages the CPU's caches help less, also in the bare program.
FLAT = 1.25

COMPARISONS = [
    Comparison(
        "rate, batch 100 / single",
        "consume, batch 100",
        "consume, single immediate",
        bound=30,
        of="figure",
        judged="bare",
        more_is_better=True,
    ),
    Comparison(
        "rate of jobs, Worker / Consumer",
        "jobs, batch 100, Worker",
        "jobs, batch 100, Consumer",
        bound=0.6,
        of="figure",
        more_is_better=True,
    ),
    Comparison(
        "cost of settling alone, 1 MiB / 32 B",
        "settle alone, payload 1 MiB",
        "settle alone, payload 32 B",
        bound=1.1,
        # Redis returns the pages of a large payload to the system, for both programs.
        judged="library / bare",
    ),
    Comparison(
        "cost, backlog of 1,000,000 / of 10",
        "backlog of 1,000,000, push 10 and take 10",
        "backlog of 10, push 10 and take 10",
        bound=FLAT,
    ),
    Comparison(
        "cost, 10,000 held / 10 held",
        "10,000 held, oldest acked, batch 100",
        "10 held, oldest acked, batch 100",
        bound=FLAT,
    ),
    Comparison(
        "memory, 1,000,000 waiting / 1,000 waiting",
        "memory with 1,000,000 waiting",
        "memory with 1,000 waiting",
        bound=1.1,
        of="figure",
    ),
]
