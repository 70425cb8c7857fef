"""Synthetic DNS answers (a sinkhole): every host has the address of the front (RFC 1035).

Nothing is forwarded, so no name that a server looks up leaves the machine. There are no HTTPS
records (RFC 9460), so there are no keys for Encrypted Client Hello.
"""

from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address

from mcpwrap.core.egress.host_names import is_host_name, shown

MAX_QUERY_BYTES = 4096  # what resolvers announce for EDNS; a query has 300 at most
TTL_S = 30  # short: a cached answer may outlive a change of the configuration
_HEADER_BYTES = 12
_RESPONSE, _RD, _RA, _CD = 0x8000, 0x0100, 0x0080, 0x0010
_MAX_NAME_BYTES = 255
_MAX_LABEL_BYTES = 63  # a longer one is a pointer, and a question has nothing to point to
_TYPE_A, _TYPE_OPT, _CLASS_IN = 1, 41, 1
_POINTER_TO_QUESTION = b"\xc0\x0c"
_OUR_UDP_BYTES = 1232  # DNS Flag Day 2020; our answers are far below the 512 of plain DNS


class _Rcode(IntEnum):
    """Response codes of RFC 1035 section 4.1.1 and RFC 6891 section 9."""

    NO_ERROR = 0
    FORMAT_ERROR = 1
    NO_SUCH_NAME = 3
    NOT_IMPLEMENTED = 4
    REFUSED = 5
    BAD_VERSION = 16


@dataclass(frozen=True, slots=True)
class DnsReply:
    """Response to send, and the requested name as printable ASCII; "" without a question."""

    packet: bytes
    asked: str
    is_host: bool  # the name is one that a host can have


@dataclass(frozen=True, slots=True)
class _Question:
    """Question of a query. `raw` is as received: some resolvers compare its case with theirs."""

    raw: bytes
    name: bytes
    kind: int
    class_: int


class _MalformedError(ValueError):
    """Query that is not one question and, at most, one OPT record."""


def answer(untrusted: bytes, address: IPv4Address) -> DnsReply | None:
    """Answer one query: each host has an A record with `address`, and no other record.

    A packet that is not a query gets no response, so that two resolvers cannot loop.
    """
    if len(untrusted) < _HEADER_BYTES or untrusted[2] & 0x80:
        return None
    if untrusted[2] & 0x78:  # the opcode: not a standard query
        return DnsReply(_packet(untrusted, _Rcode.NOT_IMPLEMENTED), "", is_host=False)
    try:
        question, end = _read_question(untrusted)
        edns_version = _read_edns(untrusted, end)
    except _MalformedError:
        return DnsReply(_packet(untrusted, _Rcode.FORMAT_ERROR), "", is_host=False)
    is_host = is_host_name(question.name.decode("ascii", errors="replace").lower())
    rcode = _judge(question, edns_version, is_host=is_host)
    has_record = rcode == _Rcode.NO_ERROR and question.kind == _TYPE_A
    packet = _packet(
        untrusted,
        rcode,
        question=question.raw,
        record=_a_record(address) if has_record else b"",
        opt=b"" if edns_version is None else _opt_record(rcode),
    )
    return DnsReply(packet, shown(question.name), is_host=is_host)


def _judge(question: _Question, edns_version: int | None, *, is_host: bool) -> _Rcode:
    if edns_version:  # RFC 6891 section 6.1.3
        return _Rcode.BAD_VERSION
    if question.class_ != _CLASS_IN:
        return _Rcode.REFUSED
    return _Rcode.NO_ERROR if is_host else _Rcode.NO_SUCH_NAME


def _read_question(untrusted: bytes) -> tuple[_Question, int]:
    """Return the only question, and its end."""
    counts = [_number(untrusted, at) for at in (4, 6, 8)]
    if counts != [1, 0, 0]:
        raise _MalformedError
    labels = []
    at = _HEADER_BYTES
    while size := _byte(untrusted, at):
        if size > _MAX_LABEL_BYTES:
            raise _MalformedError
        labels.append(untrusted[at + 1 : at + 1 + size])
        at += 1 + size
    end = at + 5  # the root, type, class
    if at + 1 - _HEADER_BYTES > _MAX_NAME_BYTES or len(untrusted) < end:
        raise _MalformedError
    raw = untrusted[_HEADER_BYTES:end]
    kind, class_ = _number(untrusted, at + 1), _number(untrusted, at + 3)
    # A dot inside a label is not a boundary, and must not look like one.
    name = b".".join(label.replace(b".", b"\0") for label in labels)
    return _Question(raw, name, kind, class_), end


def _read_edns(untrusted: bytes, start: int) -> int | None:
    """Return the version in the OPT record that may follow the question (RFC 6891 section 6.1.2).

    Another record would be a signature (RFC 8945), for which the front has no key.
    """
    count = _number(untrusted, 10)
    if count == 0 and len(untrusted) == start:
        return None
    if count != 1 or untrusted[start : start + 3] != b"\0" + _TYPE_OPT.to_bytes(2, "big"):
        raise _MalformedError
    # root 1, type 2, payload size 2, extended rcode 1, version 1, flags 2, length 2
    if len(untrusted) < start + 11 or len(untrusted) != start + 11 + _number(untrusted, start + 9):
        raise _MalformedError
    return untrusted[start + 6]


def _packet(
    query: bytes, rcode: _Rcode, *, question: bytes = b"", record: bytes = b"", opt: bytes = b""
) -> bytes:
    copied = _number(query, 2) & (_RD | _CD | 0x7800)
    flags = _RESPONSE | copied | _RA | (rcode & 0xF)
    counts = (bool(question), bool(record), 0, bool(opt))
    header = query[:2] + flags.to_bytes(2, "big") + b"".join(n.to_bytes(2, "big") for n in counts)
    return header + question + record + opt


def _a_record(address: IPv4Address) -> bytes:
    fixed = _TYPE_A.to_bytes(2, "big") + _CLASS_IN.to_bytes(2, "big") + TTL_S.to_bytes(4, "big")
    return _POINTER_TO_QUESTION + fixed + b"\0\4" + address.packed


def _opt_record(rcode: _Rcode) -> bytes:
    high_bits = bytes([rcode >> 4])
    fixed = _TYPE_OPT.to_bytes(2, "big") + _OUR_UDP_BYTES.to_bytes(2, "big")
    return b"\0" + fixed + high_bits + b"\0\0\0\0\0"


def _number(packet: bytes, at: int) -> int:
    return int.from_bytes(packet[at : at + 2], "big")


def _byte(packet: bytes, at: int) -> int:
    if at >= len(packet):
        raise _MalformedError
    return packet[at]
