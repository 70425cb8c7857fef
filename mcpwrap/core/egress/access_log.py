"""Egress access log of a server: records of Squid, of the SNI front and of the kernel."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec

from mcpwrap.core.egress.advice import advice
from mcpwrap.core.egress.host_names import MAX_NAME_CHARS, shown
from mcpwrap.core.wire import sni_front_log


class EgressRow(msgspec.Struct, frozen=True, kw_only=True):
    """Row of the log: a destination and a rule. `mcpwrap egress --json` prints a list of these."""

    destination: str  # host:port, or address:port/protocol
    rule: str  # `allowed`, or the rule that refused it
    is_refused: bool
    times: int
    last: float  # seconds since 1970; 0 where the kernel only counts
    why: str
    fix: str  # the remedy; "" without one
    allows: str  # the entry of `egress`, `direct` or `requests` that would allow it, or ""


class _SquidLine(msgspec.Struct):
    """Line of Squid's access log, in the form of squid/common.conf. All values are untrusted."""

    t: float
    server: str = "-"
    verdict: str = "-"
    rule: str = "-"
    method: str = "-"
    host: str = "-"
    port: str = "-"
    url: str = "-"
    sni: str = "-"
    address: str = "-"
    squid: str = "-"
    error: str = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressEvent:
    """One logged access. `detail` is the subject of the advice: a request, an address."""

    at: float
    server: str
    destination: str
    rule: str
    detail: str = ""
    times: int = 1


# Squid escapes quotes, backslashes and the ends of lines, and writes other bytes as received.
_RAW = re.compile(rb"[\x00-\x1f\x7f-\xff]")
# A line may be cut after this: Squid writes 8 KiB of a line, and a URL can be as long.
_LONG = b',"url":"'
_NO_PORT = {"-", "0"}
_NO_ERROR = {"-", "ERR_NONE"}
# Another event follows, with the outcome.
_UNENDED = {"asked", "opened"}


def from_squid(line: bytes) -> EgressEvent | None:
    """Parse a line of Squid's log; None if it is cut off, or names no server or destination."""
    entry = _decoded(line)
    if entry is None or entry.server == "-" or (entry.host == "-" and entry.port in _NO_PORT):
        return None
    rule, detail = entry.rule, ""
    if entry.verdict == "ok":
        # A tunnel has two lines: an empty one before it is opened, and one at its end.
        is_ended = entry.squid != "NONE_NONE"
        rule = "allowed" if is_ended else "opened"
        if entry.error not in _NO_ERROR:
            rule, detail = "no-answer", entry.error
    elif entry.verdict == "-":  # no rule was evaluated
        rule, detail = "not-served", entry.error
    elif rule == "no-request-rule":
        detail = f"{entry.method} {entry.host}{_path(entry.url)}"
    elif rule == "sni-not-allowed":
        detail = entry.sni
    elif rule == "private-address":
        detail = entry.address
    return EgressEvent(
        at=entry.t,
        server=entry.server,
        destination=f"{_visible(entry.host)}:{_visible(entry.port)}",
        rule=_visible(rule),
        detail="" if detail == "-" else _visible(detail),
    )


def from_front(line: bytes) -> EgressEvent | None:
    """Parse a line of the front's event log; None for a refusal that Squid's log has too."""
    try:
        event = sni_front_log.decode(line)
    except msgspec.MsgspecError:
        return None
    host = _visible_again(event.host)
    match event.event:
        case "more":
            return None
        case "asked":
            rule, place, detail = "asked", host, event.detail
        case "refused":
            if event.detail[:1].isdigit():  # the status of Squid's response
                return None
            rule, place, detail = "no-proxy", f"{host}:443", event.detail
        case "closed-early" as rule:
            place, detail = f"{host}:443" if host else "port 443", event.detail
        case rule:
            place, detail = host or "port 443", ""
    detail = _visible_again(detail)
    return EgressEvent(at=event.t, server=event.server, destination=place, rule=rule, detail=detail)


def from_kernel(server: str, address: str, protocol: str, port: int, times: int) -> EgressEvent:
    """Return the event for a counter of the packet rules."""
    place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    rule = "dns" if port == 53 else "past-squid" if protocol == "tcp" else "not-tcp"
    return EgressEvent(
        at=0, server=server, destination=f"{place}/{protocol}", rule=rule, detail=place, times=times
    )


def summary(notes: Iterable[EgressEvent]) -> list[EgressRow]:
    """Return one row for each destination, rule and detail, the latest last."""
    merged: dict[EgressEvent, EgressEvent] = {}
    for note in notes:
        key = replace(note, at=0, times=0)
        before = merged.get(key, key)
        merged[key] = replace(note, at=max(note.at, before.at), times=note.times + before.times)
    # A lookup that a connection followed is no row of its own.
    reached = {n.destination.rpartition(":")[0] for n in merged.values() if n.rule != "asked"}
    ended = {n.destination for n in merged.values() if n.rule not in _UNENDED}
    rows = [
        row_of(note)
        for note in merged.values()
        if note.rule not in _UNENDED or note.destination not in reached | ended
    ]
    return sorted(rows, key=lambda row: (row.last, row.destination))


def row_of(note: EgressEvent) -> EgressRow:
    """Return the row of a single event."""
    why, fix, allows = advice(note.rule, note.destination, note.detail)
    return EgressRow(
        destination=note.destination,
        rule=note.rule,
        is_refused=note.rule not in {"allowed", "no-answer", *_UNENDED},
        times=note.times,
        last=note.at,
        why=why,
        fix=fix,
        allows=allows,
    )


def _decoded(line: bytes) -> _SquidLine | None:
    """Decode a line; each byte that is not ASCII becomes the character of its number."""
    line = _RAW.sub(lambda raw: b"\\u%04x" % raw[0][0], line.strip())
    for text in (line, line.partition(_LONG)[0] + b"}"):
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(text, type=_SquidLine)
    return None


def _path(url: str) -> str:
    """Return the path, "" if the line is cut off before it; Squid keeps the `?` of a query."""
    _, scheme, rest = url.partition("://")
    _, _, path = rest.partition("?")[0].partition("/")
    return f"/{path}" if scheme else ""


def _visible(untrusted: str) -> str:
    """Return printable ASCII, which cannot move a terminal's cursor; a longer text ends in dots."""
    text = shown(untrusted.encode("latin-1", errors="replace"))
    return text if len(text) < MAX_NAME_CHARS else f"{text[:-3]}..."


def _visible_again(from_front: str) -> str:
    """Do the same for a text that the front has already escaped: its backslashes stay."""
    return _visible(from_front).replace("\\x5c", "\\")
