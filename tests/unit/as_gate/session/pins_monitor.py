"""Monitor's end of a session's channel, for pins: answers are queued before they are asked for."""

import os
import socket
from dataclasses import dataclass, field

import msgspec

from mcpwrap.as_gate.ipc import packets, pin_packets
from mcpwrap.as_gate.ipc.pin_packets import FromChild
from mcpwrap.core.pins import pins_view
from mcpwrap.core.pins.acceptance import OfferedDefinitions, Offerer, decode_offer, offer
from mcpwrap.core.pins.definitions import listed_definitions
from mcpwrap.core.pins.pins_file import HeldDefinitions, ServerPins
from mcpwrap.core.pins.pins_view import PinsView, view_of
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.rules import Policy
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.linux.process.shared_memory import DoorbellFlag
from mcpwrap.linux.unix_socket import memfd


def tools(*entries: Json) -> OfferedDefinitions:
    """Return the first list of a server with these tools."""
    listed = listed_definitions("tools/list", entries)
    texts = tuple((one.key.name, msgspec.Raw(one.text)) for one in listed)
    return OfferedDefinitions(kind="tool", entries=texts)


def pinned(*entries: Json) -> ServerPins:
    """Return the pins of a server that an earlier session has used."""
    by = Offerer("0-1", 1000, 1.0)
    pins, _ = offer(ServerPins(), HeldDefinitions(), tools(*entries), by, is_strict=False)
    return pins


def accepted(*entries: Json) -> PinsView:
    """Return these pins as a session's process has them."""
    return view_of(pinned(*entries), HeldDefinitions())


@dataclass
class PinsMonitor:
    """Monitor that answers what it is told to."""

    channel: socket.socket
    bell: DoorbellFlag
    pages: list[int] = field(default_factory=list)

    def page(self) -> None:
        """Answer the next request for a page."""
        self.pages.append(memfd.unsealed("definitions"))
        packets.hand_page(self.channel, self.pages[-1])

    def offered(self) -> list[OfferedDefinitions]:
        """Return what was written to the pages."""
        found = [decode_offer(memfd.read_all(fd)) for fd in self.pages]
        for fd in self.pages:
            os.close(fd)
        self.pages.clear()
        return found

    def record(self, view: PinsView) -> None:
        """Answer that definitions were recorded."""
        fd = memfd.sealed("pins", pins_view.encode(view))
        pin_packets.answer_recorded(self.channel, fd)
        os.close(fd)

    def push(self, view: PinsView) -> None:
        """Send changed pins."""
        fd = memfd.sealed("pins", pins_view.encode(view))
        pin_packets.push_view(self.channel, fd)
        os.close(fd)
        self.bell.raise_flag()

    def push_policy(self, policy: Policy) -> None:
        """Send another policy."""
        fd = memfd.sealed("policy", rules.encode(policy))
        packets.hand_out(self.channel, rules.digest(policy), fd)
        os.close(fd)
        self.bell.raise_flag()

    def received(self) -> list[FromChild | None]:
        """Return the packets of the session."""
        found = list[FromChild | None]()
        while True:
            try:
                packet = self.channel.recv(packets.MAX_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            found.append(pin_packets.decode(packet))
