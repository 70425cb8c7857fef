"""Process of alice, and a polkit agent on her terminal. Runs inside the machine, as root.

The agent asks for a password there, and the story gives the text to type.
"""

import json
import os
import pty
import pwd
import select
import signal
import subprocess
import termios
from pathlib import Path
from typing import Any

ALICE = "alice"
PROMPT = "Password: "
POLL_S = 0.1
TRYING = "mcpwrap-tried.service"
ARGS, OUT = Path("/run/tried.env"), Path("/run/tried.out")


class Terminal:
    """Polkit agent that is registered for one process, and answers by these passwords."""

    def __init__(self, pid: int, start: int, passwords: list[str]) -> None:
        self._passwords = list(passwords)
        self._typed = 0
        self.shown = ""
        alice = pwd.getpwnam(ALICE)
        ready, told = os.pipe()
        os.set_inheritable(told, True)  # noqa: FBT003 - its signature
        self._agent, self._terminal = pty.fork()
        if self._agent == 0:
            os.setgroups([])
            os.setgid(alice.pw_gid)
            os.setuid(alice.pw_uid)
            argv = ["--process", f"{pid},{start}", "--notify-fd", str(told)]
            os.execv("/usr/bin/pkttyagent", ["pkttyagent", *argv])
        os.close(told)
        if os.read(ready, 1):  # closed: it is registered
            raise RuntimeError("the agent of polkit's does not say that it is ready")

    @property
    def prompts(self) -> int:
        """How often a password was asked for."""
        return self.shown.count(PROMPT)

    def type_until_end_of(self, process: subprocess.Popen[str]) -> None:
        """Type the next password at each prompt, until the process has ended."""
        while process.poll() is None:
            self._read(POLL_S)
            # It turns the echo off after its prompt, and discards input from before that.
            is_silent = not termios.tcgetattr(self._terminal)[3] & termios.ECHO
            if self._passwords and is_silent and self.prompts > self._typed:
                self._typed += 1
                os.write(self._terminal, self._passwords.pop(0).encode() + b"\n")
        self._read(0)  # its last output

    def _read(self, within_s: float) -> None:
        if select.select([self._terminal], [], [], within_s)[0]:
            self.shown += os.read(self._terminal, 65536).decode()

    def end(self) -> None:
        """End the agent."""
        os.kill(self._agent, signal.SIGKILL)
        os.waitpid(self._agent, 0)


def _start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def _as_alice(argv: list[str], **more: Any) -> subprocess.Popen[str]:
    alice = pwd.getpwnam(ALICE)
    return subprocess.Popen(
        argv, user=alice.pw_uid, group=alice.pw_gid, extra_groups=[], text=True, **more
    )


def answered(command: str, answer: dict[str, Any], passwords: list[str]) -> list[Any]:
    """Have alice decide by `command` (see `guest/approver.py`); return results, and the terminal.

    The answer gets the start of her process, by which polkit identifies it.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    asker = _as_alice(["sh", "-c", f'read -r plan; exec {command} "$plan"'], **pipes)
    answer["process_start"] = _start_of(asker.pid)
    terminal = Terminal(asker.pid, answer["process_start"], passwords)
    assert asker.stdin
    assert asker.stdout
    asker.stdin.write(json.dumps([["decide", answer]]) + "\n")
    asker.stdin.close()
    terminal.type_until_end_of(asker)
    terminal.end()
    return [json.loads(asker.stdout.read())[0], terminal.shown]


def asked(passwords: list[str], how: dict[str, Any]) -> list[Any]:
    """Start the service that queries polkit; return each call's outcome, prompts, and terminal.

    Of `how`, `start_by` is added to the start of alice's process, so that it is another's;
    `has_agent` is whether she has a terminal; the service is started `calls` times, and each waits
    for `patience_s`.
    """
    asker = _as_alice(["sleep", "infinity"])
    start = _start_of(asker.pid)
    terminal = Terminal(asker.pid, start, passwords) if how["has_agent"] else None
    found = []
    for _ in range(how["calls"]):
        argv = (asker.pid, start + how["start_by"], pwd.getpwnam(ALICE).pw_uid, how["patience_s"])
        ARGS.write_text(f"ARGS={' '.join(map(str, argv))}")
        trying = subprocess.Popen(["systemctl", "start", TRYING], text=True)
        if terminal:
            terminal.type_until_end_of(trying)
        trying.wait()
        found.append(json.loads(OUT.read_text().splitlines()[-1]))
    asker.kill()
    asker.wait()
    if terminal is None:
        return [found, 0, ""]
    terminal.end()
    return [found, terminal.prompts, terminal.shown]
