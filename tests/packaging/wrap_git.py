# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""A Meson project with the wrap that README.md shows, which names this repository, and with the
system's libraries."""

from support import (
    CONSUMER,
    MESON,
    README_ADDRESS,
    ZONES,
    check_consumer,
    commit,
    optional_programs,
    readme_blocks,
    run,
    scratch,
)
import shutil


def wrap_of_readme(repository):
    [wrap] = readme_blocks("ini")
    return wrap.replace(README_ADDRESS, repository)


def write_project(folder, repository):
    (folder / "subprojects").mkdir()
    (folder / "subprojects" / "orizuru.wrap").write_text(wrap_of_readme(repository))
    for source in (CONSUMER, ZONES, *optional_programs()):
        shutil.copy(source, folder)
    (folder / "meson.build").write_text(
        """
project('parent', 'cpp', default_options: ['cpp_std=c++20', 'warning_level=3', 'werror=true'])
orizuru = dependency('orizuru')
executable('consumer', 'consumer.cpp', dependencies: orizuru)
executable('zones', 'zones.cpp', dependencies: orizuru)
dependency('orizuru-compiled')
"""
    )
    with (folder / "meson.build").open("a") as project:
        for part in (source.stem for source in optional_programs()):
            project.write(
                f"""
{part} = dependency('orizuru-{part}')
executable('{part}', '{part}.cpp', dependencies: {part})
dependency('orizuru-{part}-compiled')
"""
            )


with scratch() as scratch_folder:
    parent = scratch_folder / "parent"
    parent.mkdir()
    write_project(parent, commit(scratch_folder / "repository"))
    run(MESON, "subprojects", "download", "orizuru", cwd=parent)
    # Whatever else it has to fetch is missing on this machine, and would make another test of this
    # one. An orizuru that is installed here is not the one to be tested.
    options = ["--wrap-mode=nodownload", "--force-fallback-for=orizuru"]
    run(MESON, "setup", *options, "build", cwd=parent)
    run(MESON, "compile", "-C", "build", cwd=parent)
    system = run("pkg-config", "--modversion", "hiredis").strip()
    check_consumer(parent / "build" / "consumer", hiredis=system)
    run(parent / "build" / "zones")
    for source in optional_programs():
        run(parent / "build" / source.stem)
