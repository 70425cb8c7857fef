"""Question at a terminal: asked while the person has it, and answered by a line that they type."""

import json
import os
import pty
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from mcpwrap.core.approval.client_forms import PERSON_S
from tests.shared import pace

CHILD = [sys.executable, "-m", "tests.unit.as_agent.run.approvals.terminal_child"]
APPROVED = ["7f3a", "digest of 7f3a", "approve", "terminal"]
DENIED = ["7f3a", "digest of 7f3a", "deny", "terminal"]
ASKED = "mcpwrap: approve 7f3a? The agent runs under your account, too. [y/n]"


@dataclass
class Person:
    """Person at the terminal of a process that asks."""

    process: subprocess.Popen[str]
    terminal_fd: int
    seen: str = ""

    def waits(self, *ids: str, size: int = 1) -> bool:
        """Have questions wait; return whether one is on the terminal."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps([(id_, size) for id_ in ids]) + "\n")
        self.process.stdin.flush()
        return bool(self.decision())

    def decision(self) -> Any:
        """Return the next line of the process."""
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def reads(self, until: str) -> None:
        """Read until a text is on the terminal."""
        while until not in self.seen:
            self.seen += os.read(self.terminal_fd, 4096).decode()

    def types(self, line: str, after_s: float = PERSON_S) -> Any:
        """Type a line after reading; return the decision."""
        time.sleep(after_s)  # as a person reads
        os.write(self.terminal_fd, line.encode() + b"\n")
        return self.decision()


@contextmanager
def at_terminal(state: str = "ours") -> Iterator[Person]:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*CHILD, state], stdin=pipe, stdout=pipe, stderr=theirs, text=True, start_new_session=True
    ) as process:
        yield Person(process, ours)
    for fd in (ours, theirs):
        os.close(fd)


@pytest.mark.parametrize(
    ("line", "decision"),
    [("y", APPROVED), (" YES ", APPROVED), ("n", DENIED), ("no", DENIED)],
)
def test_a_typed_line_answers_the_oldest_question(line: str, decision: list[str]) -> None:
    with at_terminal() as person:
        assert person.waits("7f3a", "other")
        person.reads(ASKED)
        assert person.types(line) == decision
        assert "mcpwrap: approval 7f3a of sqlite: t" in person.seen
        assert "      a0: 0" in person.seen
        assert person.waits("other")  # then the next


def test_what_is_typed_before_it_can_be_read_does_not_count() -> None:
    with at_terminal() as person:
        assert person.waits("7f3a")
        assert person.types("y", after_s=0) is None
        person.reads("7f3a: read it first; then type y or n, and Enter")
        assert person.types("y") == APPROVED


@pytest.mark.parametrize("line", ["", "maybe", "yy", "y n"])
def test_another_line_answers_nothing(line: str) -> None:
    with at_terminal() as person:
        assert person.waits("7f3a")
        assert person.types(line) is None
        person.reads("7f3a: type y or n, and Enter")
        assert person.types("n", after_s=0) == DENIED


@pytest.mark.parametrize(
    ("state", "size"),
    [
        ("raw", 1),  # an agent draws a screen, and reads keys
        ("background", 1),  # another program has the terminal
        ("ours", 300),  # more than a person reads there
        ("ours", -1),  # a document of another version
    ],
)
def test_it_is_not_asked_where_it_cannot_be_answered(state: str, size: int) -> None:
    with at_terminal(state) as person:
        assert not person.waits("7f3a", size=size)
        assert person.waits("other") is (state == "ours")


def test_a_question_that_is_answered_elsewhere_leaves_the_terminal_alone() -> None:
    with at_terminal() as person:
        assert person.waits("7f3a")
        assert person.waits("7f3a", "other")  # it stays, and is shown once
        assert not person.waits()
        os.write(person.terminal_fd, b"y\n")  # for the agent
        assert not person.waits()
        person.reads(ASKED)
        assert person.seen.count(ASKED) == 1


def test_without_a_terminal_there_is_no_question() -> None:
    done = subprocess.run(
        [*CHILD, "ours"], capture_output=True, text=True, timeout=pace.WAIT_S, check=True
    )
    assert done.stdout == "no terminal\n"
