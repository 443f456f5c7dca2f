# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""CMake projects that have the sources of this one: by FetchContent and by add_subdirectory."""

from support import CONSUMER, README_ADDRESS, SOURCE_ROOT, ZONES, build_with_cmake, check_consumer
from support import cmake_project, commit, configure_cmake, optional_programs, readme_blocks, run
from support import scratch
import shutil


def fetch_content(repository):
    """As README.md shows it, without its example of a target."""
    [block] = readme_blocks("cmake")
    lines = [line for line in block.splitlines() if not line.startswith("target_link_libraries")]
    return "\n".join(lines).replace(README_ADDRESS, repository)


def check(folder, lines, sources, suffix=""):
    """Builds these programs in a project with these lines, and runs them."""
    cmake_project(folder, lines, sources, suffix)
    configure_cmake(folder)
    build = build_with_cmake(folder)
    for source in sources:
        if source == CONSUMER:
            check_consumer(build / "consumer")
        else:
            run(build / source.stem)


with scratch() as scratch_folder:
    programs = [CONSUMER, ZONES, *optional_programs()]
    address = commit(scratch_folder / "repository")
    check(scratch_folder / "fetched", fetch_content(address), programs)

    # include/ is all that it needs, also to compile the library once.
    tree = scratch_folder / "tree"
    shutil.copytree(SOURCE_ROOT / "include", tree / "orizuru" / "include")
    check(tree, "add_subdirectory(orizuru/include)", programs, suffix="compiled")

    # hiredis of a CMake package: its target is used outside of the folder that looks for it.
    package = scratch_folder / "package"
    cmake_project(package, f"add_subdirectory({SOURCE_ROOT / 'include'} orizuru)", [ZONES])
    (package / "hiredis-config.cmake").write_text(
        "add_library(hiredis::hiredis INTERFACE IMPORTED)\n"
        "set_target_properties(hiredis::hiredis PROPERTIES INTERFACE_COMPILE_DEFINITIONS FOUND_SO)"
    )
    configure_cmake(
        package, "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON", f"-Dhiredis_DIR={package}"
    )
    if "FOUND_SO" not in (package / "build" / "build.ninja").read_text():
        raise SystemExit("what the package says of hiredis does not reach the program")

    # No hiredis at all: said in words, and not by a linker.
    bare = scratch_folder / "bare"
    cmake_project(bare, f"add_subdirectory({SOURCE_ROOT / 'include'} orizuru)", [ZONES])
    told = configure_cmake(
        bare,
        "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON",
        "-DCMAKE_DISABLE_FIND_PACKAGE_hiredis=ON",
        fails=True,
    )
    if "orizuru needs hiredis" not in told:
        raise SystemExit("a missing hiredis is not named")
