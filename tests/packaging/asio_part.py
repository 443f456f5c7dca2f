# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""Coroutines by the part that names Asio: in a Meson and a CMake project, installed."""

from support import ASIO, MESON, SOURCE_ROOT, build_with_cmake, cmake_project, configure_cmake
from support import copy_as_subproject, find_with_cmake, flags, install, run, scratch
from support import search_path
import shutil


def check_subproject(folder):
    copy_as_subproject(folder / "subprojects" / "orizuru")
    shutil.copy(ASIO, folder)
    (folder / "meson.build").write_text(
        """
project('parent', 'cpp', default_options: ['cpp_std=c++20', 'warning_level=3', 'werror=true'])
dependency('orizuru', fallback: 'orizuru')
executable('asio', 'asio.cpp', dependencies: dependency('orizuru-asio'))
dependency('orizuru-asio-compiled')
"""
    )
    run(MESON, "setup", "--force-fallback-for=orizuru", "build", cwd=folder)
    run(MESON, "compile", "-C", "build", cwd=folder)
    run(folder / "build" / "asio")


def check_sources_in_cmake(folder):
    """That CMake generates it shows that the target is there: building takes too long."""
    cmake_project(folder, f"add_subdirectory({SOURCE_ROOT / 'include'} orizuru)", [ASIO], "compiled")
    configure_cmake(folder)


def check_installed(folder, prefix):
    if f"-I{prefix / 'include'}" not in flags("orizuru-asio", env=search_path(prefix)):
        raise SystemExit("pkg-config does not know orizuru-asio")

    find_with_cmake(folder / "found", prefix, sources=[ASIO], wanted="COMPONENTS asio")
    run(build_with_cmake(folder / "found") / "asio")

    # A project that has Asio as a target of its own.
    target = "add_library(asio::asio INTERFACE IMPORTED)\n"
    hidden = "-DORIZURU_COMPILES_ASIO=OFF"
    find_with_cmake(folder / "target", prefix, hidden, before=target, wanted="COMPONENTS asio")

    # No Asio, or a compiler in which it has no coroutines: said in words, and not by a compiler.
    told = find_with_cmake(folder / "none", prefix, hidden, wanted="COMPONENTS asio", fails=True)
    if "orizuru::asio needs Asio 1.19" not in told:
        raise SystemExit("a missing Asio is not named")


with scratch() as scratch_folder:
    check_subproject(scratch_folder / "meson")
    check_sources_in_cmake(scratch_folder / "cmake")
    scratch_prefix = scratch_folder / "prefix"
    install(scratch_folder, scratch_prefix)
    check_installed(scratch_folder, scratch_prefix)
