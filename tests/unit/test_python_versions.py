"""Versions of Python: the package, its checks and the documents have the same."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.system.tools import unit_pythons

TOP = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())
LISTED = [
    text.removeprefix("Programming Language :: Python :: ")
    for text in PYPROJECT["project"]["classifiers"]
    if re.search(r":: 3\.\d+$", text)
]
TOO_OLD = (
    "mcpwrap: Python 3.10 is too old: install mcpwrap with Python 3.11 or a later one "
    "[E-SYSTEM-PYTHON]\n"
)
IMPORT = """
import sys
class Version(tuple):
    minor = property(lambda self: self[1])
sys.version_info = Version((3, {minor}, 0))
import mcpwrap
"""


@pytest.mark.parametrize(
    ("minor", "status", "stderr"), [(10, 1, TOO_OLD), (11, 0, ""), (14, 0, "")]
)
def test_a_python_that_is_too_old_is_named(minor: int, status: int, stderr: str) -> None:
    argv = [sys.executable, "-c", IMPORT.format(minor=minor)]
    done = subprocess.run(argv, cwd=TOP, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, stderr)


def test_the_oldest_is_the_same_everywhere() -> None:
    tools = PYPROJECT["tool"]
    assert PYPROJECT["project"]["requires-python"] == f">={LISTED[0]}"
    assert tools["mypy"]["python_version"] == LISTED[0]
    assert tools["ruff"]["target-version"] == f"py{LISTED[0].replace('.', '')}"


def test_each_one_is_tested_or_checked() -> None:
    makefile = (TOP / "Makefile").read_text()
    typed = re.findall(r"for version in ([\d. ]+); do .*mypy --python-version", makefile)
    assert [LISTED[0], *typed[0].split()] == LISTED
    assert {LISTED[0], "3.12", *unit_pythons.SUITES} == {*LISTED}  # no Debian has 3.12
    assert f"Python {LISTED[0]} to {LISTED[-1]}" in (TOP / "README.md").read_text()
