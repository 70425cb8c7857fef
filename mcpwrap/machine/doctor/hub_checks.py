"""Checks of a hub, made in a session of one of its agents: its members, and what models see."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from mcpwrap.config.model import Server
from mcpwrap.core.doctor import Check, failed, good, unknown
from mcpwrap.errors import with_name
from mcpwrap.machine.doctor import live_probes
from mcpwrap.machine.doctor.live_probes import TrialStatus

_AGAIN = "try again; if it fails again, fix the cause named above"


def session(server: Server, agent: str) -> Iterator[Check]:
    """Open a session of the hub, as one of its agents, and yield what it shows."""
    tried = live_probes.session(agent, server.name, "hub")
    what = f"{server.name}: a session of {agent}"
    if tried.ended is TrialStatus.WORKED:
        yield good(what, tried.line)
        yield from _decoded(tried.more)
    elif tried.ended is TrialStatus.UNKNOWN:
        yield unknown(what, tried.line, _AGAIN)
    else:
        fix = f"`sudo mcpwrap logs {server.name}`; `mcpwrap status {server.name}` for its members"
        yield failed(what, with_name(tried.line, code="E-DOCTOR-SESSION"), fix)


def _decoded(untrusted_lines: Iterable[str]) -> Iterator[Check]:
    """Yield the checks that the program of the agent's account has printed."""
    for line in untrusted_lines:
        with suppress(msgspec.MsgspecError):
            yield msgspec.json.decode(line, type=Check)
