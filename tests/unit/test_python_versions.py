"""Versions of Python on which the package runs."""

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
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
