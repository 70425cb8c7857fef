"""Terminal at which the commands of a page of docs/how-to are typed. Runs inside the machine."""

import json
import os
import pty
import re
import select
import sys
import termios
import urllib.request
from typing import Any

PROMPT = r"[:?\]] \Z"  # behind which a person types, where nothing follows for a moment
MOMENT_S = 0.3
ADDRESS = re.compile(r"^\s*(https://\S+)\s*$", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CTRL_C = b"\x03"
ROWS_AND_COLUMNS = (50, 200)
# No pager, and no keychain.
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "MCP_INSPECTOR_SECRET_STORE": "memory",
    "PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "TERM": "xterm",
}


def play() -> tuple[int, str]:
    """Run the script on standard input, a JSON object; return its status, and what was shown.

    `typed` has a line for each prompt. With `opens` the https address that is shown is opened.
    With `until`, an expression for the lines shown, Ctrl-C is typed when they match.
    """
    wanted: dict[str, Any] = json.load(sys.stdin)
    pid, terminal = pty.fork()
    if pid == 0:
        termios.tcsetwinsize(0, ROWS_AND_COLUMNS)
        argv = ["bash", "-e", "-o", "pipefail", "-c", wanted["script"]]
        os.execvpe(argv[0], argv, os.environ | ENVIRONMENT)
    shown, typed, until = b"", list(wanted["typed"]), 0
    to_open, awaited = wanted["opens"], wanted["until"]
    while some := _read(terminal):
        shown += some
        text = COLOUR.sub("", shown.decode(errors="replace")).replace("\r\n", "\n")
        if typed and re.search(PROMPT, text[until:]) and not _has_more(terminal):
            until = len(text)
            os.write(terminal, typed.pop(0).encode() + b"\n")
        if to_open and (address := ADDRESS.search(text)):
            to_open = False
            with urllib.request.urlopen(address[1]) as page:
                page.read()
        if awaited and re.fullmatch(awaited, text.strip("\n") + "\n"):
            awaited = ""
            os.write(terminal, CTRL_C)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode(errors="replace")


def _has_more(terminal: int) -> bool:
    return bool(select.select([terminal], [], [], MOMENT_S)[0])


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # no process has it open any more: tty_ioctl(4), EIO
        return b""
