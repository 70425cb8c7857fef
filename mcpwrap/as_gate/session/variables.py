"""Variables for the server of a session, by the way in which its agent connects."""

import socket
from collections.abc import Mapping

from mcpwrap.as_gate.agent_identity import AgentIdentity
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core import environment, project, umask
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessRule
from mcpwrap.linux.unix_socket import fd_passing, peer_credentials


def variables_for(
    stub: socket.socket, hello: Mapping[str, str], agent: AgentIdentity, admission: AccessRule
) -> dict[str, str]:
    """Return the variables: the login verb, those of a hub's hello, or those that the stub has."""
    if agent.door == "login":
        return _login(hello)
    if not agent.via:
        return _checked(_requested(stub, admission), admission)
    env = {name: value for name, value in hello.items() if name != session_socket.VIA}
    return _checked(env, admission) | {session_socket.OF_HUB: agent.hub}


def umask_for(agent: AgentIdentity, agent_pidfd: int) -> dict[str, str]:
    """Return the variable by which the wrapper receives the agent's umask, as its stub has it.

    Listeners and hubs do not have their agent's umask, and a login does not reach a server.
    """
    if agent.door != "stub" or agent.via:
        return {}
    mask = peer_credentials.umask_of(agent.who.pid, agent_pidfd)
    return {} if mask is None else {session_socket.UMASK: umask.text(umask.of_agent(mask))}


def _requested(stub: socket.socket, admission: AccessRule) -> dict[str, str]:
    """Request the agent's values of the variables that this server inherits."""
    of_project = project.VARIABLES if admission.takes_folder() else ()
    names = tuple(dict.fromkeys((*admission.inherits, *admission.inherits_any, *of_project)))
    if not names:
        return {}
    stub.send(session_socket.encode(session_socket.VariablesRequest(names)))
    packet, fds = fd_passing.receive(stub, session_socket.MAX_PACKET_BYTES)
    fd_passing.close_all(fds)
    return session_socket.decode_env(packet)


def _checked(env: dict[str, str], admission: AccessRule) -> dict[str, str]:
    # The wrapper compares those of the project with the project.
    unchecked = {*admission.inherits_any, *(project.VARIABLES if admission.takes_folder() else ())}
    if not env.keys() <= {*admission.inherits, *unchecked}:
        raise session_socket.ProtocolError("variables that were not requested")
    for name in sorted(env.keys() - unchecked):
        if why := environment.why_not(name, env[name]):
            fix = f'unset it, or have root write `inherits_any = ["{name}"]`'
            raise RefusalError(session_socket.Exit.USAGE, f"{why}: {fix} [E-SESSION-VARIABLE]")
    return env


def _login(hello: Mapping[str, str]) -> dict[str, str]:
    """Return the variable by which the wrapper receives the login verb."""
    wanted = hello[session_socket.LOGIN]
    if wanted not in session_socket.LOGINS:
        raise session_socket.ProtocolError("unknown login verb")
    return {session_socket.LOGIN: wanted}
