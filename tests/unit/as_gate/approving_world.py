"""The monitor's part of approval, with real sockets to sessions and to approvers."""

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

import pytest

from mcpwrap.as_gate.approvals import connections, reachable
from mcpwrap.as_gate.approvals.broker import ApprovalBroker
from mcpwrap.as_gate.approvals.connections import ApproverConnections
from mcpwrap.as_gate.hubs.outer_calls import OuterCalls
from mcpwrap.as_gate.ipc import approval_packets, packets
from mcpwrap.as_gate.pins.keeper import PinsKeeper
from mcpwrap.as_gate.session.approval_client import SessionApprovals
from mcpwrap.as_gate.session.monitor_client import ToMonitor
from mcpwrap.as_gate.state.audit_writer import AuditWriter
from mcpwrap.as_gate.state.children import Child, ChildTable
from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.approval import rule_file
from mcpwrap.core.audit.records import ApprovalAnswered, ApprovalRuleChanged, PinsChanged
from mcpwrap.core.gate.ports import (
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalUnavailable,
    Approved,
    AwaitingApproval,
)
from mcpwrap.core.policy.compiled import CompiledPolicy, compile_policy
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.core.policy.rules import Policy, Rule
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire import approval_socket, session_socket
from mcpwrap.core.wire.approval_socket import (
    MAX_BYTES,
    EndOfList,
    FromApprover,
    Pending,
    RefusedReply,
    ToApprover,
    encode_question,
)
from mcpwrap.core.wire.server_files import AccessList, AccessRule, HubMemberRule
from mcpwrap.linux.process.shared_memory import DoorbellFlag, SharedCounters
from mcpwrap.linux.unix_socket import fd_passing, memfd, peer_credentials
from mcpwrap.linux.unix_socket.peer_credentials import Peer
from mcpwrap.session.approvals import rule_files
from mcpwrap.session.audit_log.master_chain import AuditedSession
from mcpwrap.session.audit_log.recorder import RecordedSession, Recorder
from tests.unit.as_gate.hub_world import GivenAccessList

T = TypeVar("T")
GROUP, WEB_UID, HOOK_UID = 50, 901, 902
HUB = "tools"
_MEMBERS = tuple(HubMemberRule(name=name, namespace=name) for name in ("plain", "sqlite"))
ADMISSIONS = AccessList(
    by_server={HUB: AccessRule(uids=(1000,), gids=(), inherits=(), hub=_MEMBERS)}
)


class InForce:
    """Policy that allows elicitation for each server but `plain`."""

    def compiled(self, server: str) -> CompiledPolicy:
        rule = Rule(
            name="asks", action="allow_with_approval", tools=("*",), ask_in_client=server != "plain"
        )
        return compile_policy(Policy(rules=(rule,)), server)

    def copy_for_agents(self, server: str, admission: AccessRule) -> int:
        if admission.sessions:
            raise RefusalError(session_socket.Exit.UNAVAILABLE, "no policy [E-SESSION-POLICY]")
        return memfd.sealed("rules", server.encode())


class Written(AuditWriter):
    """Audit that stores approval answers and changes of pins, unless it is broken."""

    def __init__(self) -> None:
        self.events: list[ApprovalAnswered] = []
        self.changes: list[PinsChanged] = []
        self.rules: list[ApprovalRuleChanged] = []
        self.is_broken = False

    @property
    def path(self) -> str:
        return "/nonexistent"

    def pins_changed(self, changed: PinsChanged) -> bool:
        if not self.is_broken:
            self.changes.append(changed)
        return not self.is_broken

    def rule_changed(self, changed: ApprovalRuleChanged) -> bool:
        if not self.is_broken:
            self.rules.append(changed)
        return not self.is_broken

    def forget(self) -> None:
        """Have no key to erase."""

    def answered(self, answered: ApprovalAnswered) -> bool:
        if not self.is_broken:
            self.events.append(answered)
        return not self.is_broken


@dataclass
class About:
    """Part of a session's recorder that approvals read."""

    about: RecordedSession
    policy: str = "12ab"


class Session:
    """One session, from the view of its own process."""

    def __init__(self, world: "World", pid: int, uid: int, server: str, via: str = "") -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        verdicts, self.told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.child = Child(
            pid, Peer(1, uid, frozenset()), ours, verdicts, DoorbellFlag(), SharedCounters(), ""
        )
        self.child.server, self.child.entry = server, AuditedSession(f"12-{pid}", self.child.tally)
        self.child.via, self.child.is_hub = via, server == HUB
        world.sockets += [ours, theirs, verdicts, self.told]
        world.family.add(self.child)
        world.poll.register(ours, select.POLLIN)
        self._world = world
        self.message = "Look."
        self.asking_rules = AskingRules(rules=("writes",))
        self.in_client = server != "plain"  # as `InForce` has it
        recorder = About(RecordedSession(f"12-{pid}", server, uid, via))
        self.to_monitor = ToMonitor(theirs, DoorbellFlag(), Backoff())
        outer_calls = OuterCalls(HUB if via else "", server, ADMISSIONS)
        self.asking = SessionApprovals(self.to_monitor, cast("Recorder", recorder), outer_calls)

    def ask(
        self, hold: int, tool: str = "drop", /, **arguments: Json
    ) -> Approved | AwaitingApproval | ApprovalUnavailable:
        wanted = ApprovalRequest(
            method="tools/call",
            target=tool,
            definition="",
            params={"name": tool, "arguments": arguments},
            rule="writes",
            message=self.message,
            expires_s=300.0,
            in_client=self.in_client,
            by_form=self.in_client,
            asking=self.asking_rules,
        )
        return self._world.while_serving(lambda: self.asking.ask(hold, wanted))

    def hears(self) -> list[ApprovalOutcome | None]:
        """Return the outcomes that it received for its held requests."""
        heard = []
        with suppress(BlockingIOError):
            while packet := self.told.recv(approval_packets.MAX_BYTES, socket.MSG_DONTWAIT):
                heard.append(approval_packets.decode_outcome(packet))
        return heard


