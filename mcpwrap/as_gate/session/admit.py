"""Session's process, one for each session: handshake, access list, audit, server start, relay."""

import os
import select
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mcpwrap.as_gate.agent_identity import AgentIdentity, agent_of, claim_in
from mcpwrap.as_gate.ipc import packets
from mcpwrap.as_gate.session.judge import SessionJudge
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.session.relay import RelaySession, run_relay, send_to_stub
from mcpwrap.as_gate.session.wrapper_client import StartRequest, start
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.counters import Statistics
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core import environment, umask
from mcpwrap.core.audit.hash_chain import Chain
from mcpwrap.core.audit.params import ParamsEncoder
from mcpwrap.core.names import is_server_name
from mcpwrap.core.policy.compiled import CompiledPolicy
from mcpwrap.core.wire import panic_file, session_socket
from mcpwrap.core.wire.server_files import AccessList, AccessRule, Keep
from mcpwrap.errors import UsageError
from mcpwrap.linux.process.shared_memory import SharedCounters
from mcpwrap.linux.process.zeroize import zeroize
from mcpwrap.linux.root_files import expect_roots_file
from mcpwrap.linux.seccomp.gate_session import Filter
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.unix_socket import fd_passing, peer_credentials
from mcpwrap.linux.unix_socket.fd_passing import DescriptorError
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.audit_log.chained_file import ChainedFile
from mcpwrap.session.audit_log.recorder import RecordedSession, Recorder

PANIC = (Path("/run/mcpwrap/panic.json"), Path("/var/lib/mcpwrap/panic.json"))
SERVERS = Path("/var/lib/mcpwrap/servers")
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
        agent = agent_of(who, name, claim_in(variables))
        who = agent.who
        admission = _admission(name, agent, context.admissions)
        _expect_no_panic(name)
        recorder = _recorder(
            RecordedSession("", name, who.uid), variables, admission.audit, context
        )
        policy = _policy(name, admission, context)
        env = _environment(stub, variables, agent, admission) | _umask(agent, agent_pidfd)
        wanted = StartRequest(name, who.uid, env, agent_fds, _is_direct(agent, admission))
        wrapper, server_fds = start(wanted, stub, monitor)
        monitor.send(packets.StartSucceeded())
    except RefusalError as refusal:
        _refuse(stub, f"uid {who.uid}, {name!r}", refusal.status, refusal.why)
        return
    except (OSError, ValueError) as error:
        status = session_socket.Exit.PROTOCOL
        _refuse(stub, f"uid {who.uid}, {name!r}", status, _handshake_failure(error))
        return
    send_to_stub(stub, session_socket.ServerStarted())
    _watch(_ends(stub, agent_pidfd, monitor, agent_fds[1]), agent_fds[1])
    judging = SessionJudge(policy, recorder, monitor, executes=admission.executes)
    session = RelaySession(stub, wrapper, wanted, server_fds, judging, context.verdicts)
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
    """Return the server's name, the variables of the hello, and two descriptors."""
    packet, fds = fd_passing.receive(stub, session_socket.MAX_PACKET_BYTES)
    name, variables = session_socket.decode_hello(session_socket.Protocol.GATE, packet)
    if name in session_socket.QUERIES and not fds:
        return name, variables, fds
    if not is_server_name(name):
        why = "no server can have that name [E-SESSION-SERVER-NAME]"
        raise RefusalError(session_socket.Exit.USAGE, why)
    if len(fds) != 2:
        raise DescriptorError(f"{len(fds)} descriptors instead of 2")
    fd_passing.expect_streams(fds, readable=fds[0], writable=fds[1:])
    fd_passing.expect_own_fifos(fds, uid)
    return name, variables, fds


def _answer(question: str, stub: socket.socket, context: ChildContext) -> None:
    if question == session_socket.QUERY_POLICY:
        send_to_stub(stub, session_socket.QueryResponse(context.policies.describe()))
    else:
        context.statistics.tell(context.who, stub)


def _admission(name: str, agent: AgentIdentity, admissions: AccessList) -> AccessRule:
    admission = admissions.by_server.get(name)
    if admission is None:
        why = (
            f"there is no server {name!r}: `mcpwrap status` lists the servers "
            "[E-SESSION-UNKNOWN-SERVER]"
        )
        raise RefusalError(session_socket.Exit.NO_SUCH_SERVER, why)
    if not agent.may_use(admission):
        why = (
            f"this account may not use {name!r}: see `agents` in /etc/mcpwrap/config.toml "
            "[E-SESSION-NOT-AGENT]"
        )
        raise RefusalError(session_socket.Exit.NOT_ALLOWED, why)
    return admission


