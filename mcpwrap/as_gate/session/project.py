"""Project of a session, at the gate: the agent's folder for the wrapper, and what it has shown."""

import socket
from dataclasses import dataclass

from mcpwrap.as_gate.agent_identity import AgentIdentity
from mcpwrap.core.project import is_in, is_project
from mcpwrap.core.text.sanitise import harmless
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux.mount import open_folder
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.linux.unix_socket.fd_passing import DescriptorError


@dataclass(frozen=True, slots=True)
class SessionProject:
    """Project that a session's server sees, or why it sees none."""

    path: str = ""
    why_none: str = ""  # a line for the agent


def folder_of(
    stub: socket.socket, agent: AgentIdentity, admission: AccessRule, hello_fds: list[int]
) -> int | None:
    """Return the agent's current folder, for a server that sees a part of it; the caller closes it.

    `hello_fds` are the descriptors of the hello: a hub's wrapper passes the folder with it.

    Raises:
        DescriptorError: the peer sent something else.
    """
    is_asked = admission.takes_folder() and agent.door == "stub" and not agent.via
    fds = _requested(stub) if is_asked else hello_fds[2:]
    try:
        if len(fds) > 1 or (fds and not admission.takes_folder()):
            raise DescriptorError("more descriptors than the agent's folder")
        for fd in fds:
            open_folder.expect_folder(fd)
    except ValueError as error:
        fd_passing.close_all(fds)
        raise DescriptorError(f"the agent's folder: {error}") from error
    return fds[0] if fds else None


def _requested(stub: socket.socket) -> list[int]:
    request = session_socket.encode(session_socket.FolderRequest())
    stub.send(request)
    packet, fds = fd_passing.receive(stub, session_socket.MAX_PACKET_BYTES)
    if packet != request:
        fd_passing.close_all(fds)
        raise session_socket.ProtocolError("not the agent's folder")
    return fds


def shown(
    server: str, started: session_socket.ServerStarted, admission: AccessRule, pinned: str = ""
) -> SessionProject:
    """Return the project of a session as its wrapper has shown it.

    Raises:
        ProtocolError: it is in no folder that root has listed for this server, or another than the
            one that root has named for the agent's URL.
    """
    if started.project and not is_project(started.project, admission.projects):
        raise session_socket.ProtocolError("the wrapper shows a project that is not listed")
    if started.project and pinned and not is_in(pinned, started.project):
        raise session_socket.ProtocolError("the wrapper shows another project than that of the URL")
    why = f"mcpwrap: {server} sees no project: {harmless(started.no_project)}"
    return SessionProject(started.project, why if started.no_project else "")
