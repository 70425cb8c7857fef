"""Call of pkcheck, and the meaning of its results, with a stand-in pkcheck."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from mcpwrap.linux import polkit
from mcpwrap.linux.polkit import Pkcheck

ASKS = """#!/bin/sh
printf '%s\\n' "$@" > {written}
env > {environment}
{then}
"""


def program(folder: Path, then: str) -> Pkcheck:
    path = folder / "pkcheck"
    names = {"written": folder / "argv", "environment": folder / "environment"}
    path.write_text(ASKS.format(then=then, **names))
    path.chmod(0o755)
    return Pkcheck(str(path))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (0, True),
        (1, False),  # not authorised
        (2, False),  # there is no person to ask
        (3, False),  # the person closed the window
        (126, False),
        (127, False),  # polkitd does not answer
    ],
)
def test_only_a_clear_yes_is_one(tmp_path: Path, status: int, *, expected: bool) -> None:
    pkcheck = program(tmp_path, f"exit {status}")
    assert polkit.is_authorised(7, 99, 1000, {}, pkcheck) is expected


def test_a_refusal_counts_even_if_sigchld_is_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert not polkit.is_authorised(7, 99, 1000, {}, program(tmp_path, "exit 1"))
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_polkit_gets_the_process_and_the_details_of_the_approval(tmp_path: Path) -> None:
    details = {"tool": "write_query", "server": "sqlite", "agent": "alice"}
    assert polkit.is_authorised(7, 99, 1000, details, program(tmp_path, "exit 0"))
    argv = (tmp_path / "argv").read_text().splitlines()
    assert argv == [
        *("--action-id", "org.mcpwrap.approve", "--process", "7,99,1000"),
        *("--detail", "tool", "write_query", "--detail", "server", "sqlite"),
        *("--detail", "agent", "alice", "--allow-user-interaction"),
    ]
    given = (tmp_path / "environment").read_text()
    assert not [name for name in os.environ if f"{name}=" in given and name not in {"PWD", "_"}]


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("a\nb\tc", "a b c"),  # one line of the window
        ("\x1b[2Jx", r"\x1b[2Jx"),
        ("ab\u202ecd", r"ab\u202ecd"),
        ("--process", "--process"),  # the value of `--detail`, not an option
        ("", "-"),
        ("x" * 1000, "x" * 120),
    ],
)
def test_a_hostile_name_has_no_effect_in_the_window(
    tmp_path: Path, hostile: str, shown: str
) -> None:
    polkit.is_authorised(7, 99, 1000, {"tool": hostile}, program(tmp_path, "exit 0"))
    argv = (tmp_path / "argv").read_text().splitlines()
    assert argv[argv.index("--detail") : -1] == ["--detail", "tool", shown]


def test_without_polkit_it_is_refused(tmp_path: Path) -> None:
    assert not polkit.is_authorised(7, 99, 1000, {}, Pkcheck(str(tmp_path / "none")))


def test_a_person_who_does_not_answer_is_refused(tmp_path: Path) -> None:
    slow = program(tmp_path, "exec /usr/bin/sleep 60")
    assert not polkit.is_authorised(7, 99, 1000, {}, replace(slow, patience_s=0.05))
