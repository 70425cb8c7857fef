"""Hub as its wrapper starts it, between a scripted agent, supervisor, gate and members."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec

import mcpwrap
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.hub import hub_catalogue, hub_channel
from mcpwrap.core.wire.hub.hub_catalogue import Catalogue, CatalogueMember, Definitions
from mcpwrap.core.wire.server_files import HubMemberSpec, HubSpec
from mcpwrap.linux.unix_socket import fd_passing
from tests.shared import pace

Message = dict[str, Any]
ROOT = str(Path(mcpwrap.__file__).parent.parent)
# The wrapper gives descriptors by number, and refuses sockets before execve(2).
_START = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
channel, catalogue = int(sys.argv.pop(1)), int(sys.argv.pop(1))
os.dup2(channel, 4); os.dup2(catalogue, 5)
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.seccomp import wrapped_server
from mcpwrap.as_hub.main import main
prctl.gain_nothing()
wrapped_server.refuse_sockets()
sys.exit(main())
"""
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}


@dataclass
class Lines:
    """Reader of JSON lines, which waits for each."""

    fd: int
    buffer: bytes = b""

    def next(self) -> Message | None:
        """Return the next message, or None at the end of the stream."""
        while b"\n" not in self.buffer:
            readable, _, _ = select.select([self.fd], [], [], pace.WAIT_S)
            assert readable, "no line came"
            chunk = os.read(self.fd, 65536)
            if not chunk:
                return None
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return cast("Message", json.loads(line))


def write(fd: int, message: Message) -> None:
    os.write(fd, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@dataclass
class Member:
    """Member's server and its gate: the other ends of what the supervisor handed over."""

    control: socket.socket
    from_hub: Lines
    to_hub_fd: int
    others: list[Message] = field(default_factory=list)

    def starts(self) -> None:
        self.control.send(session_socket.encode(session_socket.ServerStarted()))

    def says(self, **message: Any) -> None:
        write(self.to_hub_fd, message)

    def hears(self, method: str) -> Message:
        """Return the next message of this method; others wait for their turn."""
        for index, message in enumerate(self.others):
            if message["method"] == method:
                return self.others.pop(index)
        while (heard := self.from_hub.next()) is not None:
            if heard["method"] == method:
                return heard
            self.others.append(heard)
        raise AssertionError(f"no {method} came")

    def answers(self, method: str, **result: Any) -> Message:
        """Answer the next request of this method; return its params."""
        request = self.hears(method)
        self.says(id=request["id"], result=result)
        return cast("Message", request["params"])

    def serves(self, *tools: str) -> None:
        """Start, shake hands, and list these tools."""
        self.starts()
        self.answers(
            "initialize", protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo={}
        )
        self.hears("notifications/initialized")
        listed = [{"name": name, "inputSchema": {"type": "object"}} for name in tools]
        self.answers("tools/list", tools=listed)

    def ends(self) -> None:
        self.control.send(session_socket.encode(session_socket.ServerEnded(3)))
        self.close()

    def close(self) -> None:
        if self.control.fileno() >= 0:
            self.control.close()
            fd_passing.close_all([self.to_hub_fd, self.from_hub.fd])


@dataclass
class HubProgram:
    """Running hub, the agent's ends of its pipes, and the supervisor's end of its channel."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    members: list[Member] = field(default_factory=list)
    output: Lines = field(init=False)

    def __post_init__(self) -> None:
        assert self.process.stdout is not None
        self.output = Lines(self.process.stdout.fileno())

    def asks(self, **message: Any) -> None:
        assert self.process.stdin is not None
        write(self.process.stdin.fileno(), message)

    def hears(self) -> Message:
        """Return the next message to the agent."""
        message = self.output.next()
        assert message is not None
        return message

    def has_ended(self) -> bool:
        """Wait for the end of the hub, which sends nothing more; return whether it was orderly."""
        return self.output.next() is None and self.process.wait(pace.WAIT_S) == 0

    def calls(self, tool: str, request_id: int) -> None:
        self.asks(id=request_id, method="tools/call", params={"name": tool, "arguments": {}})

    def begins(self) -> Message:
        """Shake hands as an agent; return the result."""
        self.asks(id=0, method="initialize", params=HANDSHAKE)
        return cast("Message", self.hears()["result"])

    def packet(self) -> hub_channel.FromHub:
        """Return the next packet of the hub to its supervisor."""
        readable, _, _ = select.select([self.channel], [], [], pace.WAIT_S)
        assert readable, "no packet came"
        return hub_channel.decode_from_hub(self.channel.recv(hub_channel.MAX_PACKET_BYTES))

    def wants(self) -> str:
        """Return the name of the next member that the hub wants to open; log lines are skipped."""
        while not isinstance(packet := self.packet(), hub_channel.OpenSession):
            pass
        return packet.member

    def opens(self) -> Member:
        """Open the next member that the hub wants."""
        name = self.wants()
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        to_member, from_member = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        fds = [theirs.fileno(), to_member[1], from_member[0]]
        fd_passing.send(self.channel, hub_channel.encode(hub_channel.SessionOpening(name)), fds)
        theirs.close()
        fd_passing.close_all(fds[1:])
        member = Member(control, Lines(to_member[0]), from_member[1])
        self.members.append(member)
        return member

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


@contextmanager
def hub_of(*names: str, known: Sequence[CatalogueMember] = ()) -> Iterator[HubProgram]:
    """Run a hub of these members, of which the gate knows some."""
    spec = HubSpec(members=tuple(HubMemberSpec(name=name, namespace=name) for name in names))
    by_name = {member.name: member for member in known}
    catalogue = Catalogue(
        members=tuple(by_name.get(name, CatalogueMember(name=name)) for name in names)
    )
    file_fd = os.memfd_create("catalogue")
    os.write(file_fd, hub_catalogue.encode(catalogue))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environ = {
        "PATH": os.environ["PATH"],
        hub_channel.VARIABLE: msgspec.json.encode(spec).decode(),
    }
    fds = (theirs.fileno(), file_fd)
    process = subprocess.Popen(
        [sys.executable, "-c", _START, ROOT, *map(str, fds), "tools"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=fds,
        env=environ,
    )
    theirs.close()
    os.close(file_fd)
    with process, ours:
        hub = HubProgram(process, ours)
        try:
            yield hub
        finally:
            process.kill()
            for member in hub.members:
                member.close()


def known(name: str, *tools: str) -> CatalogueMember:
    """Return a member that has listed these tools before."""
    schema = {"type": "object"}
    texts = [json.dumps({"name": tool, "inputSchema": schema}) for tool in tools]
    listed = tuple(msgspec.Raw(text.encode()) for text in texts)
    capabilities = msgspec.Raw(b'{"tools":{}}')
    return CatalogueMember(
        name=name, definitions=Definitions(capabilities=capabilities, tools=listed)
    )


@contextmanager
def called_hub() -> Iterator[tuple[HubProgram, Member]]:
    """Run a hub whose agent has called `git__log`, with id 1; its member is to start now."""
    with hub_of("git", known=[known("git", "log")]) as hub:
        hub.begins()
        hub.calls("git__log", 1)
        yield hub, hub.opens()
