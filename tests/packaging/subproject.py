# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""A Meson project that has this one as its subproject, with the system's libraries."""

from support import build_with_parent, check_consumer, copy_as_subproject, run, scratch

with scratch() as folder:
    copy_as_subproject(folder / "subprojects" / "orizuru")
    # Whatever it has to fetch is missing on this machine, and would make another test of this one.
    program = build_with_parent(folder, "--wrap-mode=nodownload")
    check_consumer(program, hiredis=run("pkg-config", "--modversion", "hiredis").strip())
