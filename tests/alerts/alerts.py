#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors
"""The alerts that examples/program.md recommends fire when they should, and only then.

The rules are those of the page. promtool runs them over the series of alerts.yaml; it comes from PATH,
or else from Debian's package prometheus, which is unpacked in the build folder: installed, it would
start a service.

usage: alerts.py SOURCE-ROOT BUILD-ROOT
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
CACHE = pathlib.Path(sys.argv[2]).resolve() / "promtool"
HERE = pathlib.Path(__file__).resolve().parent


def promtool():
    found = shutil.which("promtool") or shutil.which(CACHE / "usr/bin/promtool")
    if found:
        return found
    if not shutil.which("apt-get"):
        sys.exit("promtool is missing: it comes with Prometheus (Debian's package prometheus)")
    CACHE.mkdir(exist_ok=True)
    subprocess.run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "prometheus"],
                   cwd=CACHE, check=True)
    for package in CACHE.glob("*.deb"):
        files = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True,
                               stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", CACHE, "./usr/bin/promtool"], check=True, input=files)
        package.unlink()
    return CACHE / "usr/bin/promtool"


def documented():
    """All groups of rules of the page as one file."""
    text = (ROOT / "examples/program.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\ngroups:\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2, "the page has no rules"
    return "groups:\n" + "".join(blocks)


def check_names(rules):
    """The library writes each metric that a rule reads."""
    written = "".join(file.read_text(encoding="utf-8")
                      for file in (ROOT / "include/orizuru/ops").glob("*metrics.ipp"))
    for name in set(re.findall(r"orizuru_\w+", rules)):
        assert f'"{name.removesuffix("_bucket")}"' in written, f"nobody writes {name}"


def check_tested(rules):
    tests = (HERE / "alerts.yaml").read_text(encoding="utf-8")
    for alert in re.findall(r"alert: (\w+)", rules):
        cases = re.findall(rf"alertname: {alert}\b.*\n.*exp_alerts: *(.*)", tests)
        assert "[]" in cases and set(cases) != {"[]"}, f"{alert} has to be seen firing, and silent"


def main():
    rules = documented()
    check_names(rules)
    check_tested(rules)
    with tempfile.TemporaryDirectory(prefix="orizuru-alerts-") as folder:
        folder = pathlib.Path(folder)
        (folder / "rules.yaml").write_text(rules, encoding="utf-8")
        shutil.copy(HERE / "alerts.yaml", folder)
        for words in ["check", "rules", "rules.yaml"], ["test", "rules", "alerts.yaml"]:
            subprocess.run([promtool(), *words], cwd=folder, check=True)


if __name__ == "__main__":
    main()