def _expect_no_panic(name: str) -> None:
    """Refuse a server under an emergency stop; a file that cannot be read stops all servers."""
    _expect_roots_own(name)
    for file in PANIC:
        with suppress(FileNotFoundError):
            if panic_file.decode(file.read_bytes()).stops(name):
                why = "stopped in an emergency, until `sudo mcpwrap resume` [E-SESSION-PANIC]"
                raise RefusalError(session_socket.Exit.UNAVAILABLE, why)


def _expect_roots_own(name: str) -> None:
    """Refuse a server if others than root could have changed its definition or emergency stop."""
    for file in (SERVERS / f"{name}.json", *PANIC):
        try:
            expect_roots_file(str(file))
        except FileNotFoundError:
            continue
        except UsageError as error:
            why = f"{error.where}: {error.problem}; see `mcpwrap status` [E-SESSION-ROOT-FILE]"
            raise RefusalError(session_socket.Exit.UNAVAILABLE, why) from error


def _recorder(
    about: RecordedSession, variables: dict[str, str], keep: Keep, context: ChildContext
) -> Recorder:
    """Open the session in the audit, and return its recorder."""
    opening = context.monitor.name(about.server, claim_in(variables))
    if opening is None:
        why = "the audit cannot be written: see the journal of mcpwrap-gate [E-AUDIT-NOT-WRITABLE]"
        raise RefusalError(session_socket.Exit.UNAVAILABLE, why)
    key = context.tally.take_key()
    chain = Chain(key, wipe=zeroize)
    key[:] = bytes(len(key))
    recorder = Recorder(
        replace(about, session=opening.session),
        ChainedFile(opening.fd, chain),
        ParamsEncoder(keep, context.audit.digest_key, context.audit.box),
        context.tally,
        context.monitor.next_part,
    )
    recorder.policy = context.policies.digest
    return recorder


def _policy(name: str, admission: AccessRule, context: ChildContext) -> CompiledPolicy:
    """Return the rules for this server, of the policy in force when this process was forked."""
    policy = context.policies.compiled(name)
    if policy is None:
        raise RefusalError(session_socket.Exit.UNAVAILABLE, context.policies.why_none)
    if missing := context.policies.missing(admission):
        why = (
            f"its policy {', '.join(missing)} is gone: `sudo mcpwrap apply`, if that is intended "
            "[E-POLICY-FILE-MISSING]"
        )
        raise RefusalError(session_socket.Exit.UNAVAILABLE, why)
    return policy


def _environment(
    stub: socket.socket, variables: dict[str, str], agent: AgentIdentity, admission: AccessRule
) -> dict[str, str]:
    return _login(variables) if agent.door == "login" else _inherited(stub, admission)


def _inherited(stub: socket.socket, admission: AccessRule) -> dict[str, str]:
    """Request the agent's values of the variables that this server inherits."""
    names = (*admission.inherits, *admission.inherits_any)
    if not names:
        return {}
    stub.send(session_socket.encode(session_socket.VariablesRequest(names)))
    packet, fds = fd_passing.receive(stub, session_socket.MAX_PACKET_BYTES)
    fd_passing.close_all(fds)
    env = session_socket.decode_env(packet)
    if not env.keys() <= set(names):
        raise session_socket.ProtocolError("variables that were not requested")
    for name in sorted(env.keys() - set(admission.inherits_any)):
        if why := environment.why_not(name, env[name]):
            fix = f'unset it, or have root write `inherits_any = ["{name}"]`'
            raise RefusalError(session_socket.Exit.USAGE, f"{why}: {fix} [E-SESSION-VARIABLE]")
    return env


def _is_direct(agent: AgentIdentity, admission: AccessRule) -> bool:
    return admission.relay == "direct" or agent.door == "login"


def _login(variables: dict[str, str]) -> dict[str, str]:
    """Return the variable by which the wrapper receives the login verb."""
    wanted = variables[session_socket.LOGIN]
    if wanted not in session_socket.LOGINS:
        raise session_socket.ProtocolError("unknown login verb")
    return {session_socket.LOGIN: wanted}


def _umask(agent: AgentIdentity, agent_pidfd: int) -> dict[str, str]:
    """Return the variable by which the wrapper receives the agent's umask, as its stub has it.

    A listener does not have its agent's umask, and a login does not reach a server.
    """
    if agent.door != "stub":
        return {}
    mask = peer_credentials.umask_of(agent.who.pid, agent_pidfd)
    return {} if mask is None else {session_socket.UMASK: umask.text(umask.of_agent(mask))}


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
