"""DNS server that answers only for its own names, and records each query."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence

import dns.exception
import dns.message
import dns.rcode
import dns.rdatatype
import dns.reversename
import dns.rrset

from tests.system.bed import internet_map
from tests.system.bed.origins.record import CONNECTION, AddName, AddPointer, Query, Seen

MOST_ALIASES = 8
IP_FREEBIND = 15  # not in the socket module of Python 3.11


class Names:
    """DNS names, and the answers to queries for them."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._by_name: dict[str, AddName] = {}
        self._pointers: dict[str, str] = {}
        self._asked: set[tuple[str, str]] = set()
        for name, values in internet_map.NAMES.items():
            self.add(AddName(name, values))
        first, then = internet_map.REBIND_FIRST, internet_map.REBIND_THEN
        self.add(AddName(internet_map.REBIND, first, then, ttl_s=0))
        for address, name in internet_map.POINTERS.items():
            self.add_pointer(AddPointer(address, name))

    def add(self, entry: AddName) -> None:
        """Add a name, or replace its values."""
        self._by_name[entry.name] = entry
        self._asked = {asked for asked in self._asked if asked[0] != entry.name}

    def add_pointer(self, entry: AddPointer) -> None:
        """Add a reverse name."""
        reverse = dns.reversename.from_address(entry.address).to_text(omit_final_dot=True)
        self._pointers[reverse] = entry.name

    def answer(self, wire: bytes, source: str) -> bytes:
        """Return the answer to a query.

        Raises:
            dns.exception.DNSException: it is not a query.
        """
        query = dns.message.from_wire(wire)
        name = query.question[0].name.to_text(omit_final_dot=True).lower()
        kind = dns.rdatatype.to_text(query.question[0].rdtype)
        self._seen.queries.append(Query(name, kind, source))
        answer = dns.message.make_response(query, recursion_available=True)
        if name in self._pointers and kind == "PTR":
            answer.answer.append(_records(name, 60, "PTR", [self._pointers[name] + "."]))
        elif self._find(name) is None and name not in self._pointers:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        else:
            answer.answer += self._chain(name, kind)
        return answer.to_wire()

    def _chain(self, name: str, kind: str) -> list[dns.rrset.RRset]:
        """Follow aliases to the addresses."""
        found: list[dns.rrset.RRset] = []
        for _ in range(MOST_ALIASES):
            entry = self._find(name)
            if entry is None:
                break
            values = self._values(name, kind, entry)
            if values and not _kind(values[0]):
                found.append(_records(name, entry.ttl_s, "CNAME", [values[0] + "."]))
                name = values[0]
                continue
            if addresses := [value for value in values if _kind(value) == kind]:
                found.append(_records(name, entry.ttl_s, kind, addresses))
            break
        return found

    def _find(self, name: str) -> AddName | None:
        if name in self._by_name:
            return self._by_name[name]
        labels = name.split(".")
        parents = ("*." + ".".join(labels[n:]) for n in range(1, len(labels)))
        return next((self._by_name[parent] for parent in parents if parent in self._by_name), None)

    def _values(self, name: str, kind: str, entry: AddName) -> Sequence[str]:
        if entry.then and (name, kind) in self._asked:
            return entry.then
        self._asked.add((name, kind))
        return entry.values


def _records(name: str, ttl_s: int, kind: str, values: list[str]) -> dns.rrset.RRset:
    return dns.rrset.from_text_list(name + ".", ttl_s, "IN", kind, values)


def _kind(value: str) -> str:
    """Return the type of record for an address; nothing for a name."""
    try:
        return "A" if ipaddress.ip_address(value).version == 4 else "AAAA"
    except ValueError:
        return ""


async def serve_tcp(
    names: Names, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the queries of one connection."""
    while True:
        size = int.from_bytes(await reader.readexactly(2))
        try:
            answer = names.answer(await reader.readexactly(size), CONNECTION.get().source)
        except (dns.exception.DNSException, IndexError):
            return
        writer.write(len(answer).to_bytes(2) + answer)
        await writer.drain()


def udp_socket() -> socket.socket:
    """Return a socket that receives packets for the DNS port of any address."""
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    # ip(7): it answers from addresses that no interface has.
    sock.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
    sock.bind(("::", internet_map.DNS_PORT))
    sock.settimeout(0)
    return sock


def answer_udp(names: Names, sock: socket.socket) -> None:
    """Answer each received query, from the address that it was sent to."""
    while True:
        try:
            wire, ancillary, _, peer = sock.recvmsg(65535, 256)
        except BlockingIOError:
            return
        try:
            answer = names.answer(wire, peer[0].removeprefix("::ffff:"))
        except (dns.exception.DNSException, IndexError):
            continue
        sock.sendmsg([answer], ancillary, 0, peer)
