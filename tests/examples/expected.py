# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""An example prints the lines that the comment at its top shows."""

import pathlib
import sys

import support


def promised(name):
    """The indented lines of the comment at the top, without the command itself."""
    lines = (support.SOURCE_ROOT / "examples" / f"{name}.cpp").read_text().splitlines()
    comment = lines[: lines.index("#include <orizuru/orizuru.hpp>")]
    indent = "//     "
    return [
        line[len(indent) :]
        for line in comment
        if line.startswith(indent) and not line.startswith(f"{indent}{name} <redis-uri>")
    ]


def check(redis, program):
    name = pathlib.Path(program).stem
    wrote = support.run(program, redis.address).stdout.decode().splitlines()
    assert len(wrote) > 3 and wrote == promised(name), (wrote, promised(name))


def dead(redis, queue):
    return redis.command("LRANGE", "orizuru:{%s}:dead" % queue, 0, -1)
