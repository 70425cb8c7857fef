"""Interpreter of a script: common `#!` lines, and misleading ones."""

from pathlib import Path

import pytest

from mcpwrap.linux.shebang import interpreter

FIRST_LINES = [
    ("#!/bin/sh", "/bin/sh"),
    ("#! /bin/sh -e", "/bin/sh"),
    ("#!/usr/bin/env node", "node"),
    ("#!/usr/bin/env -S node --no-warnings", "node"),
    ("#!/usr/bin/env -S FOO=1 sh -e", "sh"),
    ("#!/usr/bin/env -S --require=x /home/alice/other", ""),
    ("#!/usr/bin/env -Snode --require=x /home/alice/other", ""),
    ("#!/usr/bin/env -u node /home/alice/other", ""),
    ("#!/usr/bin/env --split-string=node x", ""),
    ("#!/usr/bin/env", ""),
    ("#!/usr/bin/env -S", ""),
    ("#!/usr/bin/env FOO=1", ""),
    ("#!node", ""),
    ("#!", ""),
    ("\x7fELF", ""),
    ("", ""),
]


@pytest.mark.parametrize(("line", "found"), FIRST_LINES)
def test_the_interpreter_of_a_script(tmp_path: Path, line: str, found: str) -> None:
    (tmp_path / "tool").write_text(f"{line}\nexec /bin/false\n")
    assert interpreter(tmp_path / "tool") == found


def test_an_unreadable_file_has_no_interpreter(tmp_path: Path) -> None:
    assert interpreter(tmp_path) == ""
    assert interpreter(tmp_path / "nothere") == ""


def test_no_more_of_a_line_than_the_kernel_reads(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/" + "x" * 500)
    assert len(interpreter(tmp_path / "tool")) == 254
