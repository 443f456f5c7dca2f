# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

#: name = "Celery"
#: server = "redis"
#: needs.command.redis-server = "redis-server"
#: needs.python.celery = "python3-celery"
#: needs.python.redis = "python3-redis"
#: note = "messages in JSON with headers and a name of the task"
#:
#: [modes.solo]
#: settings = "apply_async; pool solo, acks_late, prefetch 100"
#: count = 3_000

import sys

from celery import Celery, signals
from client import Tally, Task, end_with_stdin, produce, say

task = Task(sys.argv[1:])
tally = Tally(task)
app = Celery("peer", broker=f"redis+socket://{task.address}")
app.conf.update(
    task_acks_late=True,
    task_default_queue=task.queue,
    task_ignore_result=True,
    worker_concurrency=1,
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=100,
    worker_redirect_stdouts=False,
)


@app.task(name="handle")
def handle(number, name):
    tally.handle(number, name)


# Celery acks right after the handler; nothing waits for the last ack of thousands.
@signals.task_postrun.connect
def after(**_):
    if tally.complete():
        tally.done()


@signals.worker_ready.connect
def at_start(**_):
    say("ready")


def push(messages):
    handle.apply_async(messages[0])


if task.role == "produce":
    with app.connection_for_write() as connection:
        connection.ensure_connection()
    produce(task, push, 1)
else:
    end_with_stdin()
    alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    app.worker_main(["worker", "--pool", "solo", "--loglevel", "ERROR", *alone])
