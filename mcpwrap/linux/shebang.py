"""Interpreter of a script, from its `#!` line. Reads only."""

import os
import stat
from itertools import dropwhile
from pathlib import Path

_MAX_LINE_BYTES = 256  # the kernel reads no more: execve(2)


def interpreter(program: Path) -> str:
    """Return the path of a file's interpreter, or the name that env(1) searches for; else "".

    An option of env(1) other than a first `-S` may take the next word, which then does not name
    the interpreter: "" is returned.
    """
    try:
        line = _first_line(program)
    except OSError:
        return ""
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    if not words or not words[0].startswith("/"):
        return ""
    if Path(words[0]).name != "env":
        return words[0]
    rest = words[2:] if words[1:2] == ["-S"] else words[1:]
    command = next(dropwhile(lambda word: "=" in word and word[0] != "-", rest), "-")
    return "" if command.startswith("-") else command


def _first_line(path: Path) -> bytes:
    """Return the start of a plain file. No other file is opened: opening may have an effect."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return b""
        with Path(f"/proc/self/fd/{fd}").open("rb") as file:
            return file.readline(_MAX_LINE_BYTES)
    finally:
        os.close(fd)
