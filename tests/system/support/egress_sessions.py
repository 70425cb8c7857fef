"""Machines with an internet beside them, and clients in the sandbox of a server on one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session

# A call in the sandbox times out before the host's wait for its answer.
GUEST_WAIT_S = pace.WAIT_S / 2


@contextmanager
def machine_with_internet(suite: str, profile: Profile, config: str) -> Iterator[Connected]:
    """Boot a machine, plug it in, and apply the configuration."""
    with installed.booted(suite, profile) as machine:
        machine.add_person("alice", groups="mcpwrap")
        with Internet(machine) as internet:
            machine.configure(config)
            machine.apply()
            yield Connected(machine, internet)


def play(session: Session, code: str) -> Any:
    """Evaluate an expression of `guest/outgoing.py` in the sandbox of the probe.

    Its functions wait no longer than GUEST_WAIT_S; `started` keeps the processes that it has
    started.
    """
    module = "tests.system.guest.outgoing"
    session.ask(
        f"import {module} as clients; clients.WAIT_S = {GUEST_WAIT_S}\n"
        f"from {module} import *; result = {code}"
    )
    return session.told()


def finished(session: Session, name: str, within_s: float = GUEST_WAIT_S) -> Any:
    """Wait for the end of the process that was started under this name; return its result."""
    for _ in range(int(within_s / GUEST_WAIT_S) + 1):
        if play(session, f"started[{name!r}].finish({GUEST_WAIT_S})"):
            return play(session, f"started[{name!r}].said()")
    raise AssertionError(f"{name}: {play(session, f'started[{name!r}].said()')}")
