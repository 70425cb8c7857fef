"""Names that control a terminal, in every source of names. Runs inside the machine, as root."""

import json
import os
import pty
import pwd
import shutil
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

HOME = Path("/home/alice")
TABLES = ("/etc/passwd", "/etc/group")
LOG = Path("/var/log/mcpwrap/proxy/hostile.jsonl")
LIST, POLICY, MCP = "hostile.toml", "hostile.yaml", ".claude.json"
WIDE = (24, 500)  # of the terminal: no table is cut


def plant(name: str) -> None:
    """Make a file, an account, servers, a policy, a Squid line and a journal line with it."""
    word = "".join(name.split("\n"))  # where a newline ends a line, or Squid has escaped it
    alice = pwd.getpwnam("alice")
    for table in TABLES:
        shutil.copy2(table, f"{table}.before")
    account = f"{word}:x:{alice.pw_uid}:{alice.pw_gid}::{HOME}:/bin/bash\n"
    _change("/etc/passwd", lambda text: account + text)
    _change("/etc/group", lambda text: text.replace(":alice", f":{word},alice"))
    (HOME / name).touch()
    (HOME / LIST).write_text(f"[mcp_servers.{json.dumps(name)}]\ncommand = {json.dumps(name)}\n")
    (HOME / POLICY).write_text(f"version: 1\nrules: [{{name: {json.dumps(name)}, tool: 1}}]\n")
    server = {"command": f"/usr/bin/{name}", "args": [name], "env": {"A": name, "A_TOKEN": name}}
    (HOME / MCP).write_text(json.dumps({"mcpServers": {name: server}}))
    folder = HOME / f"{name}.d"  # of an agent's settings, which a variable names
    folder.mkdir()
    (folder / "config.toml").touch()
    LOG.write_bytes(
        b'{"t":1700000000,"server":"probe","verdict":"no","rule":"host-not-allowed",'
        b'"method":"CONNECT","host":"%b","port":"443"}\n' % word.encode()
    )


def remove(name: str) -> None:
    """Remove all of them."""
    for table in TABLES:
        Path(f"{table}.before").replace(table)
    shutil.rmtree(HOME / f"{name}.d")
    for path in (HOME / name, HOME / LIST, HOME / POLICY, HOME / MCP, LOG):
        path.unlink(missing_ok=True)


def log(message: str, pid: int) -> None:
    """Write a message about a process to the journal, as root may."""
    fields = f"MESSAGE={message}\nPRIORITY=6\nOBJECT_PID={pid}\n"
    subprocess.run(["logger", "--journald"], input=fields.encode(), check=True)
    subprocess.run(["journalctl", "--sync"], check=True)


def shown(command: str) -> str:
    """Run a shell command at a terminal; return its output, each byte as a character."""
    pid, terminal = pty.fork()
    if pid == 0:
        termios.tcsetwinsize(0, WIDE)
        os.execvp("bash", ["bash", "-c", command])
    sent = b""
    while piece := _read(terminal):
        sent += piece
    os.waitpid(pid, 0)
    return sent.decode("latin-1")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # no process has it open any more: tty_ioctl(4), EIO
        return b""


def _change(path: str, change: Callable[[str], str]) -> None:
    file = Path(path)
    file.write_text(change(file.read_text()))
