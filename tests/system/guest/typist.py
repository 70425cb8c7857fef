"""Typed answers to a program at its own terminal. Runs inside the machine, as a person.

This file itself is sent into the machine, with a JSON object as its argument: `argv`, and
`answers`: of each the first is a pattern to wait for, the second a line to type then, and the
third, if any, for how many seconds a person reads before. It prints as JSON the status of the
program, and the whole text of the terminal.
"""

import codecs
import json
import os
import pty
import re
import sys
import time
from collections.abc import Sequence

Answer = tuple[str, str] | tuple[str, str, float]


def typed(argv: list[str], answers: Sequence[Answer]) -> tuple[int, str]:
    """Run the program; other prompts are not answered."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    shown, until, left = "", 0, list(answers)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end in a character
    while some := _read(terminal):
        shown += decoder.decode(some)
        if left and (asked := re.search(left[0][0], shown[until:])):
            until += asked.end()
            _, line, *reads_for_s = left.pop(0)
            time.sleep(sum(reads_for_s))
            os.write(terminal, line.encode() + b"\n")
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown


def typed_from_stdin(argv: list[str], pattern: str) -> tuple[int, str]:
    """Type standard input after the pattern is shown: the input is in no command line."""
    return typed(argv, [(pattern, sys.stdin.read())])


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # no process has it open any more: tty_ioctl(4), EIO
        return b""


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(typed(asked["argv"], asked["answers"])))
