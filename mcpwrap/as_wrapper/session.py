"""Session of a wrapper: its folders, its server, its cgroup."""

import dataclasses
import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mcpwrap.as_wrapper import session_files
from mcpwrap.as_wrapper.disk_usage import PersistentFolder
from mcpwrap.as_wrapper.member_sessions import MemberSessions, OuterRequest
from mcpwrap.as_wrapper.project.agent_folder import AgentFolder
from mcpwrap.as_wrapper.workspace_mounts import MountWatch, WorkspaceMounts
from mcpwrap.core import environment, project, umask
from mcpwrap.core.names import is_server_name
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.hub import hub_channel
from mcpwrap.core.wire.server_files import Folder, ServerSpec
from mcpwrap.linux.executables import start
from mcpwrap.linux.isolation.cgroup import CgroupLimits, Leaf
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.session.launch import spawn
from mcpwrap.session.launch.sandbox import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperContext:
    """Context of a wrapper. `state` is the persistent home, if the server has one."""

    spec: ServerSpec
    account: str
    gate_uid: int
    runtime: Path
    state: Path | None
    tree: Path  # the cgroup that systemd delegated
    limits: CgroupLimits | None  # None: no controller was delegated; the unit's limits hold
    view: WorkspaceMounts | None  # None: it has no workspace, and no projects
    logins: Path | None = None  # folder of the OAuth login to a remote server
    lasting: tuple[PersistentFolder, ...] = ()  # all folders that outlive sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSlot:
    """Session slot, prepared with its process before a session is requested."""

    session_id: str
    slot_dir: Path  # its own file system, sized
    folder: Path
    leaf: Leaf
    process: spawn.PreparedProcess

    def give_up(self) -> None:
        """End the process. The caller removes the folder."""
        self.process.channel.close()
        _end(self.leaf, self.session_id)


def prepare_slot(context: WrapperContext, slot_dir: Path) -> SessionSlot:
    """Prepare a session in `slot_dir`, which is not in use.

    Raises:
        OSError: a resource that it needs is used up; nothing remains of it.
    """
    session_id = os.urandom(8).hex()
    folder = slot_dir / f"s-{session_id}"
    leaf = Leaf(context.tree, folder.name)
    slot_dir.chmod(0o700)  # an earlier server may have changed its mode
    folder.mkdir(mode=0o700)
    try:
        leaf.make()
        if context.limits:
            leaf.limit(context.limits)
        process = spawn.prepare(_sandbox(context, folder), leaf, _session_view(context))
    except OSError:
        leaf.end()
        folder.rmdir()
        raise
    return SessionSlot(
        session_id=session_id, slot_dir=slot_dir, folder=folder, leaf=leaf, process=process
    )


def _sandbox(context: WrapperContext, folder: Path) -> Sandbox:
    lists = [each.path for each in context.view.workspaces.projects] if context.view else []
    return Sandbox(
        str(folder),
        may_be_degraded=context.spec.allow_degraded,
        has_namespaces=context.spec.has_projects(),
        # Those below an entry of the root folder are allowed with it. To name them would follow
        # links in folders of agents.
        covered=tuple(path for path in lists if path.count("/") == 1),
    )


