#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors
"""Compiles every C++ block of README.md, and the first, a whole program, by the command that
README.md gives for copied headers. The scripts and tests that README.md names must be there.

usage: readme_compiles.py ROOT COMPILER...
"""

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(command, cwd):
    print("+", shlex.join(command), flush=True)
    subprocess.run(command, cwd=cwd, check=True)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    compiler = sys.argv[2:]
    readme = (root / "README.md").read_text(encoding="utf-8")
    program, options, buffer, order, codec, pipeline, *parts = blocks(readme, "cpp")
    assert len(parts) >= 6, len(parts)
    with_postgres = blocks(readme[readme.index("\n### PostgreSQL") : readme.index("\n## Errors")], "cpp")
    assert len(with_postgres) >= 3, len(with_postgres)
    if subprocess.run(["pkg-config", "--exists", "libpqxx", "libpq"], check=False).returncode == 0:
        compiler += shlex.split(subprocess.check_output(
            ["pkg-config", "--cflags", "libpqxx", "libpq"], text=True))
        first = parts.index(with_postgres[0])
        parts[first:first] = ["#include <pqxx/pqxx>\nvoid book(pqxx::work& tx, const Order& order);"]
    else:
        parts = [part for part in parts if part not in with_postgres]

    commands = [line for block in blocks(readme, "sh") for line in block.splitlines()]
    [by_hand] = [line for line in commands if line.startswith("c++ ") and "-Iinclude" in line]
    scripts = {line.split()[0] for line in commands if re.match(r"(examples|tests)/", line)}
    assert {"examples/run", "tests/run", "tests/crash/long"} <= scripts, scripts
    for script in scripts:
        assert (root / script).stat().st_mode & 0o111, f"{script} is not executable"
    # What has been tried, and by what.
    long_forms = (root / "tests/crash/long").read_text(encoding="utf-8")
    for tried in re.findall(r"^\| .*: `(\w+)`", readme, re.MULTILINE):
        assert f"/{tried} " in long_forms, f"{tried} is no program of tests/crash/long"

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "include").symlink_to(root / "include")
        (folder / "main.cpp").write_text(program, encoding="utf-8")
        run(compiler + shlex.split(by_hand)[1:], folder)

        (folder / "excerpts.cpp").write_text(
            "\n".join(
                [
                    '#include "preamble.hpp"',
                    order,
                    codec,
                    "static_assert(orizuru::MessageEncodable<Celsius>);",
                    "static_assert(orizuru::MessageDecodable<Celsius>);",
                    pipeline,
                    "void with_options() {",
                    options,
                    "}",
                    "void with_a_buffer(const std::vector<Order>& orders) {",
                    buffer,
                    "}",
                    *parts,
                ]
            ),
            encoding="utf-8",
        )
        preamble = root / "tests" / "readme"
        run(
            compiler
            + ["-std=c++20", "-Wall", "-Wextra", "-Iinclude", f"-I{preamble}"]
            + ["-fsyntax-only", "excerpts.cpp"],
            folder,
        )


main()
