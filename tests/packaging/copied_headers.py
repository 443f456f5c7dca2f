# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The headers copied into a program's own folder, with hiredis; with msgpack and without."""

from support import CXX, SOURCE_ROOT, check_consumer, compile_consumer, flags, run, scratch
import pathlib
import shutil


def include_folders():
    """Where this compiler looks for <...>, in its order."""
    told = run(*CXX, "-E", "-v", "-x", "c++", "/dev/null")
    listed = told.split("#include <...> search starts here:\n")[1].split("End of search list.")[0]
    return [pathlib.Path(line.strip()) for line in listed.splitlines()]


def without_msgpack(folder):
    """Flags for the same include folders, those with msgpack.hpp replaced by links to all else."""
    found = ["-nostdinc", "-nostdinc++"]
    for number, original in enumerate(include_folders()):
        shown = original
        if (original / "msgpack.hpp").exists():
            shown = folder / f"system-include-{number}"
            shown.mkdir()
            for entry in original.iterdir():
                if not entry.name.startswith("msgpack"):
                    (shown / entry.name).symlink_to(entry)
        found += ["-isystem", shown]
    return found


with scratch() as scratch_folder:
    shutil.copytree(SOURCE_ROOT / "include" / "orizuru", scratch_folder / "include" / "orizuru")
    include = f"-I{scratch_folder / 'include'}"

    program = scratch_folder / "consumer"
    compile_consumer(program, include, *flags("hiredis"))
    check_consumer(program)

    bare = scratch_folder / "consumer-without-msgpack"
    compile_consumer(bare, *without_msgpack(scratch_folder), include, *flags("hiredis"))
    check_consumer(bare, msgpack="none")
