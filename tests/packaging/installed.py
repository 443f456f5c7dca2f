# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""`meson install` into a prefix, consumed through pkg-config and through CMake."""

from support import CLI, CONSUMER, MESON, POSTGRES, TLS, WEB, ZONES, build_with_cmake
from support import check_consumer, compile_consumer, find_with_cmake, flags, install
from support import optional_programs, run, scratch, search_path
import json


def check_nothing_is_built(build, prefix):
    compiled = [path for path in build.rglob("*") if path.suffix in {".o", ".a", ".gch", ".pch"}]
    if compiled:
        raise SystemExit(f"an installation has compiled {len(compiled)} files, like {compiled[0]}")
    libraries = [path for path in prefix.rglob("*") if path.suffix in {".a", ".so"}]
    if libraries:
        raise SystemExit(f"an installation has brought {libraries}")


def check_tests_build_their_programs(build):
    """`meson test` builds what a test depends on."""
    tests = json.loads(run(MESON, "introspect", "--tests", build))
    if len(tests) < 100:
        raise SystemExit("where are the tests?")
    for test in tests:
        if any(word.endswith(".run") for word in test["cmd"]) and not test["depends"]:
            raise SystemExit(f"nothing builds {test['cmd']}")


def check_pkg_config(folder, prefix):
    env = search_path(prefix)
    for program in optional_programs():
        if f"-I{prefix / 'include'}" not in flags(f"orizuru-{program.stem}", env=env):
            raise SystemExit(f"pkg-config does not know orizuru-{program.stem}")
    named = [path for path in prefix.rglob("*.pc") if "libdir" in path.read_text()]
    if named:
        raise SystemExit(f"a folder of an architecture is named in {named[0]}, for all of them")
    found = flags("orizuru", env=env)
    if any("MSGPACK" in flag for flag in found):
        raise SystemExit("how msgpack is used is for the user to choose")
    compile_consumer(folder / "consumer", *found)
    check_consumer(folder / "consumer")


def check_cmake(folder, prefix):
    find_with_cmake(folder / "pkg-config", prefix, sources=(CONSUMER, ZONES))
    build = build_with_cmake(folder / "pkg-config")
    check_consumer(build / "consumer")
    run(build / "zones")

    find_with_cmake(folder / "version", prefix, wanted="0.2")
    find_with_cmake(folder / "range", prefix, wanted="0.1...<0.3")
    find_with_cmake(folder / "other-version", prefix, wanted="0.1", fails=True)

    without_pkg_config = "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON"
    target = "add_library(hiredis::hiredis INTERFACE IMPORTED)\n"

    # A project that has hiredis as a target of its own.
    find_with_cmake(folder / "target", prefix, without_pkg_config, before=target)

    # hiredis with a CMake package that has a target, as upstream's has since 1.0.
    package = folder / "hiredis"
    package.mkdir()
    (package / "hiredis-config.cmake").write_text(target)
    find_with_cmake(folder / "package", prefix, without_pkg_config, f"-Dhiredis_DIR={package}")

    # No hiredis at all: said in words, and not by a linker.
    told = find_with_cmake(
        folder / "none",
        prefix,
        without_pkg_config,
        "-DCMAKE_DISABLE_FIND_PACKAGE_hiredis=ON",
        fails=True,
    )
    if "orizuru needs hiredis" not in told:
        raise SystemExit("a missing hiredis is not named")


def check_cmake_component(folder, prefix, program, library):
    # Nor a library of a part, where it is asked for.
    part = program.stem
    told = find_with_cmake(
        folder / "none",
        prefix,
        "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON",
        f"-DCMAKE_DISABLE_FIND_PACKAGE_{library}=ON",
        before="add_library(hiredis::hiredis INTERFACE IMPORTED)\n",
        wanted=f"COMPONENTS {part}",
        fails=True,
    )
    if f"orizuru::{part} needs {library}" not in told:
        raise SystemExit(f"a missing {library} is not named")

    if program in optional_programs():
        find_with_cmake(folder / "found", prefix, sources=(program,), wanted=f"COMPONENTS {part}")
        run(build_with_cmake(folder / "found") / part)


with scratch() as scratch_folder:
    scratch_prefix = scratch_folder / "prefix"
    scratch_build = install(scratch_folder, scratch_prefix)
    check_nothing_is_built(scratch_build, scratch_prefix)
    check_tests_build_their_programs(scratch_build)
    check_pkg_config(scratch_folder, scratch_prefix)
    check_cmake(scratch_folder / "cmake", scratch_prefix)
    check_cmake_component(scratch_folder / "postgres", scratch_prefix, POSTGRES, "libpqxx")
    check_cmake_component(scratch_folder / "tls", scratch_prefix, TLS, "OpenSSL")
    check_cmake_component(scratch_folder / "cli", scratch_prefix, CLI, "CLI11")
    check_cmake_component(scratch_folder / "web", scratch_prefix, WEB, "Boost")
