"""Terminal at which a command is typed and answered. Runs inside the machine, as root.

Standard input, output and error of the command are files, so that its output and its text on the
terminal are separate.
"""

import os
import pty
import subprocess

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SUDO_USER": "alice", "TERM": "linux"}


def answer(plan: dict[str, str]) -> tuple[int, str, str, str]:
    """Run `command` with `given` as its input; return status, terminal text, output and error.

    `early` is typed before it starts, `answer` after `question`; `meanwhile` is run in between.
    """
    streams = [os.memfd_create(name) for name in ("given", "out", "err")]
    os.pwrite(streams[0], plan["given"].encode(), 0)
    go, ready = os.pipe()
    person, terminal = pty.fork()
    if person == 0:
        os.read(go, 1)
        os.dup2(0, 10)  # stays open in the command: without an open end, it would be hung up
        for fd, stream in enumerate(streams):
            os.dup2(stream, fd)
        os.execve("/bin/sh", ["sh", "-c", f"exec {plan['command']}"], ENVIRONMENT)
    os.write(terminal, plan["early"].encode())
    os.write(ready, b"x")
    shown = _shown(terminal, plan)
    status = os.waitstatus_to_exitcode(os.waitpid(person, 0)[1])
    out, err = map(_text, streams[1:])
    return status, shown, out, err


def _shown(terminal: int, plan: dict[str, str]) -> str:
    seen, is_first = b"", True
    while piece := _read(terminal):
        seen += piece
        if seen.endswith(plan["question"].encode()):  # once more, after another word
            if is_first and plan["meanwhile"]:
                subprocess.run(["sh", "-c", plan["meanwhile"]], check=True, stdout=2)
            is_first = False
            os.write(terminal, plan["answer"].encode())
    return seen.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # no process has it open any more: tty_ioctl(4), EIO
        return b""


def _text(fd: int) -> str:
    return os.pread(fd, os.fstat(fd).st_size, 0).decode()
