"""Kinds of sessions and of faults of `make soak`, and the faults that explain a failure of each.

Both sides have it: the host for the schedule and the judgement, the machine for its actions.
"""

from dataclasses import dataclass, field
from pathlib import Path

GATE, WRAPPER, WAY_OUT, LISTENER = "gate", "wrapper", "way out", "listener"
STOP = Path("/run/soak/stop")  # while it does not exist, the load continues
EACH = ""  # a fault without a server of its own affects all


@dataclass(frozen=True)
class Kind:
    """Kind of session: its server, its agent, and its needs beside gate and wrapper."""

    name: str
    server: str
    agent: str
    calls: tuple[int, int]  # at least and at most this many calls in one session
    pause_s: float  # the mean between two of its calls
    more: frozenset[str] = frozenset()
    is_recorded: bool = True  # the audit has each call: not with relay = "direct"
    is_contended: bool = False  # the server has fewer places than agents

    @property
    def needs(self) -> frozenset[str]:
        """Parts that must work for a call to be answered."""
        return self.more | {GATE, WRAPPER}


_OUT, _HTTP = frozenset({WAY_OUT}), frozenset({LISTENER})
KINDS = {
    kind.name: kind
    for kind in (
        Kind("quick", "quick", "alice", (1, 2), 0.5),
        Kind("short", "memory", "alice", (1, 3), 2.0),
        Kind("long", "everything", "alice", (40, 80), 1.5),
        Kind("several-everything", "everything", "alice", (15, 30), 1.5),
        Kind("several-time", "time", "alice", (15, 30), 1.5),
        Kind("other-account", "time", "bob", (5, 40), 1.5),
        Kind("blocked", "everything", "bob", (15, 30), 1.5),
        Kind("limited", "limited", "alice", (15, 30), 1.5),
        # An approver who is asked too often gets no requests for a while: 20 times a minute.
        Kind("approved", "sqlite", "alice", (6, 15), 4.0),
        Kind("workspace", "files", "alice", (10, 30), 1.5),
        Kind("secret", "token", "alice", (10, 30), 1.5),
        Kind("direct", "direct", "alice", (10, 30), 1.5, is_recorded=False),
        Kind("egress", "fetch", "alice", (6, 15), 2.0, _OUT),
        Kind("remote", "far", "alice", (10, 30), 1.5, _OUT),
        Kind("http", "web", "alice", (10, 30), 1.5, _HTTP),
        Kind("crowded-1", "crowded", "alice", (4, 10), 1.5, is_contended=True),
        Kind("crowded-2", "crowded", "bob", (4, 10), 1.5, is_contended=True),
    )
}
# Each process of the load: a kill takes all sessions of one, and of no other.
PROCESSES = {
    "alice-1": ("quick", "short", "long", "approved", "limited", "http"),
    "alice-2": (
        "several-everything", "several-time", "workspace", "secret", "direct", "egress", "remote",
        "crowded-1",
    ),
    "bob-1": ("other-account", "blocked", "crowded-2"),
}  # fmt: skip
SERVERS = tuple(sorted({kind.server for kind in KINDS.values()}))
LOCAL = tuple(name for name in SERVERS if name != "far")


@dataclass(frozen=True)
class Fault:
    """Kind of fault: the parts it takes away, its duration, and the time allowed for recovery."""

    name: str
    takes: frozenset[str]  # nothing: it must fail no call
    weight: int = 2
    victims: tuple[str, ...] = ()  # servers, one of which is drawn
    hold_s: tuple[float, float] = (0.0, 0.0)
    is_silent: bool = False  # a call may be left without an answer, instead of being refused
    is_unrecorded: bool = False  # a refusal may be missing from the audit, as it needs no record
    back_in_s: float = 20.0  # after its end; it does not explain later failures


def _of(*parts: str) -> frozenset[str]:
    return frozenset(parts)


