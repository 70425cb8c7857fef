"""Client of the monitor, in a session's process: limits, approvals, audit, new policies."""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass

from mcpwrap.as_gate.ipc import approval_packets, hub_packets, packets, pin_packets
from mcpwrap.as_gate.ipc.approval_packets import (
    ApprovalQuery,
    ApprovalResponse,
    PageRequest,
    ToolRulesRequest,
)
from mcpwrap.as_gate.ipc.hub_packets import DefinitionsRequest, OuterAgent, OuterQuery
from mcpwrap.as_gate.ipc.packets import AuditFileHandle
from mcpwrap.as_gate.ipc.pin_packets import DefinitionsOffered, OfferPageRequest
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.as_gate.state.start_backoff import Backoff
from mcpwrap.core.approval.approval_rule import ApprovalRule
from mcpwrap.core.approval.client_forms import ClientForms
from mcpwrap.core.pins import pins_view
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.policy.decision import LimitExceeded
from mcpwrap.core.wire import session_socket
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket import fd_passing, memfd


@dataclass(frozen=True, slots=True)
class PolicyUpdate:
    """Policy that the monitor has sent; none if `text` is empty."""

    digest: str = ""
    text: bytes = b""


class ToMonitor:
    """A child's end of its channel. A request is answered before the next packet is sent."""

    def __init__(
        self,
        monitor: socket.socket,
        bell: DoorbellFlag,
        failures: Backoff,
        forms: ClientForms | None = None,
    ) -> None:
        self._socket = monitor
        self._bell = bell
        self._update = PolicyUpdate()
        self._pins: PinsView | None = None  # pushed, and not returned yet
        self.failures = failures  # as they were at the fork, like the next ones
        self.forms = forms or ClientForms()

    def fileno(self) -> int:
        """Return the descriptor, to wait for the monitor's end."""
        return self._socket.fileno()

    def send(self, packet: packets.FromChild) -> None:
        """Send a packet; errors are ignored, since the session ends with the monitor."""
        self._send(packets.encode(packet))

    def say_of_approval(self, packet: approval_packets.FromChild) -> None:
        """Send a packet about a held request."""
        self._send(approval_packets.encode(packet))

    def say_of_hub(self, packet: hub_packets.FromChild) -> None:
        """Send a packet about a hub."""
        self._send(hub_packets.encode(packet))

    def outer(self, session: str) -> OuterAgent | None:
        """Return the agent of an open session of the hub that connects; None without one."""
        self.say_of_hub(OuterQuery(session))
        packet, _ = self._answer()
        return hub_packets.decode_outer(packet)

    def name(self, server: str, claim: str) -> AuditFileHandle | None:
        """Name the session's server; the reply follows the policy in force.

        Returns the session's name and file in the audit; None if it cannot be recorded.

        Raises:
            RefusalError: a limit on sessions is reached.
        """
        self.send(packets.SessionNamed(server, claim))
        packet, fds = self._answer()
        if packet[:1] == b"B":
            raise RefusalError(session_socket.Exit.BUSY, packet[1:].decode())
        return AuditFileHandle(packet[1:].decode(), fds[0]) if fds else None

    def next_part(self) -> int | None:
        """Request the next file of the session's audit; None if it cannot be made."""
        self.send(packets.PartIsFull())
        _, fds = self._answer()
        return fds[0] if fds else None

    def ask(self, tool: str, call_digest: bytes) -> LimitExceeded | None:
        """Ask whether the limits admit a call. Without the monitor, this process exits."""
        self.send(packets.CallLimitRequest(tool, call_digest))
        packet, _ = self._answer()
        return packets.decode_answer(packet)

    def page(self) -> int | None:
        """Request a page for an approval document; None if it cannot be made."""
        self.say_of_approval(PageRequest())
        _, fds = self._answer()
        return fds[0] if fds else None

    def definitions_page(self) -> int | None:
        """Request a page for the server's definitions; None if they are not kept."""
        self.say_of_hub(DefinitionsRequest())
        _, fds = self._answer()
        return fds[0] if fds else None

    def approval_rules(self, method: str, target: str) -> list[ApprovalRule]:
        """Return the approval rules that may cover a call of a tool."""
        self.say_of_approval(ToolRulesRequest(method, target))
        _, fds = self._answer()
        if not fds:
            return []
        try:
            return approval_packets.decode_rules(memfd.read_all(fds[0]))
        finally:
            fd_passing.close_all(fds)

    def ask_approval(self, question: ApprovalQuery) -> ApprovalResponse:
        """Request an approval for the document on the page."""
        self.say_of_approval(question)
        packet, _ = self._answer()
        return approval_packets.decode_answer(packet)

    def offer_page(self) -> int | None:
        """Request a page for definitions that the server listed; None if none are kept."""
        self._send(pin_packets.encode(OfferPageRequest()))
        _, fds = self._answer()
        return fds[0] if fds else None

    def offer(self) -> None:
        """Offer the definitions on the page, for a person to accept."""
        self._send(pin_packets.encode(DefinitionsOffered(waits=False)))

    def offer_at_first_use(self) -> PinsView | str:
        """Offer the definitions on the page; return the pins with them, or why they are not."""
        self._send(pin_packets.encode(DefinitionsOffered(waits=True)))
        packet, fds = self._answer()
        if not fds:
            return packet[1:].decode()
        view = _view(fds)
        if self._pins is not None:  # pushed before this view was made
            self._pins = view
        return view

    def policy_update(self) -> PolicyUpdate:
        """Return the latest policy, if it was not returned yet."""
        self._receive_pushed()
        update, self._update = self._update, PolicyUpdate()
        return update

    def pins_update(self) -> PinsView | None:
        """Return the latest pins of the server, if they were not returned yet."""
        self._receive_pushed()
        view, self._pins = self._pins, None
        return view

    def _receive_pushed(self) -> None:
        if self._bell.test_and_clear():
            with suppress(BlockingIOError):
                while True:
                    self._receive(socket.MSG_DONTWAIT)

    def _send(self, packet: bytes) -> None:
        with suppress(OSError):
            self._socket.send(packet)

    def _answer(self) -> tuple[bytes, list[int]]:
        while not (answer := self._receive(0)):
            pass
        return answer

    def _receive(self, flags: int) -> tuple[bytes, list[int]] | None:
        """Receive an answer and its descriptors; store a policy or pins, and return None."""
        packet, fds = fd_passing.receive(self._socket, packets.MAX_BYTES, flags)
        if not packet:
            os._exit(0)  # the session ends with the monitor
        match packet[:1]:
            case b"P":
                self._update = PolicyUpdate(packet[1:].decode(), memfd.read_all(fds[0]))
                fd_passing.close_all(fds)
            case b"Y":
                self._pins = _view(fds)
            case _:
                return packet, fds
        return None


def _view(fds: list[int]) -> PinsView:
    """Return the pins that the monitor has sent, and close their descriptor."""
    try:
        return pins_view.decode(memfd.read_all(fds[0]))
    finally:
        fd_passing.close_all(fds)


def write_page(fd: int, data: bytes) -> None:
    """Write to a page of the monitor, and close it."""
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
