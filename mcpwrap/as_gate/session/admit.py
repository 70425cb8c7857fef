"""Session's process, one for each session: handshake, access list, audit, server start, relay."""

import os
import select
import socket
import threading
from dataclasses import dataclass, replace

from mcpwrap.as_gate.agent_identity import HUB_CLAIM, AgentIdentity, agent_of, claim_in
from mcpwrap.as_gate.hubs.catalogue import sealed_catalogue
from mcpwrap.as_gate.hubs.hub_identity import OuterSession, agent_of_hub, why_not_member
from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.pins import initial_view
from mcpwrap.as_gate.session import project
from mcpwrap.as_gate.session.judge import SessionJudge
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.session.project import SessionProject
from mcpwrap.as_gate.session.relay import RelaySession, run_relay, send_to_stub
from mcpwrap.as_gate.session.variables import umask_for, variables_for
from mcpwrap.as_gate.session.wrapper_client import StartRequest, start
from mcpwrap.as_gate.state import session_projects
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.children import ChildTable
from mcpwrap.as_gate.state.counters import Statistics
from mcpwrap.as_gate.state.emergency_stop import expect_no_panic
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.audit.hash_chain import Chain
from mcpwrap.core.audit.params import ParamsEncoder
from mcpwrap.core.names import is_server_name
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.server_files import AccessList, AccessRule
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.linux.process.zeroize import zeroize
from mcpwrap.linux.seccomp.gate_session import Filter
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing
from mcpwrap.linux.unix_socket.fd_passing import DescriptorError
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.audit_log.chained_file import ChainedFile
from mcpwrap.session.audit_log.recorder import RecordedSession, Recorder

# For a server whose agent has gone: most end by themselves when their input does. README has 2 s.
_SERVER_EXIT_S = 1.0


@dataclass(frozen=True, slots=True)
class ChildContext:
    """State that a child has inherited from the monitor, as it was at the fork."""

    who: Peer
    admissions: AccessList
    monitor: ToMonitor
    verdicts: socket.socket
    policies: Policies
    filter: Filter
    tally: SharedCounters
    audit: AuditWriter
    statistics: Statistics
    family: ChildTable


def run(stub: socket.socket, agent_pidfd: int, context: ChildContext) -> None:
    """Serve one session, from the stub's hello to the end of server, stub or agent."""
    stub.settimeout(session_socket.HANDSHAKE_S)
    who, monitor = context.who, context.monitor
    name = "?"
    try:
        name, variables, agent_fds = _hello(stub, who.uid)
        if name in session_socket.QUERIES:
            _answer(name, stub, context)
            return
        agent = _agent(name, claim_in(variables), context)
        who = agent.who
        admission = _admission(name, agent, context.admissions)
        recorder = _recorder(agent, name, claim_in(variables), context)
        judging = _judge(recorder, agent, admission, context)
        env = variables_for(stub, variables, agent, admission) | umask_for(agent, agent_pidfd)
        wanted = StartRequest(
            name,
            who.uid,
            env,
            agent_fds[:2],
            _is_direct(agent, admission),
            folder_fd=project.folder_of(stub, agent, admission, agent_fds),
            pinned_project=admission.project_by_url.get(agent.url_name, ""),
        )
        if admission.hub:
            wanted = _of_hub(wanted, agent, recorder.about.session, context)
        started = start(wanted, stub, monitor)
        seen = project.shown(name, started.packet, admission, wanted.pinned_project)
        monitor.send(packets.StartSucceeded(started.packet.session_id, seen.path))
    except RefusalError as refusal:
        _refuse(stub, f"uid {who.uid}, {name!r}", refusal.status, refusal.why)
        return
    except (OSError, ValueError) as error:
        status = session_socket.Exit.PROTOCOL
        _refuse(stub, f"uid {who.uid}, {name!r}", status, _handshake_failure(error))
        return
    _tell_started(stub, judging, seen)
    _watch(_ends(stub, agent_pidfd, monitor, agent_fds[1]), agent_fds[1])
    session = RelaySession(stub, started.wrapper, wanted, started.fds, judging, context.verdicts)
    run_relay(session, context.filter.enter)


