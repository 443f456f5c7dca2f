#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""No function of the library makes a constant at its first call.

The compiler guards such a constant. A child that is forked while another thread makes it would wait
for it for ever: nobody releases the guard there.

usage: guards.py NM BINARY...
"""

import subprocess
import sys


def guards(nm, binary):
    result = subprocess.run([nm, "--demangle", binary], check=True, text=True,
                            stdout=subprocess.PIPE)
    if "orizuru::" not in result.stdout:
        sys.exit(f"{binary} has no names of the library")
    return [line for line in result.stdout.splitlines() if "guard variable for orizuru::" in line]


def main():
    nm, *binaries = sys.argv[1:]
    found = [line for binary in binaries for line in guards(nm, binary)]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
