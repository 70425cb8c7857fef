"""Stand-in for an agent: starts the stub with pipes, and can be killed. Runs in the machine."""

import os
import subprocess
import threading
from pathlib import Path


def run(server: str, pid_file: str) -> None:
    """Copy from and to a stub until it ends; its process id is in `pid_file`."""
    pipe = subprocess.PIPE
    stub = subprocess.Popen(["mcpwrap-connect", server], stdin=pipe, stdout=pipe)
    Path(pid_file).write_text(str(stub.pid))
    assert stub.stdin
    assert stub.stdout
    threading.Thread(target=_copy_in, args=(stub.stdin.fileno(),), daemon=True).start()
    _copy(stub.stdout.fileno(), 1)
    stub.wait()


def _copy_in(to_fd: int) -> None:
    _copy(0, to_fd)
    os.close(to_fd)


def _copy(from_fd: int, to_fd: int) -> None:
    while data := os.read(from_fd, 65536):
        os.write(to_fd, data)


def speak_at_a_terminal(server: str, line: str, until: str) -> tuple[str, int]:
    """Run the stub at a terminal; return the text after `line` there, and the stub's status."""
    import pty

    pid, fd = pty.fork()
    if pid == 0:
        os.execv("/usr/bin/mcpwrap-connect", ["mcpwrap-connect", server])
    os.write(fd, line.encode() + b"\n")
    text = ""
    while until not in text or not text.endswith("\n"):  # the line itself is echoed first
        text += os.read(fd, 4096).decode()
    os.write(fd, b"\x04")
    _, status = os.waitpid(pid, 0)
    return text.splitlines()[-1], os.waitstatus_to_exitcode(status)
