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
from header_chains import header_chains  # noqa: E402


def refused(command, headers):
    source = "".join(f"#include <{header}>\n" * 2 for header in headers)
    result = subprocess.run(command, input=source, text=True, stderr=subprocess.PIPE, check=False)
    return f"{' '.join(headers)}:\n{result.stderr}" if result.returncode != 0 else None


def main():
    split = sys.argv.index("--headers")
    database, source, *compiler = sys.argv[1:split]
    command = [*compiler, *flags_of(database, source), "-Wall", "-Wextra", "-Wpedantic", "-Werror",
               "-fsyntax-only", "-x", "c++", "-"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        chains = header_chains(sys.argv[split + 1:])
        results = pool.map(lambda chain: refused(command, chain), chains)
        faults = [result for result in results if result]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
