# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""producer, worker and collector in their terminals."""

import signal
import sys

import support

PRODUCER, WORKER, COLLECTOR = sys.argv[1:]


def consumers(redis):
    return redis.command("SCARD", "orizuru:{jobs}:consumers")


def produce_and_work(redis):
    with support.Program(PRODUCER, redis.address) as producer:
        producer.write("before there is a worker")
        assert producer.line() == "1 waiting"
        for number in (signal.SIGTERM, signal.SIGINT):
            with support.Program(WORKER, redis.address) as worker:
                assert worker.line().startswith("waiting as worker:")
                if number == signal.SIGTERM:
                    assert worker.line() == "done: before there is a worker"
                producer.write("fold!")
                assert producer.line() == "1 waiting"
                assert worker.line() == "done: fold! (urgent)"
                worker.stop(number)
            assert consumers(redis) == 0
        producer.end_of_input()


def outage(redis):
    """A worker waits for Redis to come back; a producer reports whether its line was pushed."""
    with support.Program(PRODUCER, redis.address) as producer, support.Program(
        WORKER, redis.address
    ) as worker:
        # A producer that finds no Redis at its start ends with an error; an ack that is under way
        # when Redis is killed comes too late.
        held = "orizuru:{jobs}:processing:" + worker.line().removeprefix("waiting as ")
        producer.write("before the outage")
        assert producer.line() == "1 waiting"
        assert worker.line() == "done: before the outage"
        support.eventually(lambda: redis.command("LLEN", held) == 1)
        redis.command("PING")  # by its next turn Redis has answered the ack, too
        redis.kill()
        redis.start()
        producer.write("after the outage")
        assert producer.line() == "1 waiting"
        assert worker.line() == "done: after the outage"
        worker.stop()
        producer.end_of_input()


def collect(redis):
    """The collector brings back the messages of a dead worker, and stops at SIGTERM."""
    with support.Program(PRODUCER, redis.address) as producer:
        for job in ("a", "b"):
            producer.write(job)
            producer.line()
        producer.end_of_input()
    # No heartbeat key: the lease is over. The collector waits until Redis is 10 s old.
    redis.command("SADD", "orizuru:{jobs}:consumers", "dead")
    redis.command("LPUSH", "orizuru:{jobs}:processing:dead", "orz:0:0")
    for _ in range(2):
        redis.command("LMOVE", "jobs", "orizuru:{jobs}:processing:dead", "RIGHT", "LEFT")
    with support.Program(COLLECTOR, redis.address, "jobs", "1") as collector:
        assert collector.line() == "collecting"
        assert collector.line() == "2 reclaimed, 0 rejected, 0 buried"
        collector.stop()
    with support.Program(COLLECTOR, redis.address) as collector, support.Program(
        WORKER, redis.address
    ) as worker:
        assert collector.line() == "collecting"
        assert worker.line().startswith("waiting as worker:")
        assert [worker.line(), worker.line()] == ["done: a", "done: b"]
        worker.stop()
        collector.stop(signal.SIGINT)  # at once, though its next pass is 10 s away


with support.private_redis() as server:
    produce_and_work(server)
    outage(server)
    collect(server)
    for program in (PRODUCER, WORKER, COLLECTOR):
        support.run(program, f"unix://{server.path}.not", status=1)