def _session_view(context: WrapperContext) -> spawn.View | None:
    """Return the view of a session's process; None without `projects`, or where none is possible.

    Where none is possible, root has not mounted the folders.
    """
    if context.view is None or not context.view.workspaces.projects:
        return None
    from mcpwrap.as_wrapper.project.session_view import SessionView  # noqa: PLC0415 - few servers need it

    return SessionView(context.spec.name, context.view.workspaces)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """Session request of the gate, not yet checked."""

    agent_uid: str
    inherited: dict[str, str]
    fds: list[int]  # 0, 1 and 2 of the server; of a hub also its catalogue
    umask: str = ""  # the agent's; "" if the gate does not know it
    via: str = ""  # the session's id at the gate, for a hub alone
    of_hub: str = ""  # the hub that has opened it for its agent
    has_folder: bool = False  # the last descriptor is the agent's current folder
    pinned: str = ""  # the project, by root's configuration of the agent's URL

    def folder(self) -> AgentFolder:
        """Return the folder of the agent."""
        fd = self.fds[-1] if self.has_folder else None
        return AgentFolder(fd=fd, pinned=self.pinned, agent_uid=int(self.agent_uid))

    def of_members(self) -> OuterRequest:
        """Return what the sessions of a hub's members have of this one."""
        return OuterRequest(self.via, self.inherited, self.fds[-1] if self.has_folder else None)

    def divided_variables(self, spec: ServerSpec) -> tuple[dict[str, str], dict[str, str]]:
        """Return the agent's variables that have to name its project, and the server's others.

        A hub's program gets none of the others.
        """
        names = self.inherited.keys() & ({*project.VARIABLES} - {*spec.inherits_any})
        others = () if spec.hub else self.inherited.keys() - names
        return ({n: self.inherited[n] for n in names}, {n: self.inherited[n] for n in others})

    def expect_sound(self, spec: ServerSpec) -> None:
        """Check the request against the protocol of the gate and the wrapper.

        Raises:
            ValueError: it violates the protocol.
        """
        is_uid = self.agent_uid.isascii() and self.agent_uid.isdecimal()
        allowed = {*spec.inherits_any, *([session_socket.LOGIN] if spec.has_oauth() else ())}
        takes_folder = spec.has_projects() or bool(spec.hub and spec.hub.passes_folder())
        if takes_folder:
            allowed |= {*project.VARIABLES}  # each is compared with the project
        restricted = {name: self.inherited[name] for name in self.inherited.keys() - allowed}
        if not is_uid or not restricted.keys() <= set(spec.inherits):
            raise session_socket.ProtocolError("no valid UID, or a variable that is not inherited")
        if any(environment.why_not(name, value) for name, value in restricted.items()):
            raise session_socket.ProtocolError("a variable with a value that is not allowed for it")
        self.umask_for(spec)
        if self.of_hub and not is_server_name(self.of_hub):
            raise session_socket.ProtocolError("not the name of a hub")
        if (self.has_folder and not takes_folder) or (self.pinned and not spec.has_projects()):
            raise session_socket.ProtocolError("a project, and the server sees none")
        count = (4 if spec.hub else 3) + self.has_folder
        if len(self.fds) != count or bool(self.via) is not bool(spec.hub):
            raise session_socket.ProtocolError(f"{len(self.fds)} descriptors instead of {count}")
        fd_passing.expect_streams(self.fds[:3], readable=self.fds[0], writable=self.fds[1:3])

    def umask_for(self, spec: ServerSpec) -> int:
        """Return the umask of the server: the configured one, or else the agent's.

        mcpwrap's own programs write no file that an agent sees, so they have the strict one.

        Raises:
            ValueError: the umask violates the protocol.
        """
        if spec.umask is not None:
            return spec.umask
        is_ours = spec.remote or spec.python or spec.hub
        return umask.parse(self.umask) if self.umask and not is_ours else umask.STRICT


