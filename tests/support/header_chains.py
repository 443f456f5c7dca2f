#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Chains of headers: each includes all those in front of it, directly or not.

A translation unit that includes the headers of a chain in this order shows of each that it compiles
alone: its declarations see nothing but what it includes in front of them. What it includes behind
them, its definitions, must not come before it. That takes half of the time of a unit for each.

usage: header_chains.py HEADER...

Headers are named as in #include; prints a chain in a line, as -include options.
"""

import functools
import re
import sys
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"


def with_all(text):
    """What it includes of the library, directly or not."""
    direct = re.findall(r"^#include <(orizuru/.+?)>", text, re.M)
    return frozenset(direct).union(*map(included, direct))


def text_of(header):
    return (INCLUDE / header).read_text(encoding="utf-8")


@functools.cache
def included(header):
    return with_all(text_of(header))


@functools.cache
def included_before(header):
    """The same, as far as its declarations can see it."""
    return with_all(text_of(header).split("\nnamespace ")[0])


def header_chains(headers):
    """Yields chains until each of the headers has been in one."""

    def size(header):
        return len(included_before(header)), header

    left = set(headers)
    while left:
        longest = {}  # the chain up to each header
        last = max(left, key=size)
        for header in sorted(left & included_before(last), key=size) + [last]:
            before = [longest[other] for other in included_before(header) if other in longest]
            longest[header] = max(before, key=len, default=[]) + [header]
        yield longest[last]
        left.difference_update(longest[last])


if __name__ == "__main__":
    for chain in header_chains(sys.argv[1:]):
        print(*(f"-include {header}" for header in chain))
