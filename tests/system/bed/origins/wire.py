"""Packet capture of all traffic that leaves the machine: a leak shows even without a listener."""

import ipaddress
import socket

from tests.system.bed.origins.record import Packet

ETH_P_ALL = 0x0003  # packet(7)
SO_RCVBUFFORCE = 33  # socket(7); not in the socket module
BUFFER_BYTES = 64 * 1024 * 1024
HEADERS_BYTES = 256
SYN, ACK = 0x02, 0x10
EXTENSIONS = (0, 43, 60)  # RFC 8200: hop-by-hop, routing, destination
FRAGMENT = 44
ECHO_REQUESTS = {1: 8, 58: 128}  # ICMP, ICMPv6


def open_wire() -> socket.socket:
    """Return a socket that gets a copy of every packet of the namespace."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    wire.settimeout(0)
    return wire


def read_wire(wire: socket.socket, packets: list[Packet]) -> None:
    """Record received packets that begin a flow."""
    while True:
        try:
            data, (_, _, direction, *_) = wire.recvfrom(HEADERS_BYTES)
        except BlockingIOError:
            return
        if direction != socket.PACKET_OUTGOING and (packet := parse(data)):
            packets.append(packet)


def parse(data: bytes) -> Packet | None:
    """Return the flow that a packet begins; nothing for later ones, and for the link's upkeep."""
    if len(data) < 20 or data[0] >> 4 not in (4, 6):
        return None
    if data[0] >> 4 == 4:
        number, payload = data[9], data[(data[0] & 15) * 4 :]
        source, address = data[12:16], data[16:20]
        if int.from_bytes(data[6:8]) & 0x1FFF:
            return None  # not the first fragment
    else:
        number, payload = _skip_extensions(data[6], data[40:])
        source, address = data[8:24], data[24:40]
    begins = _begins(number, payload)
    if begins is None:
        return None
    protocol, port = begins
    return Packet(protocol, _text(source), _text(address), port)


def _skip_extensions(number: int, payload: bytes) -> tuple[int, bytes]:
    while number in (*EXTENSIONS, FRAGMENT) and len(payload) >= 8:
        size = 8 if number == FRAGMENT else (payload[1] + 1) * 8
        number, payload = payload[0], payload[size:]
    return number, payload


def _begins(number: int, payload: bytes) -> tuple[str, int] | None:
    """Return protocol and port; nothing for answers, acknowledgements and neighbour discovery."""
    match number:
        case 6:
            flags = payload[13] if len(payload) > 13 else SYN
            return ("tcp", int.from_bytes(payload[2:4])) if flags & (SYN | ACK) == SYN else None
        case 17:
            return "udp", int.from_bytes(payload[2:4])
        case 1 | 58:
            return ("icmp", 0) if payload[:1] == bytes([ECHO_REQUESTS[number]]) else None
        case 2:
            return None  # IGMP: the kernel's own
        case _:
            return f"ip-{number}", 0


def _text(address: bytes) -> str:
    return str(ipaddress.ip_address(address))
