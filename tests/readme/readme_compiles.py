#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors
"""Holds README.md and the pages in examples, tests and include/orizuru against the tree.

A whole program among the C++ blocks of README.md is built by the command that it gives for copied
headers, and run; those of the pages are compiled, which takes a third of the time. All other blocks of
a folder are one translation unit, behind preamble.hpp, with the types and Codecs that any of the pages
shows first, with ORIZURU_SEPARATE_COMPILATION for half of the time. The Codecs must read what they
write: codecs.cpp. What the files link to and name must be there. README.md has at most 400 lines.

The commands for redis-cli and the Python are run by integration/core/interoperability.cpp.

usage: readme_compiles.py ROOT COMPILER...
"""

import os
import pathlib
import re
import select
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
COMPILER = sys.argv[2:]
HERE = pathlib.Path(__file__).resolve().parent
os.environ.update(SOURCE_ROOT=str(ROOT), REDIS_SERVER=os.environ.get("REDIS_SERVER", "redis-server"))
sys.path.insert(0, str(ROOT / "tests/examples"))
sys.dont_write_bytecode = True
import support  # noqa: E402

EXAMPLES = ["examples/README.md",
            *(f"examples/{page}.md" for page in ("core", "jobs", "workers", "async", "effects", "servers", "program"))]
FILES = ["README.md", *EXAMPLES, "tests/README.md", "include/orizuru/README.md"]
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in FILES}
MOST_LINES = 400

