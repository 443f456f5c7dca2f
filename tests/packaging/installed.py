# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""`meson install` into a prefix, consumed through pkg-config and through CMake."""

from support import CXX, MESON, SOURCE_ROOT, CONSUMER, check_consumer, compile_consumer, flags
from support import run, scratch
import os
import shutil


def headers(folder):
    return {path.relative_to(folder) for path in folder.rglob("*.hpp")}


def install(folder, prefix):
    build = folder / "install"
    run(MESON, "setup", "--wrap-mode=nodownload", f"--prefix={prefix}", build, SOURCE_ROOT)
    run(MESON, "install", "-C", build, "--no-rebuild")
    forgotten = headers(SOURCE_ROOT / "include") ^ headers(prefix / "include")
    if forgotten:
        raise SystemExit(f"not listed in include/meson.build: {sorted(map(str, forgotten))}")


def check_pkg_config(folder, prefix):
    path = f"{prefix / 'share' / 'pkgconfig'}:{os.environ.get('PKG_CONFIG_PATH', '')}"
    found = flags("orizuru", env={**os.environ, "PKG_CONFIG_PATH": path})
    if any("MSGPACK" in flag for flag in found):
        raise SystemExit("how msgpack is used is for the user to choose")
    compile_consumer(folder / "consumer", *found)
    check_consumer(folder / "consumer")


def configure(folder, prefix, *options, fails=False, before="", version=""):
    """A CMake project that asks for the package; CMake lines may come before that."""
    project = folder / "project"
    project.mkdir(parents=True)
    shutil.copy(CONSUMER, project)
    (project / "CMakeLists.txt").write_text(
        f"""
cmake_minimum_required(VERSION 3.16)
project(parent LANGUAGES CXX)
{before}
find_package(orizuru {version} CONFIG REQUIRED)
find_package(orizuru {version} CONFIG REQUIRED)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE orizuru::orizuru)
"""
    )
    return run(
        "cmake",
        *("-G", "Ninja", "-S", project, "-B", folder / "build"),
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={';'.join(CXX)}",
        *options,
        fails=fails,
    )


def check_cmake(folder, prefix):
    configure(folder / "pkg-config", prefix)
    run("cmake", "--build", folder / "pkg-config" / "build")
    check_consumer(folder / "pkg-config" / "build" / "consumer")

    configure(folder / "version", prefix, version="0.1")
    configure(folder / "range", prefix, version="0.1...<0.3")
    configure(folder / "other-version", prefix, version="0.2", fails=True)

    without_pkg_config = "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON"
    target = "add_library(hiredis::hiredis INTERFACE IMPORTED)"

    # A project that has hiredis as a target of its own.
    configure(folder / "target", prefix, without_pkg_config, before=target)

    # hiredis with a CMake package that has a target, as upstream's has since 1.0.
    package = folder / "hiredis"
    package.mkdir()
    (package / "hiredis-config.cmake").write_text(target)
    configure(folder / "package", prefix, without_pkg_config, f"-Dhiredis_DIR={package}")

    # No hiredis at all: said in words, and not by a linker.
    told = configure(
        folder / "none",
        prefix,
        without_pkg_config,
        "-DCMAKE_DISABLE_FIND_PACKAGE_hiredis=ON",
        fails=True,
    )
    if "orizuru needs hiredis" not in told:
        raise SystemExit("a missing hiredis is not named")


with scratch() as scratch_folder:
    scratch_prefix = scratch_folder / "prefix"
    install(scratch_folder, scratch_prefix)
    check_pkg_config(scratch_folder, scratch_prefix)
    check_cmake(scratch_folder / "cmake", scratch_prefix)
