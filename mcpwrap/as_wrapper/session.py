"""RUNS AS mcpw-NAME: one session: its folders, its server, its cgroup."""

import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.core import environment, hello
from mcpwrap.core.spec import Spec
from mcpwrap.linux import descriptors
from mcpwrap.linux.cgroup import Leaf
from mcpwrap.linux.log import say
from mcpwrap.session.sandbox import Sandbox
from mcpwrap.session.spawn import Program, spawn

_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a wrapper runs. `state` is the home that lasts, if the server has one."""

    account: str
    gate_uid: int
    runtime: Path
    state: Path | None
    tree: Path  # the cgroup that systemd delegated


@dataclass(frozen=True, slots=True)
class Opening:
    """What the gate asks for, as it came: an id, the agent's variables, descriptors 0, 1 and 2."""

    session_id: str
    inherited: dict[str, str]
    fds: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A running server and what belongs to it."""

    pid: int
    connection: socket.socket
    folder: Path
    leaf: Leaf

    def end(self, exit_status: int | None) -> None:
        """Kill what is left, say how it ended, and remove its folders."""
        try:
            self.leaf.end()
        except TimeoutError as error:
            say(f"session {self.folder.name}: {error}")
        with self.connection:
            if exit_status is not None:
                with suppress(OSError):
                    self.connection.send(hello.encode(hello.Ended(exit_status)))
        _remove(self.folder)


def open_session(
    spec: Spec, around: Surroundings, connection: socket.socket, opening: Opening
) -> Session:
    """Start the server of `spec` on the descriptors of `opening`.

    Raises:
        ValueError: the gate did not keep to the protocol.
        OSError: the server could not be started; nothing of the session is left.
    """
    fds = opening.fds
    if not _ID.fullmatch(opening.session_id) or not opening.inherited.keys() <= set(spec.inherits):
        raise hello.ProtocolError("no session id, or a variable that is not inherited")
    if len(fds) != 3:
        raise hello.ProtocolError(f"{len(fds)} descriptors instead of 3")
    descriptors.expect_streams(fds, readable=fds[0], writable=fds[1:])
    folder = around.runtime / f"s-{opening.session_id}"
    leaf = Leaf(around.tree, folder.name)
    try:
        pid = spawn(_program(spec, around, folder, opening), leaf)
        connection.send(hello.encode(hello.Started()))
    except OSError:
        leaf.end()
        _remove(folder)
        raise
    return Session(pid=pid, connection=connection, folder=folder, leaf=leaf)


def _program(spec: Spec, around: Surroundings, folder: Path, opening: Opening) -> Program:
    home, tmp = around.state or folder / "home", folder / "tmp"
    for path in (folder, folder / "home", tmp):
        path.mkdir(mode=0o700)
    env = environment.build(
        account=around.account,
        home=str(home),
        tmp=str(tmp),
        inherited=opening.inherited,
        declared=spec.env,
    )
    return Program(
        command=spec.command,
        args=spec.args,
        cwd=spec.cwd or str(home),
        env=env,
        stdio=(opening.fds[0], opening.fds[1], opening.fds[2]),
        sandbox=Sandbox(str(folder), may_be_degraded=spec.allow_degraded),
    )


def _remove(folder: Path) -> None:
    """Remove a session's folder, in a process of its own: a server may have made it deep or large.

    The supervisor reaps that process with all others.
    """
    script = 'chmod -R u+rwX -- "$1"; exec rm -rf --one-file-system -- "$1"'
    os.posix_spawn("/bin/sh", ["sh", "-c", script, "sh", str(folder)], {"PATH": environment.PATH})
