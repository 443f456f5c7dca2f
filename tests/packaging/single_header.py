#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Makes one header of all that needs no library but hiredis and, if they are there, msgpack and date.

usage: single_header.py INCLUDE-FOLDER OUTPUT HEADER...
"""

import functools
import pathlib
import re
import sys

HEAD = """// SPDX-License-Identifier: ISC
// Copyright (c) 2026 The Orizuru authors
#pragma once

// Orizuru in one header: the core, jobs, the Worker, Once, shards and the Inspector, header-only.
// All but the core needs msgpack. It does not go together with the library's own headers. It is
// made of the library's own headers by `meson compile single-header`: change those.

#ifdef ORIZURU_SEPARATE_COMPILATION
#error "the single header is header-only: README.md says how to compile the library once"
#endif
#if __cplusplus < 202002L
#error "orizuru needs C++20: -std=c++20, or cpp_std=c++20 in Meson"
#else
"""

# What HEAD has decided: neither the lines nor, of the first, what is between them.
DECIDED = {
    "#if __cplusplus < 202002L": False,
    "#ifdef ORIZURU_SEPARATE_COMPILATION": False,
    "#ifndef ORIZURU_SEPARATE_COMPILATION": True,
}
SAID_ONCE = re.compile(r"#pragma once|// SPDX-|// Copyright ")


class Single:
    def __init__(self, folder):
        self.folder = folder
        self.there = set()
        self.lines = []

    def add(self, name, conditional=False):
        """Each once. What comes under a condition comes again elsewhere: each has a guard then."""
        if name in self.there:
            return
        if not conditional:
            self.there.add(name)
        guard = "ORIZURU_SINGLE_" + re.sub(r"\W", "_", name).upper()
        self.lines += [f"#ifndef {guard}", f"#define {guard} // {name}"]
        inside = []  # for each open condition: whether it is decided, and how
        for line in (self.folder / name).read_text(encoding="utf-8").splitlines():
            directive = line.split(" // ")[0].rstrip()
            opens = re.match(r"#if", line)
            if opens:
                inside.append(DECIDED.get(directive))
            decided = bool(inside) and inside[-1] is not None
            if decided and (opens or directive in ("#else", "#endif")):
                if directive == "#else":
                    inside[-1] = not inside[-1]
                elif directive == "#endif":
                    inside.pop()
                continue
            if False not in inside:
                self.add_line(line, conditional or None in inside)
            if directive == "#endif":
                inside.pop()
        self.lines.append("#endif")

    @functools.cache
    def needs_msgpack(self, name):
        """Whether it, or what it includes, does so without a condition."""
        depth = 0
        for line in (self.folder / name).read_text(encoding="utf-8").splitlines():
            if line.startswith("#if") and line not in DECIDED:
                depth += 1
            elif line.startswith("#endif") and depth > 0:
                depth -= 1
            included = re.match(r"#include <(.*)>", line)
            if included and depth == 0:
                if included[1].startswith("msgpack"):
                    return True
                if included[1].startswith("orizuru/") and self.needs_msgpack(included[1]):
                    return True
        return False

    def add_line(self, line, conditional):
        included = re.match(r"#include <(orizuru/.*)>", line)
        if included:
            self.add(included[1], conditional)
        elif not SAID_ONCE.match(line):
            self.lines.append(line)


def main(folder, output, *headers):
    single = Single(pathlib.Path(folder))
    with_msgpack = [header for header in headers if single.needs_msgpack(header)]
    for header in headers:
        if header not in with_msgpack:
            single.add(header)
    single.lines.append("#if __has_include(<msgpack.hpp>)")
    for header in with_msgpack:
        single.add(header)
    single.lines.append("#endif")
    text = "\n".join([HEAD, *single.lines, "#endif", ""])
    pathlib.Path(output).write_text(re.sub(r"\n\n\n+", "\n\n", text), encoding="utf-8")


main(*sys.argv[1:])
