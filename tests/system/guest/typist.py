"""Typed answers to a program at its own terminal. Runs inside the machine, as a person.

This file is itself sent into the machine, with a JSON object as its argument: `argv`, and
`answers`, pairs of a pattern to be waited for and a line to be typed then. It prints as JSON the
status of the program, and all that the terminal showed.
"""

import codecs
import json
import os
import pty
import re
import sys


def typed(argv: list[str], answers: list[tuple[str, str]]) -> tuple[int, str]:
    """Run the program; what it asks besides is not answered."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    shown, until, left = "", 0, list(answers)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end in a character
    while some := _read(terminal):
        shown += decoder.decode(some)
        if left and (asked := re.search(left[0][0], shown[until:])):
            until += asked.end()
            os.write(terminal, left.pop(0)[1].encode() + b"\n")
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown


def typed_from_stdin(argv: list[str], pattern: str) -> tuple[int, str]:
    """Type standard input where the pattern is shown: no command line has what is typed."""
    return typed(argv, [(pattern, sys.stdin.read())])


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody has it open any more: tty_ioctl(4), EIO
        return b""


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(typed(asked["argv"], asked["answers"])))
