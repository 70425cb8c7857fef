"""Program run as `nobody`: its output is read, and all else it could do is bounded."""

import os
import sys

import pytest

from mcpwrap.errors import McpwrapError
from mcpwrap.linux import run_as_nobody


@pytest.fixture(autouse=True)
def ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it under this account: the account `nobody` may not reach this tree."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def ask(
    script: str, question: bytes = b"", *, max_bytes: int = 100, timeout_s: float = 60
) -> bytes:
    argv = [sys.executable, "-I", "-c", f"import os, sys, time; {script}"]
    return run_as_nobody.answer_to(question, argv, max_bytes=max_bytes, timeout_s=timeout_s)


def test_it_can_read_the_input_more_than_once() -> None:
    twice = "os.write(1, os.pread(0, 9, 0) + os.pread(0, 9, 0))"
    assert ask(twice, b"asked\0") == b"asked\0asked\0"
    assert ask("pass") == b""


def test_it_has_no_terminal_no_environment_and_no_other_file() -> None:
    os.environ["HIDDEN"] = "yes"
    told = (
        "a = [os.getsid(0) == os.getpid(), sorted(set(os.environ) - {'LC_CTYPE'}), os.getcwd(), "
        "len(os.listdir('/proc/self/fd')) - 1]; os.write(1, repr(a).encode())"
    )
    try:
        assert ask(told) == b"[True, ['LANG'], '/', 3]"
    finally:
        del os.environ["HIDDEN"]


def test_it_cannot_change_the_input() -> None:
    with pytest.raises(McpwrapError, match=r"PermissionError: \[Errno 1\]"):
        ask("os.pwrite(0, b'x', 0)", b"asked", max_bytes=2000)  # a traceback, with its lines


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sys.exit(3)", "ended with status 3; nothing was changed"),
        ("os.kill(os.getpid(), 9)", "ended with status -9; nothing was changed"),
        ("os.write(1, b'x' * 100 + b'y')", r"wrote too much \(x{100}y\); nothing was changed"),
        ("raise ValueError('\\x1b[2J\\u202e')", r"ended with status 1 \(.*\); nothing was changed"),
        ("os.write(2, b'\\n\\x1b[2J' + b'x' * 999); sys.exit(1)", r"1 \(\\x1b\[2Jx{90,} *\); no"),
    ],
)
def test_the_reason_of_a_failure_is_reported_harmlessly(script: str, said: str) -> None:
    with pytest.raises(McpwrapError, match=said) as error:
        ask(script)
    assert all(line.isprintable() for line in str(error.value).splitlines())
    assert len(str(error.value)) < 600


def test_it_has_a_timeout() -> None:
    with pytest.raises(McpwrapError, match=r"did not end within 0.2 s; nothing was changed"):
        ask("time.sleep(600)", timeout_s=0.2)


def test_a_missing_program_is_reported() -> None:
    with pytest.raises(McpwrapError, match="cannot be started: No such file"):
        run_as_nobody.answer_to(b"", ["/nowhere/at-all"], max_bytes=1, timeout_s=1)
