"""Typing what nobody is to see: at a terminal, or not at all."""

import os
import pty
import subprocess
import sys

import pytest

READ = "from mcpwrap.linux import tty; print('read', tty.read_hidden('Password: '))"
ARGV = [sys.executable, "-c", READ]


def test_it_is_read_from_the_terminal_and_not_shown() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *ARGV], stdin=theirs, stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(theirs)
        seen = b""
        while b"Password: " not in seen:  # only then nothing typed is shown
            seen += os.read(ours, 1024)
        os.write(ours, b"secret 12\n")
        out, _ = process.communicate(timeout=20)
    assert out == "read secret 12\n"
    try:
        seen += os.read(ours, 1024)
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(ours)
    assert b"secret" not in seen


@pytest.mark.parametrize("given", ["secret 12\n", ""])
def test_without_a_terminal_standard_input_is_left_alone(given: str) -> None:
    done = subprocess.run(
        ["setsid", "--wait", *ARGV], input=given, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "there is no terminal" in done.stderr
