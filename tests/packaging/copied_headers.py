# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The headers copied into a program's own folder: header-only and compiled once, with msgpack and not."""

from support import CLI, CONSUMER, CXX, JOBS, POSTGRES, SOURCE_ROOT, TLS, WEB, check_consumer
from support import compile_consumer, compile_program, flags, optional_programs, run, scratch
from support import without_msgpack
import shutil


def check_older_standard(include):
    """It is named in one error, and not in hundreds."""
    for part in ("orizuru", "jobs", "worker", "once", "sharded", "postgres"):
        header = SOURCE_ROOT / "include" / "orizuru" / f"{part}.hpp"
        told = run(*CXX, "-std=c++17", include, "-fsyntax-only", "-x", "c++", header, fails=True)
        if told.count("error:") != 1 or "orizuru needs C++20" not in told:
            raise SystemExit(f"{part}.hpp does not say what it needs")


with scratch() as scratch_folder:
    shutil.copytree(SOURCE_ROOT / "include" / "orizuru", scratch_folder / "include" / "orizuru")
    include = f"-I{scratch_folder / 'include'}"

    check_older_standard(include)

    program = scratch_folder / "consumer"
    compile_consumer(program, include, *flags("hiredis"))
    check_consumer(program)

    bare_flags = [*without_msgpack(scratch_folder), include, *flags("hiredis")]
    bare = scratch_folder / "consumer-without-msgpack"
    compile_consumer(bare, *bare_flags)
    check_consumer(bare, msgpack="none")
    jobs = scratch_folder / "jobs-without-msgpack"
    compile_program(jobs, [JOBS], *bare_flags)
    check_consumer(jobs)

    # The program's own file has the definitions. It links nothing that they do not need: not date.
    separate = ["-DORIZURU_SEPARATE_COMPILATION", include]
    source = scratch_folder / "orizuru.cpp"
    source.write_text("#include <orizuru/src.hpp>\n")
    definitions = source.with_suffix(".o")
    compile_program(definitions, [source], "-c", *separate)
    once = scratch_folder / "consumer-and-source"
    compile_program(once, [CONSUMER, definitions], *separate, *flags("hiredis"))
    check_consumer(once)

    modules = {POSTGRES: ("libpqxx", "libpq"), TLS: ("openssl",)}
    headers = {CLI: "ops/cli.hpp>\n#include <orizuru/ops/cli.ipp", WEB: "ops/src.hpp"}
    for program in optional_programs():
        part = program.stem
        source.write_text(f"#include <orizuru/{headers.get(program, f'{part}/src.hpp')}>\n")
        libraries = flags("hiredis", *modules.get(program, ()))
        own = scratch_folder / f"{part}-and-source"
        compile_program(own, [program, source, definitions], *separate, *libraries)
        run(own)
