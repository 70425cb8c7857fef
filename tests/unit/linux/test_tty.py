"""Hidden input: from a terminal, or not at all."""

import os
import pty
import subprocess
import sys
import termios

import pytest

from tests.shared import pace

READ = "from mcpwrap.linux import tty; print('read', tty.read_hidden('Password: '))"
ARGV = [sys.executable, "-c", READ]


def test_it_is_read_from_the_terminal_and_not_shown() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *ARGV], stdin=theirs, stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(theirs)
        seen = b""
        while b"Password: " not in seen:  # from then on the terminal does not echo input
            seen += os.read(ours, 1024)
        os.write(ours, b"secret 12\n")
        out, _ = process.communicate(timeout=pace.WAIT_S)
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
    assert "cannot ask for a password: the process has no terminal" in done.stderr


ASK = """
import signal
from mcpwrap.linux import tty
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & makes us ignore it
print(tty.says_yes(lambda columns: f"{columns} columns\\n" + "text\\n" * 2000, "Yes or no: "))
"""
QUESTION = b"Yes or no: "
ASKED = [sys.executable, "-c", ASK]


def answered(*answers: bytes, early: bytes = b"", columns: int = 0) -> tuple[str, bytes]:
    """Return the result of answers, each to a question, and the terminal's output."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, True)
    termios.tcsetwinsize(theirs, (24, columns))
    os.write(ours, early)
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *ASKED], stdin=theirs, stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(theirs)
        seen = b""
        for answer in answers:
            until = seen.count(QUESTION) + 1
            while not (seen.endswith(QUESTION) and seen.count(QUESTION) == until):
                seen += os.read(ours, 65536)
            os.write(ours, answer)
        out, _ = process.communicate(timeout=pace.WAIT_S)
    os.close(ours)
    return out, seen


@pytest.mark.parametrize(
    ("answers", "is_yes"),
    [
        ([b"yes\n"], True),
        ([b" yes \n"], True),
        ([b"no\n"], False),
        ([b" no \n"], False),
        ([b"no\nyes\n"], False),
        ([b"\x04"], False),
        ([b"\x03"], False),
        # Another answer is asked for again; the rest of its line is not an answer.
        ([b"\n", b"no\n"], False),
        ([b"y\n", b"yes\n"], True),
        ([b"y\nyes\n", b"no\n"], False),
        ([b"yes" + b" " * 100 + b"not\n", b"no\n"], False),
        ([b"yes" + b" " * 61 + b"yes\n", b"\x04"], False),
        ([b"y\n", b"YES\n", b"yes yes\n"], False),
        ([b"y\n", b"YES\n", b"yes\n"], True),
    ],
)
def test_only_yes_is_yes(answers: list[bytes], is_yes: bool) -> None:  # noqa: FBT001
    out, seen = answered(*answers)
    assert out == f"{is_yes}\n"
    assert seen.count(b"text\r\n") == 2000


def test_input_typed_before_the_question_is_not_an_answer() -> None:
    out, _ = answered(b"no\n", early=b"yes\n")
    assert out == "False\n"


@pytest.mark.parametrize(("columns", "said"), [(0, b"80 columns"), (132, b"132 columns")])
def test_the_text_is_made_for_the_width_of_the_terminal(columns: int, said: bytes) -> None:
    assert said in answered(b"no\n", columns=columns)[1]


DROP = """
import sys
from mcpwrap.linux import tty
tty.drop_typed_ahead()
print("Name: ", end="", flush=True)
print("-", input(), "-")
"""


@pytest.mark.parametrize("is_terminal", [True, False])
def test_of_a_terminal_what_was_typed_ahead_is_dropped(is_terminal: bool) -> None:  # noqa: FBT001
    argv = [sys.executable, "-c", DROP]
    if not is_terminal:
        done = subprocess.run(argv, input="early\n", capture_output=True, text=True, check=True)
        assert done.stdout == "Name: - early -\n"
        return
    ours, theirs = pty.openpty()
    os.write(ours, b"early\n")
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        seen = b""
        while not seen.endswith(b"Name: "):
            seen += os.read(ours, 1024)
        os.write(ours, b"late\n")
        while b" -\r\n" not in seen:
            seen += os.read(ours, 1024)
        assert process.wait(pace.WAIT_S) == 0
    os.close(ours)
    assert b"- late -" in seen


def test_without_a_terminal_confirmation_is_an_error() -> None:
    done = subprocess.run(
        ["setsid", "--wait", *ASKED], input="yes\n", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    why = "cannot ask for confirmation: the process has no terminal; nothing was changed"
    assert f"{why} [E-USAGE-NO-TERMINAL]" in done.stderr
