#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Tells of the tests that failed in the last runs of some builds: what each of the first printed
last, then the names of all. Of a sanitizer's report, its beginning, and the first frames of each
stack.

usage: failed_tests.py BUILD_FOLDER...
"""

import json
import pathlib
import re
import sys

PASSED = ("OK", "EXPECTEDFAIL")
TESTS = 10  # of a build: more have one cause
LINES = 25
COLUMNS = 300
REPORT = re.compile(r"WARNING: ThreadSanitizer|ERROR: AddressSanitizer|: runtime error: ")
REPORTED = 100  # lines
FAR = re.compile(r"\s+#(1[5-9]|[2-9]\d|\d{3}) ")  # callers that say little


def failed_tests(build):
    log = build / "meson-logs" / "testlog.json"
    if not log.exists():
        return []
    tests = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [test for test in tests if test["result"] not in PASSED]


def told(output):
    """The lines that say most."""
    lines = output.splitlines()
    for i, line in enumerate(lines):
        if REPORT.search(line):
            return [line for line in lines[i:] if not FAR.match(line)][:REPORTED]
    return lines[-LINES:]


def main(builds):
    failed = {build: failed_tests(build) for build in builds}
    for build, tests in failed.items():
        for test in tests[:TESTS]:
            for stream in ("stdout", "stderr"):
                lines = told(test.get(stream) or "")
                if lines:
                    print(f"--- {build.name}: {test['name']}: of its {stream}")
                for line in lines:
                    print(f"    {line[:COLUMNS]}")
    for build, tests in failed.items():
        for test in tests:
            print(f"failed in {build.name}: {test['name']} ({test['result']}, status "
                  f"{test['returncode']}, {test['duration']:.1f} s)")


main([pathlib.Path(folder) for folder in sys.argv[1:]])