@dataclass(slots=True, kw_only=True)
class ServerSession:
    """Running server, with its slot, its redactor and its connection to the gate."""

    slot: SessionSlot
    copier_pid: int  # of the redactor; 0 without one, or when it has ended
    connection: socket.socket
    ended: session_socket.ServerEnded | None = (
        None  # set when the server has ended; its last output may still be on its way
    )
    members: MemberSessions | None = None  # of a hub
    project: MountWatch | None = None  # on the mounts of its project
    began_s: float = field(default_factory=time.monotonic)

    def kill(self) -> None:
        """End all processes of the server."""
        _end(self.slot.leaf, self.slot.session_id)

    def stop_copying(self) -> None:
        """Kill the redactor. Its PID is not reused: it is forgotten here once reaped."""
        if self.copier_pid:
            os.kill(self.copier_pid, signal.SIGKILL)

    def close(self) -> None:
        """Send how the server ended, and close the connection. The caller removes the folder."""
        if self.members:
            self.members.close()
        if self.project:
            self.project.close()
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
        OSError: the server could not be started; the caller gives `ready` up.
    """
    start.expect_unchanged(context.spec)
    copier_pid, output_fds = 0, (opening.fds[1], opening.fds[2])
    hub = context.spec.hub
    members = MemberSessions(hub, opening.of_members()) if hub else None
    seen = _SeenProject()
    try:
        of_project, own = opening.divided_variables(context.spec)
        program = _program(context, ready.folder, own, value_by_key)
        if value_by_key and not context.spec.remote:  # the remote program redacts itself
            # Imported here, because most wrappers have no secrets and do not need its libraries.
            from mcpwrap.as_wrapper import redactor  # noqa: PLC0415

            copier_pid, output_fds = redactor.start(value_by_key, output_fds)
        _label(ready, opening)
        more = [members.theirs.fileno(), opening.fds[3]] if members else []
        fds = [opening.fds[0], *output_fds, *more]
        launch = spawn.ProgramStart(program, fds, opening.umask_for(context.spec))
        seen = _start_in_project(context, ready, opening, launch, of_project)
        started = session_socket.ServerStarted(ready.session_id, seen.path, seen.why)
        connection.send(session_socket.encode(started))
    except BaseException:
        for held in (members, seen.watch):
            if held:
                held.close()
        raise
    finally:
        if copier_pid:
            fd_passing.close_all(list(output_fds))
        if members:
            members.theirs.close()
    return ServerSession(
        slot=ready,
        copier_pid=copier_pid,
        connection=connection,
        members=members,
        project=seen.watch,
    )


def _label(ready: SessionSlot, opening: SessionRequest) -> None:
    """Note in the cgroup whose session it is, for `mcpwrap sessions`."""
    ready.leaf.label(f"agent-{opening.agent_uid}-{time.time():.0f}")
    if opening.of_hub:
        ready.leaf.label(f"hub-{opening.of_hub}")


@dataclass(frozen=True, slots=True)
class _SeenProject:
    """Project that a session sees, or why it sees none; neither where `projects` is not set."""

    path: str = ""
    why: str = ""
    watch: MountWatch | None = None


def _start_in_project(
    context: WrapperContext,
    ready: SessionSlot,
    opening: SessionRequest,
    launch: spawn.ProgramStart,
    variables: Mapping[str, str],
) -> _SeenProject:
    """Start the server in its agent's project, if it has `projects`.

    Raises:
        OSError: the server could not be started, or needs a project and has none.
    """
    if context.view is None or not context.spec.has_projects():
        ready.process.run(launch)
        return _SeenProject()
    from mcpwrap.as_wrapper.project import session_view  # noqa: PLC0415 - as above

    if why := context.view.no_projects:
        if project.names_project(launch.program.args):
            raise session_view.lacking(why)
        ready.process.run(launch)
        return _SeenProject(why=why)
    asked = session_view.request(opening.folder(), context.view.owner_by_list, variables)
    request = msgspec.json.encode(asked)
    starting = ready.process.begin(dataclasses.replace(launch, request=request))
    seen = _SeenProject()
    try:
        if starting.view.report:  # otherwise it has failed before, and await_start() says how
            seen = _seen(context.view, starting.view)
        starting.await_start()
    except BaseException as error:
        starting.give_up()
        if seen.watch:
            seen.watch.close()
        if seen.why and project.names_project(launch.program.args):
            raise session_view.lacking(seen.why) from error
        raise
    return seen


def _seen(workspaces: WorkspaceMounts, shown: spawn.ShownView) -> _SeenProject:
    """Watch the project, while the program starts."""
    from mcpwrap.as_wrapper.project import session_view  # noqa: PLC0415 - as above

    try:
        report = session_view.decode_report(shown.report)
    except ValueError:
        fd_passing.close_all(list(shown.fds))
        raise
    if report.project is None:
        return _SeenProject(why=report.why)
    folder = Folder(report.project.path, report.project.is_writable)
    watch = workspaces.of_session(folder, report.folder_by_watch, shown.fds)
    return _SeenProject(folder.path, watch=watch)


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
            oauth = session_files.oauth_session_file(
                spec.name, spec.remote.oauth, context.logins, value_by_key
            )
            declared |= session_files.write_oauth_file(oauth, folder)
    if spec.python:
        declared["MCPWRAP_PYTHON"] = msgspec.json.encode(spec.python).decode()
    if spec.hub:
        declared[hub_channel.VARIABLE] = msgspec.json.encode(spec.hub).decode()
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
