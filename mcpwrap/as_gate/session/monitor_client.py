"""Client of the monitor, in a session's process: limits, approvals, audit, new policies."""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass

from mcpwrap.as_gate.ipc import approval_packets, packets
from mcpwrap.as_gate.ipc.approval_packets import ApprovalQuery, ApprovalResponse, PageRequest
from mcpwrap.as_gate.ipc.packets import AuditFileHandle
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.policy.decision import LimitExceeded
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket import fd_passing, memfd


@dataclass(frozen=True, slots=True)
class PolicyUpdate:
    """Policy that the monitor handed out; none, if `text` is empty."""

    digest: str = ""
    text: bytes = b""


class ToMonitor:
    """A child's end of its channel. A request is answered before the next packet is sent."""

    def __init__(self, monitor: socket.socket, bell: DoorbellFlag, failures: Backoff) -> None:
        self._socket = monitor
        self._bell = bell
        self._news = PolicyUpdate()
        self.failures = failures  # as they were when the child was made

    def fileno(self) -> int:
        """Return the descriptor, to wait for the monitor's end."""
        return self._socket.fileno()

    def send(self, packet: packets.FromChild) -> None:
        """Tell something that has no answer; a monitor that is gone need not know."""
        self._send(packets.encode(packet))

    def say_of_approval(self, packet: approval_packets.FromChild) -> None:
        """Tell something about a request that is held."""
        self._send(approval_packets.encode(packet))

    def name(self, server: str, claim: str) -> AuditFileHandle | None:
        """Say which server this is; afterwards no policy of before is in use.

        Returns how the session is written down; None if it cannot be.

        Raises:
            RefusalError: there is no room for it.
        """
        self.send(packets.SessionNamed(server, claim))
        packet, fds = self._answer()
        if packet[:1] == b"B":
            raise RefusalError(session_socket.Exit.BUSY, packet[1:].decode())
        return AuditFileHandle(packet[1:].decode(), fds[0]) if fds else None

    def next_part(self) -> int | None:
        """Return the file in which the session's records go on; None if there is none."""
        self.send(packets.PartIsFull())
        _, fds = self._answer()
        return fds[0] if fds else None

    def ask(self, tool: str, call_digest: bytes) -> LimitExceeded | None:
        """Ask whether the limits admit a call. Without a monitor nothing is admitted any more."""
        self.send(packets.CallLimitRequest(tool, call_digest))
        packet, _ = self._answer()
        return packets.decode_answer(packet)

    def page(self) -> int | None:
        """Return a page for a document that a person is to read; None if there is none left."""
        self.say_of_approval(PageRequest())
        _, fds = self._answer()
        return fds[0] if fds else None

    def ask_approval(self, question: ApprovalQuery) -> ApprovalResponse:
        """Ask whether a request may run whose document is on the page."""
        self.say_of_approval(question)
        packet, _ = self._answer()
        return approval_packets.decode_answer(packet)

    def policy_update(self) -> PolicyUpdate:
        """Return the newest policy, if there is one that was not returned yet."""
        if self._bell.test_and_clear():
            with suppress(BlockingIOError):
                while True:
                    self._receive(socket.MSG_DONTWAIT)
        news, self._news = self._news, PolicyUpdate()
        return news

    def _send(self, packet: bytes) -> None:
        with suppress(OSError):
            self._socket.send(packet)

    def _answer(self) -> tuple[bytes, list[int]]:
        while not (answer := self._receive(0)):
            pass
        return answer

    def _receive(self, flags: int) -> tuple[bytes, list[int]] | None:
        """Return an answer and what came with it; keep a policy, and return nothing."""
        packet, fds = fd_passing.receive(self._socket, packets.MAX_BYTES, flags)
        if not packet:
            os._exit(0)  # the monitor has gone, and the session goes with it
        if packet[:1] != b"P":
            return packet, fds
        self._news = PolicyUpdate(packet[1:].decode(), memfd.read_all(fds[0]))
        fd_passing.close_all(fds)
        return None
