"""Facts about the interpreter of the runs."""

import sys
from pathlib import Path

import pytest

from mcpwrap.as_python.packages import interpreters
from mcpwrap.as_python.packages.file_locks import FileLocks
from mcpwrap.core.execution.packages.package_errors import PackageError


def counting(folder: Path) -> Path:
    """Return an interpreter that counts its starts in the size of a file."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nprintf x >> {folder}/starts\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def test_the_facts_are_those_of_the_interpreter(tmp_path: Path) -> None:
    facts = interpreters.examine(sys.executable, tmp_path, FileLocks(tmp_path))
    assert facts.version == ".".join(map(str, sys.version_info[:3]))
    assert facts.identity.startswith(f"{facts.version} cpython linux-")
    assert "pytest" in facts.distributions


def test_they_are_cached_until_the_program_changes(tmp_path: Path) -> None:
    program = counting(tmp_path)
    for _ in range(3):
        interpreters.examine(str(program), tmp_path, FileLocks(tmp_path))
    assert (tmp_path / "starts").read_text() == "x"
    program.write_text(program.read_text() + "#\n")
    interpreters.examine(str(program), tmp_path, FileLocks(tmp_path))
    assert (tmp_path / "starts").read_text() == "xx"


@pytest.mark.parametrize("damage", ["", "{}", "\xff", '{"program": 1}'])
def test_a_damaged_cache_is_not_used(tmp_path: Path, damage: str) -> None:
    (tmp_path / "interpreter.json").write_text(damage, encoding="latin-1")
    assert interpreters.examine(sys.executable, tmp_path, FileLocks(tmp_path)).version


@pytest.mark.parametrize("program", ["/no/such", "/bin/false", "/bin/echo"])
def test_another_program_is_refused(tmp_path: Path, program: str) -> None:
    with pytest.raises(PackageError, match=program) as caught:
        interpreters.examine(program, tmp_path, FileLocks(tmp_path))
    assert caught.value.code == "E-PACKAGE-INTERPRETER"
