# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The one header that `meson compile single-header` makes, copied into a program's own folder."""

from support import CONSUMER, CXX, HERE, JOBS, MESON, check_consumer, commit, compile_program
from support import flags, run, scratch, without_msgpack
import re
import shutil

WORKER = HERE.parent / "matrix" / "all_parts.cpp"


def with_single_header(source, folder):
    """The program, which includes the one header in place of the others."""
    text = source.read_text(encoding="utf-8")
    own = re.sub(r"#include <orizuru/.*>\n", "", text)
    own = own.replace("#include", '#include "orizuru.hpp"\n#include', 1)
    (folder / source.name).write_text(own, encoding="utf-8")
    return folder / source.name


with scratch() as scratch_folder:
    commit(scratch_folder / "repository")
    build = scratch_folder / "repository" / "build"
    run(MESON, "setup", "--wrap-mode=nodownload", build, scratch_folder / "repository")
    run(MESON, "compile", "-C", build, "single-header")
    shutil.copy(build / "include" / "orizuru.hpp", scratch_folder)
    for program in (CONSUMER, JOBS, WORKER):
        copied = with_single_header(program, scratch_folder)
        warned = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-DMSGPACK_NO_BOOST"]
        run(*CXX, *warned, copied, "-o", copied.with_suffix(""), *flags("hiredis"), "-pthread")
        check_consumer(copied.with_suffix(""))

    bare = [*without_msgpack(scratch_folder), f"-I{scratch_folder}", *flags("hiredis")]
    program = scratch_folder / CONSUMER.name
    compile_program(program.with_suffix(""), [program], *bare)
    check_consumer(program.with_suffix(""), msgpack="none")

    # No part of it is missing: what it includes are others' headers.
    text = (scratch_folder / "orizuru.hpp").read_text(encoding="utf-8")
    if "#include <orizuru/" in text or len(text) < 1_000_000:
        raise SystemExit("not all headers are in the one")
    told = run(
        *CXX, "-std=c++20", "-DORIZURU_SEPARATE_COMPILATION", "-fsyntax-only", copied, fails=True
    )
    if "the single header is header-only" not in told:
        raise SystemExit("a program with ORIZURU_SEPARATE_COMPILATION is not told")