def _refuse(stub: socket.socket, who: str, status: session_socket.Exit, why: str) -> None:
    log_line(f"{who}: {why}")
    send_to_stub(stub, session_socket.SessionRefused(status, why))


def _handshake_failure(error: OSError | ValueError) -> str:
    """Return the reason of a failed handshake, with its name."""
    if isinstance(error, DescriptorError):
        return f"{error} [E-SESSION-DESCRIPTOR]"
    if isinstance(error, session_socket.OtherVersionError):
        return str(error)  # it has a name already
    return f"{error} [E-SESSION-HANDSHAKE]"


def _hello(stub: socket.socket, uid: int) -> tuple[str, dict[str, str], list[int]]:
    """Return the server's name, the variables of the hello, and two descriptors, of a hub three."""
    packet, fds = fd_passing.receive(stub, session_socket.MAX_PACKET_BYTES)
    name, variables = session_socket.decode_hello(session_socket.Protocol.GATE, packet)
    if name in session_socket.QUERIES and not fds:
        return name, variables, fds
    if not is_server_name(name):
        why = "no server can have that name [E-SESSION-SERVER-NAME]"
        raise RefusalError(session_socket.Exit.USAGE, why)
    if len(fds) not in ({2, 3} if session_socket.VIA in variables else {2}):
        raise DescriptorError(f"{len(fds)} descriptors instead of 2")
    fd_passing.expect_streams(fds[:2], readable=fds[0], writable=fds[1:2])
    fd_passing.expect_own_fifos(fds[:2], uid)
    return name, variables, fds


def _answer(question: str, stub: socket.socket, context: ChildContext) -> None:
    if question == session_socket.QUERY_POLICY:
        send_to_stub(stub, session_socket.QueryResponse(context.policies.describe()))
    elif question == session_socket.QUERY_SESSIONS:
        session_projects.tell(context.who, context.family.living(), stub)
    else:
        context.statistics.tell(context.who, stub)


def _agent(name: str, claim: str, context: ChildContext) -> AgentIdentity:
    """Return the agent of a session: the peer's own, or the one that its claim leads to."""
    if not claim.startswith(HUB_CLAIM):
        return agent_of(context.who, name, claim)
    session = claim.removeprefix(HUB_CLAIM)
    found = context.monitor.outer(session)
    outer = None
    if found is not None:
        outer = OuterSession(session, found.hub, Peer(0, found.uid, found.gids), found.door)
    agent = agent_of_hub(context.who, outer)
    if why := why_not_member(agent.hub, name, agent, context.admissions):
        raise RefusalError(session_socket.Exit.NOT_ALLOWED, why)
    return agent


def _of_hub(
    wanted: StartRequest, agent: AgentIdentity, session: str, context: ChildContext
) -> StartRequest:
    """Return the request to start a hub: with the id of its session, and its catalogue."""
    inherited = {**wanted.inherited, session_socket.VIA: session}
    agent = replace(agent, via=session, hub=wanted.name)
    fd = sealed_catalogue(agent, context.admissions, context.policies)
    return replace(wanted, inherited=inherited, catalogue_fd=fd)


def _tell_started(stub: socket.socket, judging: SessionJudge, seen: SessionProject) -> None:
    judging.see(seen)
    send_to_stub(stub, session_socket.ServerStarted())
    if seen.why_none:  # with a direct relay there is no message to which it could be added
        send_to_stub(stub, session_socket.StderrChunk(f"{seen.why_none}\n".encode()))


