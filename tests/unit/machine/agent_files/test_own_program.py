"""Path of the mcpwrap that runs: one that agents can start from now on, and no other can change."""

import os
import sys
from pathlib import Path

import pytest

import mcpwrap
from mcpwrap.errors import UsageError
from mcpwrap.machine.agent_files import own_program


def made(folder: Path, name: str = "mcpwrap", mode: int = 0o755) -> Path:
    (folder / "bin").mkdir(parents=True)
    file = folder / "bin" / name
    file.write_text("#!/bin/sh\n")
    file.chmod(mode)
    return file


def test_an_installed_program_is_written_as_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = made(tmp_path / "venv")
    (tmp_path / "link").symlink_to(file.parent)  # as pipx has it
    monkeypatch.chdir(tmp_path)
    for started in (str(file), "venv/bin/mcpwrap", "./venv/lib/../bin/mcpwrap"):
        assert own_program.expect_lasting(started, os.geteuid()) == str(file)
    linked = str(tmp_path / "link/mcpwrap")
    assert own_program.expect_lasting(linked, os.geteuid()) == linked


@pytest.mark.parametrize(
    ("folder", "name", "mode"),
    [
        ("venv", "main.py", 0o755),  # `python -m`
        ("venv", "mcpwrap", 0o644),
        (".cache/uv/archive-v0/x", "mcpwrap", 0o755),  # of `uvx mcpwrap`
        ("pipx/.cache/x", "mcpwrap", 0o755),
    ],
)
def test_a_program_that_will_not_stay_is_refused(
    tmp_path: Path, folder: str, name: str, mode: int
) -> None:
    file = made(tmp_path / folder, name, mode)
    with pytest.raises(UsageError, match=r"could not start it as .*E-WRAP-OWN-PROGRAM\]"):
        own_program.expect_lasting(str(file), os.geteuid())


@pytest.mark.parametrize(
    ("place", "is_refused"),
    [
        ("bin", True),
        ("bin/mcpwrap", True),
        ("env", True),
        ("env/bin/python", True),
        ("base/bin/python3", True),  # to which that one is a link
        ("env/lib", True),  # with the folder of the package
        ("env/lib/mcpwrap", True),
        ("base/lib", True),  # the standard library
        ("base/share", False),  # not used
        ("env/lib/mcpwrap/data", False),  # what is in a folder is not examined
    ],
)
def test_code_that_another_account_can_change_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, *, is_refused: bool
) -> None:
    file = made(tmp_path)
    for folder in ("env/bin", "env/lib/mcpwrap/data", "base/bin", "base/lib", "base/share"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "base/bin/python3").touch()
    (tmp_path / "env/bin/python").symlink_to(tmp_path / "base/bin/python3")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env/bin/python"))
    monkeypatch.setattr(mcpwrap, "__file__", str(tmp_path / "env/lib/mcpwrap/__init__.py"))
    monkeypatch.setattr(os, "__file__", str(tmp_path / "base/lib/os.py"))
    assert own_program.expect_lasting(str(file), os.geteuid()) == str(file)
    (tmp_path / place).chmod(0o777)
    if not is_refused:
        assert own_program.expect_lasting(str(file), os.geteuid()) == str(file)
        return
    with pytest.raises(UsageError, match=r"has mode 0777: every account can write to it, so .*"):
        own_program.expect_lasting(str(file), os.geteuid())


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="E-WRAP-OWN-PROGRAM"):
        own_program.expect_lasting(str(tmp_path / "mcpwrap"), os.geteuid())
