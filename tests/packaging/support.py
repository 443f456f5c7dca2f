# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""What the tests of this folder share: a scratch folder, a redis-server, commands that must work."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time

CXX = shlex.split(os.environ["CXX"])
MESON = os.environ["MESON"]
SOURCE_ROOT = pathlib.Path(os.environ["SOURCE_ROOT"])
HERE = pathlib.Path(__file__).parent
CONSUMER = HERE / "consumer.cpp"
JOBS = HERE / "jobs.cpp"
ZONES = HERE / "zones.cpp"
POSTGRES = HERE / "postgres.cpp"
TLS = HERE / "tls.cpp"
CLI = HERE / "cli.cpp"
WEB = HERE / "web.cpp"
ASIO = HERE / "asio.cpp"


README_ADDRESS = "https://example.org/orizuru.git"


def readme_blocks(language):
    """Those of README.md; what they fetch is at README_ADDRESS."""
    text = (SOURCE_ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def scratch():
    """A folder outside of the source tree, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="orizuru-packaging-") as folder:
        yield pathlib.Path(folder).resolve()


def run(*command, fails=False, **options):
    """Runs a command, shows it and what it prints, and returns that."""
    words = [str(word) for word in command]
    print("+", shlex.join(words), flush=True)
    ended = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    print(ended.stdout, flush=True)
    if (ended.returncode != 0) != fails:
        raise SystemExit(f"{words[0]} returned {ended.returncode}")
    return ended.stdout


def flags(*packages, **options):
    """The compiler's and linker's flags, as pkg-config gives them."""
    return shlex.split(run("pkg-config", "--cflags", "--libs", *packages, **options))


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


def compile_program(output, sources, *flags_after):
    run(*CXX, "-std=c++20", "-Wall", "-Wextra", *sources, "-o", output, *flags_after)


def compile_consumer(output, *flags_after):
    compile_program(output, [CONSUMER], *flags_after)


def copy_as_subproject(folder):
    """What a parent project needs of this tree: neither tests nor examples."""
    folder.mkdir(parents=True)
    shutil.copy(SOURCE_ROOT / "meson.build", folder)
    shutil.copytree(SOURCE_ROOT / "include", folder / "include")
    (folder / "subprojects").mkdir()
    for wrap in (SOURCE_ROOT / "subprojects").glob("*.wrap"):
        shutil.copy(wrap, folder / "subprojects")
    shutil.copytree(
        SOURCE_ROOT / "subprojects" / "packagefiles", folder / "subprojects" / "packagefiles"
    )


def commit(folder):
    """Makes the folder, in which this tree is committed, a repository; returns its address."""

    def ignored(where, names):
        built = {name for name in names if (pathlib.Path(where) / name / "meson-private").exists()}
        return built | {".git", "build", "packagecache"}

    shutil.copytree(SOURCE_ROOT, folder, ignore=ignored)
    git = ["git", "-C", folder, "-c", "user.name=packaging", "-c", "user.email=packaging@localhost"]
    # Neither signed nor with hooks, whatever this user has set up.
    alone = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    run(*git, "init", "--quiet", "--initial-branch=main", env=alone)
    run(*git, "add", "--all", env=alone)
    run(*git, "commit", "--quiet", "--message=This tree", env=alone)
    return folder.as_uri()


def headers(folder):
    return {path.relative_to(folder) for path in folder.rglob("*.[hi][pn][pl]")}


def install(folder, prefix):
    """As README has it, in a tree that was just cloned; returns the build folder."""
    commit(folder / "repository")
    run("git", "clone", "--quiet", folder / "repository", folder / "clone")
    build = folder / "clone" / "build"
    run(MESON, "setup", "--wrap-mode=nodownload", f"--prefix={prefix}", build, folder / "clone")
    run(MESON, "install", "-C", build)
    forgotten = headers(SOURCE_ROOT / "include") ^ headers(prefix / "include")
    if forgotten:
        raise SystemExit(f"not installed as they are: {sorted(map(str, forgotten))}")
    return build


def search_path(prefix):
    """An environment in which pkg-config finds what is installed there."""
    path = f"{prefix / 'share' / 'pkgconfig'}:{os.environ.get('PKG_CONFIG_PATH', '')}"
    return {**os.environ, "PKG_CONFIG_PATH": path}


def has_modules(*modules):
    return subprocess.run(["pkg-config", "--exists", *modules], check=False).returncode == 0


def has_postgres():
    return has_modules("libpqxx >= 6.4", "libpq")


def has_tls():
    return has_modules("openssl >= 1.1.1")


def has_cli():
    return has_modules("nlohmann_json >= 3.9", "CLI11 >= 2.1")


def has_web():
    """Boost has nothing for pkg-config."""
    return has_modules("nlohmann_json >= 3.9") and pathlib.Path("/usr/include/boost").is_dir()


def optional_programs():
    """Those whose libraries are here. Asio's has a test of its own: not all compilers can build it."""
    return [POSTGRES] * has_postgres() + [TLS] * has_tls() + [CLI] * has_cli() + [WEB] * has_web()


def build_with_parent(folder, *setup_options, env=None):
    """Builds the consumer in a Meson project that has this one as its subproject."""
    shutil.copy(CONSUMER, folder)
    (folder / "meson.build").write_text(
        """
project('parent', 'cpp', default_options: ['cpp_std=c++20', 'warning_level=3', 'werror=true'])
orizuru_dep = dependency('orizuru', fallback: 'orizuru')
executable('consumer', 'consumer.cpp', dependencies: orizuru_dep)
"""
    )
    # An orizuru that is installed on this machine is not the one to be tested.
    run(MESON, "setup", "--force-fallback-for=orizuru", *setup_options, "build", cwd=folder, env=env)
    run(MESON, "compile", "-C", "build", cwd=folder, env=env)
    return folder / "build" / "consumer"


def cmake_project(folder, lines, sources, suffix=""):
    """A CMake project with a program for each source, in which these lines provide the targets.

    With the suffix "compiled", the library is compiled once.
    """
    once = "_" + suffix if suffix else ""
    parts = {program: f"orizuru::{program.stem}{once}" for program in [POSTGRES, TLS, CLI, WEB, ASIO]}
    folder.mkdir(parents=True, exist_ok=True)
    programs = ""
    for source in sources:
        shutil.copy(source, folder)
        target = parts.get(source, f"orizuru::{suffix or 'orizuru'}")
        programs += f"""
add_executable({source.stem} {source.name})
target_link_libraries({source.stem} PRIVATE {target})
"""
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.18)\nproject(parent LANGUAGES CXX)\n{lines}\n{programs}"
    )


