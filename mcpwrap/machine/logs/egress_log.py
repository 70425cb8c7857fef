"""Egress log of servers: access logs of Squid and the front, and the kernel's packet counts."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from mcpwrap.core.egress.access_log import EgressEvent, from_front, from_kernel, from_squid
from mcpwrap.linux.systemd.systemctl import ToolError, run
from mcpwrap.machine.logs import tail
from mcpwrap.machine.nft_table import NFT

_Parse = Callable[[bytes], EgressEvent | None]
_LOGS = Path("/var/log/mcpwrap")
_PARSERS: dict[str, _Parse] = {"proxy": from_squid, "intercept": from_squid, "front": from_front}
_LOOK_EVERY_S = 0.5
_PROTOCOLS: dict[int | str, str] = {6: "tcp", 17: "udp"}  # as nft -n writes them


class _Value(msgspec.Struct, frozen=True):
    concat: tuple[int, str, int | str, int]


class _Counter(msgspec.Struct, frozen=True):
    packets: int = 0


class _Inner(msgspec.Struct, frozen=True):
    val: _Value
    counter: _Counter = _Counter()


class _Element(msgspec.Struct, frozen=True):
    elem: _Inner


class _Set(msgspec.Struct, frozen=True):
    elem: list[_Element] = []


class _Object(msgspec.Struct, frozen=True):
    set: _Set | None = None


class _Listing(msgspec.Struct, frozen=True):
    nftables: list[_Object] = []


def all_of(server: str, uid: int) -> Iterator[EgressEvent]:
    """Yield all events of a server: log by log, then the kernel's counts. Needs root."""
    yield from _of(server, _ends())
    for name in ("refused4", "refused6"):
        yield from _counted(name, server, uid)


def with_times() -> Iterator[EgressEvent]:
    """Yield the events of all servers that have a time, log by log. Needs root."""
    return _parsed(_ends())


class EgressFollower:
    """Follower of new entries of the egress log, for all servers. Needs root."""

    def __init__(self) -> None:
        self._following = tail.LogFollower(_logs)

    def notes(self) -> Iterator[EgressEvent]:
        """Yield the events since the last call."""
        return _parsed(self._following.lines())

    def close(self) -> None:
        """Close all logs."""
        self._following.close()


def follow(server: str) -> Iterator[EgressEvent]:
    """Yield a server's events from now on, without end; the kernel's counts are not included."""
    with closing(tail.LogFollower(_logs)) as following:
        while True:
            yield from _of(server, following.lines())
            time.sleep(_LOOK_EVERY_S)


def _logs() -> list[Path]:
    """Return the logs of all instances; one that was just rotated may have no file."""
    found = {path for kind in _PARSERS for path in (_LOGS / kind).glob("*.jsonl*")}
    return sorted({path.with_name(f"{path.name.partition('.jsonl')[0]}.jsonl") for path in found})


def _ends() -> Iterator[tuple[Path, bytes]]:
    for path in _logs():
        # The log that was rotated last is not yet compressed; the front itself keeps one as `.old`.
        for each in (Path(f"{path}.1"), Path(f"{path}.old"), path):
            yield from ((path, line) for line in tail.tail(each))


def _parsed(lines: Iterable[tuple[Path, bytes]]) -> Iterator[EgressEvent]:
    for path, line in lines:
        if note := _PARSERS[path.parent.name](line):
            yield note


def _of(server: str, lines: Iterable[tuple[Path, bytes]]) -> Iterator[EgressEvent]:
    named = server.encode()  # a line has it without escapes: see core/names.py
    for note in _parsed((path, line) for path, line in lines if named in line):
        if note.server == server:
            yield note


def _counted(name: str, server: str, uid: int) -> Iterator[EgressEvent]:
    try:
        text = run(NFT, "-j", "-n", "list", "set", "inet", "mcpwrap", name)
    except ToolError:
        return
    for found in msgspec.json.decode(text, type=_Listing).nftables:
        for element in found.set.elem if found.set else []:
            owner, address, protocol, port = element.elem.val.concat
            if owner == uid:
                name = _PROTOCOLS.get(protocol, str(protocol))
                yield from_kernel(server, address, name, port, element.elem.counter.packets)
