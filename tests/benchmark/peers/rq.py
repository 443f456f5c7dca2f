# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

#: name = "RQ"
#: server = "redis"
#: needs.command.redis-server = "redis-server"
#: needs.python.rq = "python3-rq"
#: note = "a hash for each job, with states; its default worker forks for each job and is slower"
#:
#: [modes.single]
#: settings = "enqueue; SimpleWorker"
#: count = 1_000
#:
#: [modes.bulk]
#: settings = "enqueue_many 100; SimpleWorker"
#: count = 1_000

import sys

import redis
import rq
from client import Tally, Task, end_with_stdin, produce, say

# RQ runs no function of __main__.
sys.modules["peer"] = sys.modules["__main__"]
KEEP_NOTHING = {"result_ttl": 0}

task = Task(sys.argv[1:])
tally = Tally(task)
connection = redis.Redis(unix_socket_path=task.address)
queue = rq.Queue(task.queue, connection=connection)


def handle(number, name):
    tally.handle(number, name)


class Worker(rq.SimpleWorker):
    def perform_job(self, *arguments):
        done = super().perform_job(*arguments)
        if tally.complete():
            tally.done()
        return done


def push_one(messages):
    queue.enqueue("peer.handle", *messages[0], **KEEP_NOTHING)


def push_many(messages):
    queue.enqueue_many(
        [queue.prepare_data("peer.handle", message, **KEEP_NOTHING) for message in messages]
    )


if task.role == "produce":
    connection.ping()
    single = task.rate or task.mode == "single"
    produce(task, push_one if single else push_many, 1 if single else 100)
else:
    end_with_stdin()
    worker = Worker([queue], connection=connection)
    say("ready")
    worker.work(logging_level="ERROR")
