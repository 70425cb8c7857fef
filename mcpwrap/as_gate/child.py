"""RUNS AS mcpwrap-gate, one process a session: lets the agent in, and moves its lines."""

import os
import secrets
import select
import socket
import threading
from contextlib import suppress
from pathlib import Path

from mcpwrap.core import hello
from mcpwrap.core.lines import LineTooLongError
from mcpwrap.core.names import is_server_name
from mcpwrap.core.sanitise import Sanitiser
from mcpwrap.core.spec import Admission, Admissions
from mcpwrap.linux import descriptors
from mcpwrap.linux.descriptors import DescriptorError
from mcpwrap.linux.log import say
from mcpwrap.linux.peer import Peer
from mcpwrap.session import relay

SOCKETS = Path("/run/mcpwrap/sock")


class RefusalError(Exception):
    """There will be no session; the stub says why and exits with `status`."""

    def __init__(self, status: hello.Exit, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


def run(stub: socket.socket, agent_pidfd: int, who: Peer, admissions: Admissions) -> None:
    """Hold one session, from the stub's hello to its end, or to the end of the stub's process."""
    stub.settimeout(hello.HANDSHAKE_S)
    name = "?"
    try:
        name, agent_fds = _hello(stub)
        admission = _admission(name, who, admissions)
        inherited = _ask(stub, admission)
        wrapper, server_fds = _start(name, inherited, stub)
    except RefusalError as refusal:
        say(f"uid {who.uid}, {name!r}: {refusal.why}")
        _say(stub, hello.Refused(refusal.status, refusal.why))
        return
    except (OSError, DescriptorError, hello.ProtocolError) as error:
        say(f"uid {who.uid}, {name!r}: {error}")
        _say(stub, hello.Refused(hello.Exit.PROTOCOL, str(error)))
        return
    _say(stub, hello.Started())
    threading.Thread(target=_end_with, args=(stub, agent_pidfd), daemon=True).start()
    _hold(stub, wrapper, agent_fds, server_fds)


def _hello(stub: socket.socket) -> tuple[str, list[int]]:
    """Return the server's name and the agent's two descriptors."""
    packet, fds = descriptors.receive(stub, hello.MAX_PACKET_BYTES)
    name, _ = hello.decode_hello(packet)
    if not is_server_name(name):
        raise RefusalError(hello.Exit.USAGE, "no server can have that name")
    if len(fds) != 2:
        raise DescriptorError(f"{len(fds)} descriptors instead of 2")
    descriptors.expect_streams(fds, readable=fds[0], writable=fds[1:])
    return name, fds


def _admission(name: str, who: Peer, admissions: Admissions) -> Admission:
    admission = admissions.by_server.get(name)
    if admission is None:
        why = f"there is no server {name!r}: `mcpwrap status` lists those there are"
        raise RefusalError(hello.Exit.NO_SUCH_SERVER, why)
    if not admission.admits(who.uid, who.gids):
        why = f"this account may not use {name!r}: see `agents` in /etc/mcpwrap/config.toml"
        raise RefusalError(hello.Exit.NOT_ALLOWED, why)
    return admission


def _ask(stub: socket.socket, admission: Admission) -> dict[str, str]:
    """Return the agent's values of the variables that this server inherits."""
    if not admission.inherits:
        return {}
    stub.send(hello.encode(hello.Ask(admission.inherits)))
    packet, fds = descriptors.receive(stub, hello.MAX_PACKET_BYTES)
    descriptors.close_all(fds)
    env = hello.decode_env(packet)
    if not env.keys() <= set(admission.inherits):
        raise hello.ProtocolError("variables that were not asked for")
    return env


def _start(
    name: str, inherited: dict[str, str], stub: socket.socket
) -> tuple[socket.socket, list[int]]:
    """Start the server, on pipes of our own; return its wrapper and our ends 0, 1 and 2."""
    try:
        try:
            return _ask_wrapper(name, inherited, stub)
        except ConnectionError:  # it was just ending: the next asking starts it anew
            return _ask_wrapper(name, inherited, stub)
    except OSError as error:
        units = f"mcpwrap@{name} mcpwrap-check@{name}"
        why = f"the wrapper of {name!r} does not start: `systemctl status {units}` says why"
        raise RefusalError(hello.Exit.WRAPPER, why) from error


def _ask_wrapper(
    name: str, inherited: dict[str, str], stub: socket.socket
) -> tuple[socket.socket, list[int]]:
    wrapper = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wrapper.settimeout(hello.START_S)
    ours, theirs = _pipes()
    try:
        wrapper.connect(str(SOCKETS / f"{name}.sock"))
        descriptors.send(wrapper, hello.encode_hello(secrets.token_hex(8), inherited), theirs)
        match _answer(wrapper, stub):
            case hello.Started():
                return wrapper, ours
            case hello.Refused(status, why):
                is_busy = status == hello.Exit.BUSY
                harmless = Sanitiser().feed(why.encode()).decode()
                raise RefusalError(hello.Exit.BUSY if is_busy else hello.Exit.WRAPPER, harmless)
            case _:
                raise hello.ProtocolError("the wrapper answered out of turn")
    finally:
        descriptors.close_all(theirs)


def _answer(wrapper: socket.socket, stub: socket.socket) -> hello.Packet:
    """Return the wrapper's first packet, unless the stub leaves or it takes too long."""
    poll = select.poll()
    poll.register(wrapper, select.POLLIN)
    poll.register(stub, select.POLLIN)
    ready = [fd for fd, _ in poll.poll(hello.START_S * 1000)]
    if wrapper.fileno() not in ready:
        raise OSError("the stub left" if ready else "the wrapper did not answer in time")
    packet = wrapper.recv(hello.MAX_PACKET_BYTES)
    if not packet:
        raise ConnectionResetError("the wrapper closed the connection")
    return hello.decode(packet)


def _pipes() -> tuple[list[int], list[int]]:
    """Return our ends and the server's ends of its descriptors 0, 1 and 2."""
    pairs = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
    ours = [pairs[0][1], pairs[1][0], pairs[2][0]]
    theirs = [pairs[0][0], pairs[1][1], pairs[2][1]]
    return ours, theirs


def _hold(
    stub: socket.socket, wrapper: socket.socket, agent_fds: list[int], server_fds: list[int]
) -> None:
    """Move lines until the server has ended; if the stub goes first, this process just ends."""
    for connection in (stub, wrapper):
        connection.settimeout(None)
    to_server, from_server, from_stderr = server_fds
    outward = [
        threading.Thread(target=_to_agent, args=(from_server, agent_fds[1], stub), daemon=True),
        threading.Thread(target=_stderr, args=(from_stderr, stub), daemon=True),
    ]
    inward = threading.Thread(target=_to_server, args=(agent_fds[0], to_server, stub), daemon=True)
    for thread in (*outward, inward):
        thread.start()
    packet = _how_it_ended(wrapper)
    for thread in outward:  # what the server wrote before it ended is still in its pipes
        thread.join()
    _say(stub, packet)


def _end_with(stub: socket.socket, agent_pidfd: int) -> None:
    """The stub has nothing more to say: whatever comes is its end, and so it is ours."""
    poll = select.poll()
    poll.register(stub, select.POLLIN)
    poll.register(agent_pidfd, select.POLLIN)
    poll.poll()
    os._exit(0)


def _how_it_ended(wrapper: socket.socket) -> hello.Packet:
    with suppress(OSError, hello.ProtocolError):
        if packet := wrapper.recv(hello.MAX_PACKET_BYTES):
            return hello.decode(packet)
    return hello.Refused(hello.Exit.WRAPPER, "the wrapper was stopped")


def _to_server(from_fd: int, to_fd: int, stub: socket.socket) -> None:
    with suppress(OSError):  # it has ended, and its wrapper will say so; or the agent's end is none
        _relay(from_fd, to_fd, stub)
    os.close(to_fd)


def _to_agent(from_fd: int, to_fd: int, stub: socket.socket) -> None:
    try:
        _relay(from_fd, to_fd, stub)
    except OSError:
        os._exit(0)  # nobody listens: the session is over, and our exit ends it
    finally:
        os.close(to_fd)


def _relay(from_fd: int, to_fd: int, stub: socket.socket) -> None:
    try:
        relay.relay_lines(from_fd, to_fd)
    except LineTooLongError as error:
        _say(stub, hello.Refused(hello.Exit.PROTOCOL, str(error)))
        os._exit(0)


def _stderr(from_fd: int, stub: socket.socket) -> None:
    sanitiser = Sanitiser()

    def deliver(untrusted: bytes) -> None:
        if harmless := sanitiser.feed(untrusted):
            _say_in_pieces(stub, harmless)

    relay.relay_each(from_fd, deliver)
    if rest := sanitiser.rest():
        _say_in_pieces(stub, rest)


def _say_in_pieces(stub: socket.socket, text: bytes) -> None:
    """Escapes make text up to ten times longer; a packet has a bound."""
    size = hello.MAX_PACKET_BYTES // 2
    for start in range(0, len(text), size):
        _say(stub, hello.Stderr(text[start : start + size]))


def _say(stub: socket.socket, packet: hello.Packet) -> None:
    with suppress(OSError):
        stub.send(hello.encode(packet))