_STOPPED_S = (2.0, 6.0)
FAULTS = {
    fault.name: fault
    for fault in (
        Fault("kill gate", _of(GATE), weight=5),
        Fault("stop gate", _of(GATE), hold_s=_STOPPED_S, is_silent=True),
        Fault("kill session of gate", _of(GATE), weight=4),
        Fault("stop session of gate", _of(GATE), hold_s=_STOPPED_S, is_silent=True),
        Fault("kill supervisor", _of(WRAPPER), weight=6, victims=SERVERS),
        Fault("stop supervisor", _of(WRAPPER), victims=SERVERS, hold_s=_STOPPED_S, is_silent=True),
        Fault("kill server", _of(WRAPPER), weight=4, victims=SERVERS),
        Fault("stop server", _of(WRAPPER), victims=SERVERS, hold_s=_STOPPED_S, is_silent=True),
        Fault("kill stub", _of(GATE), weight=4),
        Fault("stop stub", _of(GATE), hold_s=_STOPPED_S, is_silent=True),
        Fault("kill agents", _of(), weight=2),
        Fault("kill squid", _of(WAY_OUT), weight=3),
        Fault("stop squid", _of(WAY_OUT), hold_s=_STOPPED_S, is_silent=True),
        Fault("kill front", _of(WAY_OUT)),
        Fault("kill listener", _of(LISTENER), weight=3),
        Fault("stop listener", _of(LISTENER), hold_s=_STOPPED_S, is_silent=True),
        Fault("kill watch", _of()),
        Fault("flush rules", _of(WAY_OUT, WRAPPER), weight=3),
        Fault("stop watch and flush rules", _of(WAY_OUT, WRAPPER), hold_s=_STOPPED_S),
        Fault("restart gate", _of(GATE)),
        Fault("restart wrapper", _of(WRAPPER), victims=SERVERS),
        Fault("restart squid", _of(WAY_OUT)),
        Fault("restart listener", _of(LISTENER)),
        Fault("restart rules", _of(WAY_OUT, WRAPPER), weight=1),
        Fault("restart front", _of(WAY_OUT), weight=1),
        Fault("reload rules", _of(), weight=1),
        Fault("restart journald", _of()),
        Fault("kill journald", _of()),
        Fault("reload systemd", _of()),
        Fault("reload policy", _of(), weight=3),
        Fault("reload bad policy", _of(), hold_s=(1.0, 3.0)),
        Fault("remove policy", _of(), hold_s=(1.0, 3.0)),
        Fault("remove policy and kill gate", _of(GATE), hold_s=(3.0, 6.0)),
        Fault("apply a changed server", _of(WRAPPER), weight=3, victims=LOCAL),
        Fault("apply without a change", _of(), weight=1),
        Fault("rotate secret", _of(), weight=3),
        Fault("panic", _of(GATE), hold_s=(1.0, 4.0)),
        Fault("panic of a server", _of(WRAPPER), victims=SERVERS, hold_s=(1.0, 4.0)),
        Fault("kill by operator", _of(GATE)),
        Fault("fill the audit's disk", _of(GATE), hold_s=(2.0, 5.0), is_unrecorded=True),
    )
}


@dataclass(frozen=True)
class Planned:
    """One fault of a schedule, `at_s` after the load has begun."""

    at_s: float
    fault: str
    victim: str = EACH
    hold_s: float = 0.0
    draw: int = 0  # which of several processes, as a number to be divided by how many there are


@dataclass(frozen=True)
class Done:
    """One fault as it happened. Times are monotonic: one clock for the host and the machine."""

    fault: str
    victim: str
    began_s: float
    ended_s: float
    note: str = ""  # its action; or the error in it
    is_done: bool = True  # it had a target


@dataclass(frozen=True)
class Call:
    """One call of an agent, or the beginning of its session. Times as above."""

    kind: str
    session: str
    outcome: str  # answered, refused (as it should be), failed, silent, wrong
    began_s: float
    ended_s: float
    since_s: float  # when the session was last known to work, or began
    session_s: float  # when the session began
    mark: str = ""  # by which the audit identifies it
    text: str = field(default="")
