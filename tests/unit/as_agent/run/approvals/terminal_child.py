"""Process that asks at its terminal, as `mcpwrap run` does; a test says what waits, line by line.

A line of input is a list of the questions that wait, of an id and a count of arguments each. After
it the process prints whether a question is on the terminal; after each typed line, the decision.
"""

import fcntl
import json
import os
import select
import signal
import sys
import termios
from contextlib import suppress
from functools import partial
from math import inf

from mcpwrap.as_agent.run.approvals.terminal import AgentTerminal
from mcpwrap.core.approval import document
from mcpwrap.core.approval.entry import ApprovalSubject, QueuedApproval
from tests.unit.core.approval.questions import call


def shown_documents(size_by_id: dict[str, int], id_: str) -> tuple[str, list[bytes]]:
    """Return the document of a question; without a count of arguments, one of another version."""
    size = size_by_id[id_]
    if size < 0:
        return "", [b"{}"]
    return "", [document.document(call({f"a{number}": number for number in range(size)}))]


def entry(id_: str) -> QueuedApproval:
    about = ApprovalSubject(
        digest=f"digest of {id_}", size=1, agent_uid=1000, server="sqlite", session="1",
        method="tools/call", target="t", rule="asks", message="", expires_s=inf,
    )  # fmt: skip
    return QueuedApproval(id_, about, 0.0)


def main(state: str) -> None:
    with suppress(OSError):  # standard error is not a terminal
        fcntl.ioctl(2, termios.TIOCSCTTY, 0)
    terminal = AgentTerminal.found()
    if terminal is None:
        print("no terminal")
        return
    if state == "raw":
        attributes = termios.tcgetattr(terminal.fileno())
        attributes[3] &= ~termios.ICANON
        termios.tcsetattr(terminal.fileno(), termios.TCSANOW, attributes)
    elif state == "background":
        other_pid = give_away(terminal.fileno())
        serve(terminal)
        os.kill(other_pid, signal.SIGKILL)
        return
    serve(terminal)


def give_away(terminal_fd: int) -> int:
    """Put another process into the foreground of the terminal; return its pid."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        signal.pause()
    os.setpgid(pid, pid)
    os.tcsetpgrp(terminal_fd, pid)
    return pid


def serve(terminal: AgentTerminal) -> None:
    size_by_id: dict[str, int] = {}
    while True:
        fds = [0, terminal.fileno()] if terminal.is_asking else [0]
        ready, _, _ = select.select(fds, [], [])
        if 0 not in ready:
            decide = terminal.answer()
            print(json.dumps(decide and [decide.id, decide.digest, decide.verdict, decide.channel]))
        elif line := os.read(0, 4096):
            size_by_id = dict(json.loads(line))
            documents = partial(shown_documents, size_by_id)
            terminal.update([entry(id_) for id_ in size_by_id], documents)
            print(json.dumps(terminal.is_asking))
        else:
            return
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
