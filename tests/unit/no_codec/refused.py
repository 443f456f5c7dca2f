# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""A type without a Codec, or with one that cannot do what is asked, a handler that returns a value,
and a function whose header is not included are refused at the call, in a few lines that say what is
missing.

Arguments: the build's compile_commands.json, a source in it whose flags are taken, the compiler.
The build's own compiler has to do it, g++ and clang++ too where they are installed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from build_flags import flags_of  # noqa: E402

HERE = Path(__file__).resolve().parent
NO_CODEC = "no orizuru::Codec<T>: add MSGPACK_DEFINE to T, or specialise orizuru::Codec<T>"
UNDECODABLE = "orizuru::Codec<T> cannot decode: it needs"
REFUSED = {
    "producer.cpp": (NO_CODEC, "Plain"),
    "consumer.cpp": (NO_CODEC, "Plain"),
    "worker.cpp": (NO_CODEC, "Plain"),
    "envelope.cpp": (NO_CODEC, "Plain"),
    "no_default.cpp": (UNDECODABLE, "Plain"),
    "wrong_decode.cpp": (UNDECODABLE, "Plain"),
    "read_only.cpp": ("orizuru::Codec<T> cannot encode: it needs", "Plain"),
    "handler.cpp": ("a handler must return void", "handler.cpp"),
    "batch_alone.cpp": ("needs the header <orizuru/worker/handle_batch.hpp>", "batch_alone.cpp"),
    "keyed_alone.cpp": ("needs the header <orizuru/keyed.hpp>", "keyed_alone.cpp"),
    "shards_alone.cpp": ("needs the header <orizuru/worker/handle_shards.hpp>", "shards_alone.cpp"),
    "recur_alone.cpp": ("needs the header <orizuru/worker/recur.hpp>", "recur_alone.cpp"),
    "log_alone.cpp": ("needs the header <orizuru/worker/job_log.hpp>", "log_alone.cpp"),
}
MOST_LINES = 17
ACCEPTED = "with_codec.cpp"


def compilers(own):
    """The build's compiler first, then the usual ones that are another program."""
    # Before it can stand a launcher, such as ccache, behind it options.
    seen = {os.path.realpath(shutil.which(word)) for word in own if shutil.which(word)}
    found = [own]
    for name in ("g++", "clang++"):
        path = shutil.which(name)
        if path and os.path.realpath(path) not in seen:
            found.append([name])
    return found


def check(compiler, flags):
    def compiled(name):
        command = [*compiler, *flags, "-DORIZURU_SEPARATE_COMPILATION", "-fsyntax-only",
                   str(HERE / name)]
        return subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
        )

    result = compiled(ACCEPTED)
    if result.returncode != 0:
        return [f"{compiler}: {ACCEPTED} was refused:\n{result.stderr}"]
    faults = []
    for name, words in REFUSED.items():
        result = compiled(name)
        if result.returncode == 0:
            faults.append(f"{compiler}: {name} was accepted")
        elif unsaid := [word for word in words if word not in result.stderr]:
            faults.append(f"{compiler}: {name}: does not say {unsaid}:\n{result.stderr}")
        elif len(result.stderr.splitlines()) > MOST_LINES:
            faults.append(f"{compiler}: {name}: more than {MOST_LINES} lines:\n{result.stderr}")
    return faults


def main():
    database, source, *own = sys.argv[1:]
    flags = flags_of(database, source)
    faults = [fault for compiler in compilers(own) for fault in check(compiler, flags)]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