def configure_cmake(folder, *options, fails=False):
    return run(
        "cmake",
        *("-G", "Ninja", "-S", folder, "-B", folder / "build"),
        f"-DCMAKE_CXX_COMPILER={';'.join(CXX)}",
        *options,
        fails=fails,
    )


def find_with_cmake(
    folder, prefix, *options, sources=(CONSUMER,), fails=False, before="", wanted=""
):
    """A CMake project that asks for the package; CMake lines may come before that."""
    asked = f"find_package(orizuru {wanted} CONFIG REQUIRED)\n"
    cmake_project(folder, before + asked + asked, sources)
    return configure_cmake(folder, f"-DCMAKE_PREFIX_PATH={prefix}", *options, fails=fails)


def build_with_cmake(folder):
    """Returns the folder of the programs."""
    run("cmake", "--build", folder / "build")
    return folder / "build"


def answers(path):
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        return client.recv(7) == b"+PONG\r\n"
    return False


@contextlib.contextmanager
def redis_server(folder):
    """A redis-server on a Unix socket in the folder; gives its address."""
    path = folder / "redis.sock"
    server = subprocess.Popen(
        [os.environ["REDIS_SERVER"], "--port", "0", "--unixsocket", path, "--dir", folder]
        + ["--save", "", "--appendonly", "no", "--logfile", folder / "redis.log"],
        stdin=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while not answers(path):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("redis-server: " + (folder / "redis.log").read_text())
            time.sleep(0.01)
        yield f"unix://{path}"
    finally:
        server.kill()
        server.wait()


def check_consumer(program, *, hiredis=None, msgpack=None):
    """Runs the consumer, and sees to it that it was built with the libraries that were meant."""
    with scratch() as folder, redis_server(folder) as address:
        told = run(program, address, timeout=60).splitlines()
    if told[-1] != "ok":
        raise SystemExit("the consumer did not say ok")
    for line in [f"hiredis {hiredis}" if hiredis else "", f"msgpack {msgpack}" if msgpack else ""]:
        if line and line not in told:
            raise SystemExit(f"not built with {line}")
