#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Chains of headers: each includes, directly or not, all those in front of it.

A translation unit that includes the headers of a chain in this order shows of each that it compiles
alone: it sees nothing but what it includes. That takes a third of the time of a unit for each.

usage: header_chains.py HEADER...

Headers are named as in #include; prints a chain in a line, as -include options.
"""

import functools
import re
import sys
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"


@functools.cache
def included(header):
    """All of the library's headers that it includes, directly or not."""
    text = (INCLUDE / header).read_text(encoding="utf-8")
    direct = re.findall(r"^#include <(orizuru/.+?)>", text, re.M)
    return frozenset(direct).union(*map(included, direct))


def header_chains(headers):
    """Yields chains until each of the headers has been in one."""

    def size(header):
        return len(included(header)), header

    left = set(headers)
    while left:
        longest = {}  # the chain up to each header
        last = max(left, key=size)
        for header in sorted(left & included(last), key=size) + [last]:
            before = [longest[other] for other in included(header) if other in longest]
            longest[header] = max(before, key=len, default=[]) + [header]
        yield longest[last]
        left.difference_update(longest[last])


if __name__ == "__main__":
    for chain in header_chains(sys.argv[1:]):
        print(*(f"-include {header}" for header in chain))