def _admission(name: str, agent: AgentIdentity, admissions: AccessList) -> AccessRule:
    admission = admissions.by_server.get(name)
    if admission is None:
        why = (
            f"there is no server {name!r}: `mcpwrap status` lists the servers "
            "[E-SESSION-UNKNOWN-SERVER]"
        )
        raise RefusalError(session_socket.Exit.NO_SUCH_SERVER, why)
    if not agent.may_use(admission):
        if agent.may_use_from_next_login(admission):
            why = (
                f"your session began before your account was added to a group that may use "
                f"{name!r}: log in again [E-SESSION-OLD-LOGIN]"
            )
            raise RefusalError(session_socket.Exit.NOT_ALLOWED, why)
        why = (
            f"this account may not use {name!r}: see `agents` in /etc/mcpwrap/config.toml "
            "[E-SESSION-NOT-AGENT]"
        )
        raise RefusalError(session_socket.Exit.NOT_ALLOWED, why)
    expect_no_panic(name)
    return admission


def _recorder(agent: AgentIdentity, name: str, claim: str, context: ChildContext) -> Recorder:
    """Open the session in the audit, and return its recorder."""
    opening = context.monitor.name(name, claim)
    if opening is None:
        why = "the audit cannot be written: see the journal of mcpwrap-gate [E-AUDIT-NOT-WRITABLE]"
        raise RefusalError(session_socket.Exit.UNAVAILABLE, why)
    key = context.tally.take_key()
    chain = Chain(key, wipe=zeroize)
    key[:] = bytes(len(key))
    keep = context.admissions.by_server[name].audit
    recorder = Recorder(
        RecordedSession(opening.session, name, agent.who.uid, agent.via),
        ChainedFile(opening.fd, chain),
        ParamsEncoder(keep, context.audit.digest_key, context.audit.box),
        context.tally,
        context.monitor.next_part,
    )
    recorder.policy = context.policies.digest
    return recorder


def _judge(
    recorder: Recorder, agent: AgentIdentity, admission: AccessRule, context: ChildContext
) -> SessionJudge:
    """Return the judge of a session, with the policy and the pins in force."""
    name = recorder.about.server
    policy = context.policies.rules_for(name, admission)
    judging = SessionJudge(policy, recorder, context.monitor, agent, context.admissions)
    pins = _pins(name, agent, admission)
    if pins is not None:
        judging.pin(pins)
    return judging


def _pins(name: str, agent: AgentIdentity, admission: AccessRule) -> PinsView | None:
    """Return the pins of the session's server; None if its definitions are not compared."""
    is_pinned = admission.pins != "off" and not admission.hub and not _is_direct(agent, admission)
    return initial_view.read(name) if is_pinned else None


def _is_direct(agent: AgentIdentity, admission: AccessRule) -> bool:
    return not admission.hub and (admission.relay == "direct" or agent.door == "login")


def _ends(
    stub: socket.socket, agent_pidfd: int, monitor: ToMonitor, to_agent_fd: int
) -> select.epoll:
    """Return an epoll of the ends of the stub, its process, the monitor and the output's reader.

    An agent that is killed leaves its stub behind: the agent's own descriptor is the end of a
    pipe. It is epoll(7) and not poll(2), which would keep the output open while it waits: then the
    agent would not see that the gate, or with a direct relay its server, has closed it. epoll
    drops a file that all processes have closed.
    """
    ends = select.epoll()
    ends.register(stub, select.EPOLLIN)
    ends.register(agent_pidfd, select.EPOLLIN)
    ends.register(monitor, 0)  # EPOLLHUP and EPOLLERR are always reported
    ends.register(to_agent_fd, select.EPOLLONESHOT)
    return ends


def _watch(ends: select.epoll, to_agent_fd: int) -> None:
    """Start a thread that ends this process with the first of them."""
    threading.Thread(target=_end_with, args=(ends, to_agent_fd), daemon=True).start()


def _end_with(ends: select.epoll, to_agent_fd: int) -> None:
    """Exit at the first end; if only the agent is lost, after the time its server has to exit.

    Any event of the stub counts as its end, because it sends no more packets. The monitor may
    send packets, so only its hang-up counts.
    """
    if all(fd == to_agent_fd for fd, _ in ends.poll()):
        ends.poll(_SERVER_EXIT_S)
    os._exit(0)