NEEDS_POSTGRES = re.compile(r"pqxx::|orizuru::(Schema|Inbox|Outbox|Ledger)")
NEEDS_JSON = re.compile(r"nlohmann|JsonMessage")
NEEDS_ASIO = re.compile(r"asio::")
NEEDS_DOCTEST = re.compile(r"<doctest/")
IS_PROGRAM = re.compile(r"int main\(|DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def prose(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def run(command, cwd):
    print("+", shlex.join(map(str, command)), flush=True)
    subprocess.run(command, cwd=cwd, check=True)


# --- what is named --------------------------------------------------------------------------------


def anchors(text):
    """As GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links(name):
    for target in re.findall(r"\]\(([^)]+)\)", prose(TEXTS[name])):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.resolve().exists(), f"{name}: {target} leads nowhere"
        if anchor:
            linked = file.resolve().read_text(encoding="utf-8")
            assert anchor in anchors(linked), f"{name}: {target} has no such heading"


def check_names(name):
    """Headers, and files by their whole path."""
    for code in re.findall(r"`([^`\n]+)`", prose(TEXTS[name])):
        if re.fullmatch(r"orizuru/[\w/]+\.hpp", code):
            assert (ROOT / "include" / code).exists(), f"{name}: there is no {code}"
        elif re.fullmatch(r"(examples|tests|include|subprojects)/[\w./]+\.\w+", code):
            made_by_user = code == "subprojects/orizuru.wrap"
            assert made_by_user or (ROOT / code).exists(), f"{name}: there is no {code}"


def check_commands():
    commands = [line for text in TEXTS.values() for block in blocks(text, "sh")
                for line in block.splitlines()]
    scripts = {line.split()[0] for line in commands if re.match(r"(examples|tests)/", line)}
    assert {"examples/run", "tests/run", "tests/crash/long"} <= scripts, scripts
    for script in scripts:
        assert (ROOT / script).stat().st_mode & 0o111, f"{script} is not executable"
    every_command = "\n".join(commands) + "\n".join(TEXTS.values())
    benchmarks = (ROOT / "tests/benchmark/meson.build").read_text(encoding="utf-8")
    for benchmark in re.findall(r"meson test --benchmark -C build ([a-z]+|'[^']+')", every_command):
        title = benchmark.strip("'")
        assert f"'{title}'" in benchmarks, f"there is no benchmark '{title}'"


def check_programs():
    """Each example is there, and prints what the comment at its top says; that it does, tests/examples
    shows."""
    text = TEXTS["examples/README.md"] + TEXTS["examples/program.md"]
    shown = re.findall(r"^build/examples/(\w+)", "\n".join(blocks(text, "sh")), re.MULTILINE)
    sources = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("examples/*.cpp")}
    assert set(shown) == set(sources) - {"payments", "tenants_test"}, shown
    outputs = re.findall(r"^build/examples/(\w+)[^\n]*\n```\n\n```text\n(.*?)^```$", text,
                         re.MULTILINE | re.DOTALL)
    for name in ("retry_pipeline", "custom_codec", "priorities", "scheduled"):
        said = re.findall(r"^//     (.*)$", sources[name], re.MULTILINE)
        assert set(dict(outputs)[name].splitlines()) <= set(said), f"{name} says {said}"


def check_tried():
    """What has been tried, and by what."""
    long_forms = (ROOT / "tests/crash/long").read_text(encoding="utf-8")
    tried = re.findall(r"^\| [^|]*: `([a-z_]+)`[^|]*\|", TEXTS["tests/README.md"], re.MULTILINE)
    assert len(tried) >= 10, tried
    for program in tried:
        assert f"'{program} " in long_forms, f"{program} is no program of tests/crash/long"


def check_met():
    """What others have met: each test that is named is there."""
    section = TEXTS["tests/README.md"].split("## What others have met\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| [A-Z]\d.*$", section, re.MULTILINE)
    assert len(rows) >= 40, rows
    for row in rows:
        for name, sentences in re.findall(r"`([\w/.]+)`(?:: ((?:, )?\"[^|;]*))?", row.split("|")[2]):
            folder = "tests" if name.startswith("unit/") else "tests/integration"
            file = ROOT / (name if "." in name else f"{folder}/{name}.cpp")
            assert file.is_file(), f"{file} is not there"
            text = re.sub(r'"\s*"', "", file.read_text(encoding="utf-8"))
            for sentence in re.findall(r'"([^"]+)"', sentences):
                assert sentence in text, f'{name} has no test "{sentence}"'


# --- what is compiled -----------------------------------------------------------------------------


def check_hello(program, command, folder):
    """It tells what it takes while it runs, also where nobody sees its output on a terminal."""
    with support.private_redis() as redis:
        assert "redis://localhost" in program
        (folder / "main.cpp").write_text(program.replace("redis://localhost", redis.address), "utf-8")
        run(command, folder)
        with subprocess.Popen([folder / "a.out"], stdout=subprocess.PIPE) as hello:
            came = select.select([hello.stdout], [], [], support.PATIENCE)[0]
            told = os.read(hello.stdout.fileno(), 100) if came else b""
            hello.kill()
        assert told == b"hello\n", told


def compiles(text):
    command = [*COMPILER, "-std=c++20", "-x", "c++", "-fsyntax-only", "-"]
    return subprocess.run(command, input=text, text=True, check=False,
                          capture_output=True).returncode == 0


def has_header(header):
    return compiles(f"#if !__has_include(<{header}>)\n#error\n#endif\n")


def postgres_flags():
    """None without libpqxx or libpq."""
    asked = subprocess.run(["pkg-config", "--cflags", "libpqxx", "libpq"], text=True, check=False,
                           capture_output=True)
    return shlex.split(asked.stdout) if asked.returncode == 0 else None


def is_type(block):
    return re.search(r"^(struct \w+ .*\{|template .*\nstruct orizuru::Codec)", block, re.MULTILINE)


def check_code():
    readme_commands = "\n".join(blocks(TEXTS["README.md"], "sh"))
    [by_hand] = re.findall(r"^c\+\+ (.*-Iinclude.*)$", readme_commands, re.MULTILINE)
    parts = {}
    for name, text in TEXTS.items():
        parts.setdefault(str(pathlib.PurePath(name).parent), []).extend(blocks(text, "cpp"))
    counts = [len(found) for found in parts.values()]
    assert counts[0] >= 5 and counts[1] >= 14, counts
    if not has_header("nlohmann/json.hpp"):
        parts = {name: [part for part in found if not NEEDS_JSON.search(part)]
                 for name, found in parts.items()}
        json = []
    else:
        json = ["-DHAS_JSON"]
    if not compiles("#include <asio/awaitable.hpp>\nasio::awaitable<void> f();"):
        parts = {name: [part for part in found if not NEEDS_ASIO.search(part)]
                 for name, found in parts.items()}
    if not has_header("doctest/doctest.h"):
        parts = {name: [part for part in found if not NEEDS_DOCTEST.search(part)]
                 for name, found in parts.items()}
    flags = postgres_flags()
    if flags is None:
        parts = {name: [part for part in found if not NEEDS_POSTGRES.search(part)]
                 for name, found in parts.items()}
        flags, booking = [], ""
    else:
        booking = ("#include <pqxx/pqxx>\nvoid book(pqxx::work& tx, const Order& order);\n"
                   "bool in_stock(pqxx::work& tx, const Order& order);")

    every_part = [part for found in parts.values() for part in found]
    types = [part for part in every_part if is_type(part) and not IS_PROGRAM.search(part)]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "include").symlink_to(ROOT / "include")

        def write(name, *texts):
            (folder / name).write_text("\n".join(texts), encoding="utf-8")

        checks = (HERE / "codecs.cpp").read_text(encoding="utf-8")
        write("codecs.cpp", '#include "preamble.hpp"', *types, checks)
        declared = ["-std=c++20", "-DORIZURU_SEPARATE_COMPILATION", "-Iinclude", f"-I{HERE}"]
        for name, found in parts.items():
            for program in (part for part in found if IS_PROGRAM.search(part)):
                if name == ".":
                    check_hello(program, COMPILER + shlex.split(by_hand), folder)
                else:
                    write("main.cpp", program)
                    run([*COMPILER, *declared, "-fsyntax-only", "main.cpp"], folder)

        run([*COMPILER, *declared, *json, "codecs.cpp", "-o", "codecs", "-lhiredis", "-pthread"],
            folder)
        run(["./codecs"], folder)

        for name, found in parts.items():
            found = [part for part in found if part not in types and not IS_PROGRAM.search(part)]
            if found:
                write("excerpts.cpp", '#include "preamble.hpp"', *types, booking, *found)
                print(name)
                run([*COMPILER, *flags, *declared, "-Wall", "-Wextra", "-fsyntax-only",
                     "excerpts.cpp"], folder)


def main():
    lines = TEXTS["README.md"].count("\n")
    assert lines <= MOST_LINES, f"README.md has {lines} lines"
    for name in FILES:
        check_links(name)
        check_names(name)
    check_commands()
    check_programs()
    check_tried()
    check_met()
    check_code()


main()
