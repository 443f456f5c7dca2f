# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""tenants charges each order once and in order, through kills; a report follows; a copy is cancelled."""

import sys

import support

TENANTS, TESTS = sys.argv[1:]
ORDERS = 50 * 6

support.run(TESTS)
with support.private_redis() as redis:
    copy = support.run(TENANTS, redis.address, "add").stdout.decode().strip()
    charged = lambda: redis.command("SCARD", "{shop}charged")
    for part in (ORDERS // 4, ORDERS // 2):
        with support.Program(TENANTS, redis.address) as killed:
            support.eventually(lambda: charged() >= part)
            killed.kill()
    with support.Program(TENANTS, redis.address), support.Program(TENANTS, redis.address):
        held = lambda: redis.command("EXISTS", "{shop}copies") == 0
        support.eventually(held)
        support.run(TENANTS, redis.address, "cancel", copy)
        support.eventually(lambda: redis.command("LLEN", "orizuru:{shop}:{shop}copies:dead") == 1)
        support.eventually(lambda: charged() == ORDERS)
        support.eventually(lambda: redis.command("SCARD", "{shop}reported") == 1)
    assert redis.command("SCARD", "{shop}billed") == 50
    assert redis.command("SMEMBERS", "{shop}reported") == [b"tonight 50"]
    assert b"by mistake" in redis.command("LINDEX", "orizuru:{shop}:{shop}copies:dead", 0)
    for queue in ("orders", "bills", "reports"):
        assert redis.command("EXISTS", "orizuru:{shop}:{shop}" + queue + ":dead") == 0, queue
    support.run(TENANTS, f"unix://{redis.path}.not", "add", status=1)
    support.run(TENANTS, status=1)
