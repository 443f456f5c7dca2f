# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""For tests that call the compiler themselves."""

import json
import shlex
import sys
from pathlib import Path


def flags_of(database, source):
    """What decides which declarations a compiler sees, from the build's command for `source`;
    `database` is its compile_commands.json."""
    for entry in json.loads(Path(database).read_text()):
        directory = Path(entry["directory"])
        if (directory / entry["file"]).resolve() == Path(source).resolve():
            break
    else:
        sys.exit(f"{source} is not in {database}")
    flags = []
    words = iter(shlex.split(entry["command"]))
    for word in words:
        if word.startswith(("-std=", "-D")):
            flags.append(word)
        elif word.startswith(("-I", "-isystem")):
            option = "-isystem" if word.startswith("-isystem") else "-I"
            path = word[len(option) :] or next(words)
            flags += [option, str(directory / path)]
    return flags
