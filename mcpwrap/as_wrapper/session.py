"""Session of a wrapper: its folders, its server, its cgroup."""

import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mcpwrap.as_wrapper import session_files
from mcpwrap.as_wrapper.disk_usage import PersistentFolder
from mcpwrap.as_wrapper.workspace_mounts import WorkspaceMounts
from mcpwrap.core import environment, umask
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import ServerSpec
from mcpwrap.linux.executables import start
from mcpwrap.linux.isolation.cgroup import CgroupLimits, Leaf
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.session.launch import spawn
from mcpwrap.session.launch.sandbox import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperContext:
    """Context of a wrapper. `state` is the home that lasts, if the server has one."""

    spec: ServerSpec
    account: str
    gate_uid: int
    runtime: Path
    state: Path | None
    tree: Path  # the cgroup that systemd delegated
    limits: CgroupLimits | None  # None: no controller was delegated, and the unit's own must do
    view: WorkspaceMounts | None  # None: it has no workspace
    logins: Path | None = None  # where those to a remote server are kept, if there are any
    lasting: tuple[PersistentFolder, ...] = ()  # all that stays on the disk


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSlot:
    """Session slot, prepared before a session is requested, its process included."""

    session_id: str
    slot_dir: Path  # its own file system, sized
    folder: Path
    leaf: Leaf
    process: spawn.PreparedProcess

    def give_up(self) -> None:
        """End the process. The folder is the caller's to remove."""
        self.process.channel.close()
        _end(self.leaf, self.session_id)


def prepare_slot(context: WrapperContext, place: Path) -> SessionSlot:
    """Prepare a session in `place`, which is not in use.

    Raises:
        OSError: what it needs is used up; nothing of it is left.
    """
    session_id = os.urandom(8).hex()
    folder = place / f"s-{session_id}"
    leaf = Leaf(context.tree, folder.name)
    place.chmod(0o700)  # a server that was here may have shut it
    folder.mkdir(mode=0o700)
    try:
        leaf.make()
        if context.limits:
            leaf.limit(context.limits)
        process = spawn.prepare(
            Sandbox(str(folder), may_be_degraded=context.spec.allow_degraded), leaf
        )
    except OSError:
        leaf.end()
        folder.rmdir()
        raise
    return SessionSlot(
        session_id=session_id, slot_dir=place, folder=folder, leaf=leaf, process=process
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """Session request of the gate, as it came."""

    agent_uid: str
    inherited: dict[str, str]
    fds: list[int]  # 0, 1 and 2 of the server
    umask: str = ""  # the agent's; "" where the gate does not know it

    def expect_sound(self, spec: ServerSpec) -> None:
        """Refuse what is not of our protocol.

        Raises:
            ValueError: the gate did not keep to it.
        """
        is_uid = self.agent_uid.isascii() and self.agent_uid.isdecimal()
        allowed = {*spec.inherits_any, *([session_socket.LOGIN] if spec.has_oauth() else ())}
        of_a_kind = {name: self.inherited[name] for name in self.inherited.keys() - allowed}
        if not is_uid or not of_a_kind.keys() <= set(spec.inherits):
            raise session_socket.ProtocolError("no UID, or a variable that is not inherited")
        if any(environment.why_not(name, value) for name, value in of_a_kind.items()):
            raise session_socket.ProtocolError("a variable with a value that is not of its kind")
        self.umask_for(spec)
        if len(self.fds) != 3:
            raise session_socket.ProtocolError(f"{len(self.fds)} descriptors instead of 3")
        fd_passing.expect_streams(self.fds, readable=self.fds[0], writable=self.fds[1:])

    def umask_for(self, spec: ServerSpec) -> int:
        """Return the umask of the server: what root wrote, or else its agent's.

        A program of ours for a server elsewhere writes nothing that an agent sees.

        Raises:
            ValueError: the gate did not keep to our protocol.
        """
        if spec.umask is not None:
            return spec.umask
        return umask.parse(self.umask) if self.umask and not spec.remote else umask.STRICT


@dataclass(slots=True, kw_only=True)
class ServerSession:
    """Running server, with its slot, its redactor and its connection to the gate."""

    slot: SessionSlot
    copier_pid: int  # of the redactor; 0 if there is none, or no longer
    connection: socket.socket
    ended: session_socket.ServerEnded | None = (
        None  # the server has; what it wrote may be on its way still
    )
    began_s: float = field(default_factory=time.monotonic)

    def kill(self) -> None:
        """End all processes of the server."""
        _end(self.slot.leaf, self.slot.session_id)

    def stop_copying(self) -> None:
        """End the redactor. It is still ours: once reaped, its pid is noted here no more."""
        if self.copier_pid:
            os.kill(self.copier_pid, signal.SIGKILL)

    def close(self) -> None:
        """Say how it ended. Its folder is the caller's to remove."""
        with self.connection:
            if self.ended:
                with suppress(OSError):
                    self.connection.send(session_socket.encode(self.ended))


def open_session(
    context: WrapperContext,
    ready: SessionSlot,
    opening: SessionRequest,
    connection: socket.socket,
    value_by_key: Mapping[str, str],
) -> ServerSession:
    """Start the server on the descriptors of `opening`.

    Raises:
        OSError: the server could not be started; `ready` is to be given up.
    """
    start.expect_unchanged(context.spec)
    copier_pid, output_fds = 0, (opening.fds[1], opening.fds[2])
    program = _program(context, ready.folder, opening.inherited, value_by_key)
    try:
        if value_by_key and not context.spec.remote:  # whose program does it itself
            # Only here, because most wrappers have no secrets and none of its libraries.
            from mcpwrap.as_wrapper import redactor  # noqa: PLC0415

            copier_pid, output_fds = redactor.start(value_by_key, output_fds)
        ready.leaf.label(f"agent-{opening.agent_uid}-{time.time():.0f}")
        stdio = (opening.fds[0], *output_fds)
        ready.process.run(program, stdio, opening.umask_for(context.spec))
        connection.send(session_socket.encode(session_socket.ServerStarted(ready.session_id)))
    finally:
        if copier_pid:
            fd_passing.close_all(list(output_fds))
    return ServerSession(slot=ready, copier_pid=copier_pid, connection=connection)


def _program(
    context: WrapperContext,
    folder: Path,
    inherited: Mapping[str, str],
    value_by_key: Mapping[str, str],
) -> spawn.Program:
    spec = context.spec
    home, tmp = context.state or folder / "home", folder / "tmp"
    for path in (folder / "home", tmp):
        path.mkdir(mode=0o700)
    text_by_key = {**value_by_key, **session_files.write_secret_files(spec, folder, value_by_key)}
    declared = {
        name: environment.filled_in(template, text_by_key) for name, template in spec.env.items()
    }
    if spec.remote:
        session_files.write_headers_file(spec.remote, folder, value_by_key)
        declared |= session_files.remote_variables(spec.remote, folder)
        if spec.remote.oauth and context.logins:
            has = session_files.oauth_session_file(
                spec.name, spec.remote.oauth, context.logins, value_by_key
            )
            declared |= session_files.write_oauth_file(has, folder)
    env = environment.build(
        account=context.account,
        home=str(home),
        tmp=str(tmp),
        inherited={**inherited, **spec.egress_env},
        declared=declared,
    )
    return spawn.Program(command=spec.command, args=spec.args, cwd=spec.cwd or str(home), env=env)


def _end(leaf: Leaf, session_id: str) -> None:
    try:
        leaf.end()
    except OSError as error:
        log_line(f"session {session_id}: {error}")
