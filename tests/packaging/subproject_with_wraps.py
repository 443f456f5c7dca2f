# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""A Meson project that has this one as its subproject and gets hiredis and msgpack by the wraps."""

from support import SOURCE_ROOT, build_with_parent, check_consumer, copy_as_subproject, run, scratch
import os
import shutil

with scratch() as folder:
    copy_as_subproject(folder / "subprojects" / "orizuru")
    shutil.copytree(
        SOURCE_ROOT / "subprojects" / "packagecache", folder / "subprojects" / "packagecache"
    )
    nothing = folder / "nothing"
    nothing.mkdir()
    hidden = {**os.environ, "PKG_CONFIG_LIBDIR": str(nothing), "PKG_CONFIG_PATH": ""}
    # The system's headers cannot be hidden here: the wraps are forced to come first instead, and
    # the program tells which ones it was built with.
    program = build_with_parent(folder, "--wrap-mode=forcefallback", env=hidden)
    if "libhiredis" in run("ldd", program):
        raise SystemExit("linked with the system's hiredis")
    check_consumer(program, hiredis="1.2.0", msgpack="7.0.0")
