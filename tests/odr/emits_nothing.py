#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""A file that includes the library and uses none of it has none of its code.

usage: emits_nothing.py NM COMPILE_COMMANDS.JSON SOURCE COMPILER... --headers HEADER...

Takes the flags of SOURCE in the build's commands.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from build_flags import flags_of  # noqa: E402


def functions(nm, command, source):
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "included.o"
        subprocess.run([*command, "-o", binary], input=source, text=True, check=True)
        listed = subprocess.run([nm, "--demangle", "--defined-only", binary], check=True, text=True,
                                stdout=subprocess.PIPE)
    return [line for line in listed.stdout.splitlines()
            if "orizuru::" in line and line.split()[1] in "TtWw"]


def main():
    split = sys.argv.index("--headers")
    nm, database, source, *compiler = sys.argv[1:split]
    command = [*compiler, *flags_of(database, source), "-c", "-x", "c++", "-"]
    includes = "".join(f"#include <{header}>\n" for header in sys.argv[split + 1:])
    used = "#include <orizuru/error.hpp>\nvoid* use() { return new orizuru::Error(\"\"); }\n"
    if not functions(nm, command, used):
        sys.exit("a use of the library is not seen")
    emitted = functions(nm, command, includes)
    if emitted:
        sys.exit("\n".join(emitted))


if __name__ == "__main__":
    main()
