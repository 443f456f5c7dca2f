#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Each header compiles alone, and twice included, without a warning.

usage: headers_alone.py COMPILE_COMMANDS.JSON SOURCE COMPILER... --headers HEADER...

Takes the flags of SOURCE in the build's commands.
"""

import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from build_flags import flags_of  # noqa: E402


def refused(command, header):
    result = subprocess.run(command, input=f"#include <{header}>\n" * 2, text=True,
                            stderr=subprocess.PIPE, check=False)
    return f"{header}:\n{result.stderr}" if result.returncode != 0 else None


def main():
    split = sys.argv.index("--headers")
    database, source, *compiler = sys.argv[1:split]
    command = [*compiler, *flags_of(database, source), "-Wall", "-Wextra", "-Wpedantic", "-Werror",
               "-fsyntax-only", "-x", "c++", "-"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda header: refused(command, header), sys.argv[split + 1:])
        faults = [result for result in results if result]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