class Somebody:
    """One connection to the approval socket."""

    def __init__(self, world: "World", path: Path) -> None:
        self._world = world
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(str(path))
        world.sockets.append(self.socket)
        world.serve()
        self.fds: list[int] = []

    def says(self, packet: FromApprover | bytes) -> list[ToApprover]:
        """Send a packet; return all replies."""
        self.socket.send(packet if isinstance(packet, bytes) else encode_question(packet))
        self._world.serve()
        return self.hears()

    def asks(self, packet: FromApprover) -> str:
        """Send a packet; return its one reply as text."""
        (answer,) = self.says(packet)
        return f"{answer.code}: {answer.why}" if isinstance(answer, RefusedReply) else str(answer)

    def hears(self) -> list[ToApprover]:
        heard = []
        with suppress(BlockingIOError):
            while True:
                packet, fds = fd_passing.receive(self.socket, MAX_BYTES, socket.MSG_DONTWAIT)
                if not packet:
                    break
                heard.append(approval_socket.decode(packet))
                self.fds += fds
        return heard

    def listed(self) -> list[Pending]:
        *pending, end = self.says(approval_socket.ListRequest())
        assert end == EndOfList()
        return [one for one in pending if isinstance(one, Pending)]

    def has_left(self) -> bool:
        with suppress(BlockingIOError):
            return self.socket.recv(MAX_BYTES, socket.MSG_DONTWAIT) == b""
        return False


class World:
    """The monitor's handling of approvals, without its event loop."""

    poll: select.poll
    sockets: list[socket.socket]
    members = frozenset({1001})  # of the group of approvers
    _next_peer: Peer

    def __init__(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audit: Written | None = None
    ) -> None:
        (tmp_path / "rules").mkdir(exist_ok=True)
        monkeypatch.setattr(rule_files, "FOLDER", tmp_path / "rules")
        monkeypatch.setattr(rule_file, "FOLDER", str(tmp_path / "rules"))
        monkeypatch.setattr(connections, "_group", lambda: GROUP)
        monkeypatch.setattr(
            connections, "_uid", lambda name: WEB_UID if name == "mcpwrap-web" else HOOK_UID
        )
        monkeypatch.setattr(reachable, "member_uids", lambda: self.members)
        monkeypatch.setattr(reachable, "has_polkit", lambda: False)
        monkeypatch.setattr(peer_credentials, "credentials_of", lambda _: self._next_peer)
        self._next_peer = Peer(7, 0, frozenset())
        self._path = tmp_path / "approve.sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(self._path))
        listener.listen()
        self.sockets = [listener]
        self.poll, self.family, self.audit = select.poll(), ChildTable(), audit or Written()
        self.people = ApproverConnections(listener, self.poll)
        self.admissions = GivenAccessList()
        self.pins = PinsKeeper(self.family, self.admissions.as_file(), self.audit)
        self.approving = ApprovalBroker(
            self.people, self.family, cast(Policies, InForce()), self.audit, self.pins
        )

    def close(self) -> None:
        for person in list(self.people._person_by_fd.values()):
            self.people.disconnect(person)
        fd_passing.close_all(list(self.approving._rules._document_fd_by_id.values()))
        documents = self.approving.deciding.documents
        documents.keep_only([])
        fd_passing.close_all(
            [*documents._approved.values(), *documents.pages._page_by_session.values()]
        )
        for each in self.sockets:
            each.close()

    def session(
        self, pid: int = 1, uid: int = 1000, server: str = "sqlite", via: str = ""
    ) -> Session:
        return Session(self, pid, uid, server, via)

    def somebody(self, uid: int, *gids: int) -> Somebody:
        """Return a connection with these peer credentials."""
        self._next_peer = Peer(7, uid, frozenset(gids))
        return Somebody(self, self._path)

    def approver(self) -> Somebody:
        return self.somebody(1001, GROUP)

    def serve(self) -> None:
        """Handle all events, and wait for running checks of proofs."""
        proving = self.approving.deciding.proving
        while ready := self.poll.poll(5000 if proving._jobs else 0):
            for fd, _ in ready:
                self._hear(fd)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def while_serving(self, ask: Callable[[], T]) -> T:
        """Return the result of a call that waits for the monitor."""
        got: list[T] = []
        thread = threading.Thread(target=lambda: got.append(ask()))
        thread.start()
        while thread.is_alive():
            for fd, _ in self.poll.poll(5):
                self._hear(fd)
        thread.join()
        return got[0]

    def _hear(self, fd: int) -> None:
        deciding = self.approving.deciding
        if self.people.listens_at(fd):
            self.people.accept()
        elif deciding.proving.has(fd):
            deciding.proof_is_in(fd)
        elif person := self.people.by_fd(fd):
            self.approving.answering.handle(person)
        elif child := self.family.by_channel(fd):
            packet = approval_packets.decode(child.channel.recv(packets.MAX_BYTES))
            assert packet
            self.approving.handle(child, packet, time.monotonic())
