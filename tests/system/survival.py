"""What stories of a broken way out have in common: servers, and how to see what comes back."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.outgoing import a_server

RULES = "/usr/lib/mcpwrap/nftables/mcpwrap.nft"
PUT_BACK = "mcpwrap-watch.service: .*put back"
SERVERS = (
    a_server("probe", 'egress = ["api.good.test"]')
    + a_server("neighbour", 'egress = ["api.good.test", "other.test"]')
    # The word in its path is one by which Squid's complaints are told.
    + a_server(
        "look",
        'egress = ["api.good.test"]\nintercept = true\n'
        'requests = ["GET,HEAD api.good.test/s*", "GET api.good.test/v1/ERROR"]',
    )
)
# The first entry of the journal after CURSOR that matches.
AWAIT = """
import json, re, subprocess, threading
argv = ["journalctl", "-f", "-o", "json", "--after-cursor", CURSOR]
with subprocess.Popen(argv, stdout=subprocess.PIPE) as journal:
    timer = threading.Timer(WITHIN_S, journal.kill)
    timer.start()
    found = False
    for line in journal.stdout:
        entry = json.loads(line)
        unit = entry.get("UNIT") or entry.get("_SYSTEMD_UNIT")
        if found := bool(re.match(PATTERN, f"{unit}: {entry.get('MESSAGE')}")): break
    timer.cancel()
    journal.kill()
print(json.dumps(found))
"""
# All that the rules are, but for what the kernel writes into sets.
LIST_RULES = "nft -n -s -t list table inet mcpwrap 2>&1;" + "".join(
    f"nft -n list set inet mcpwrap {name} 2>&1;"
    for name in (
        "wrapped", "own", "fronted", "direct4", "direct6", "ports", "parents4", "parents6",
        "private4", "private6", "resolvers4", "resolvers6",
    )
)  # fmt: skip
LISTEN = "import socket; s = socket.create_server({where}); print('up', flush=True); input()"
EVERYWHERE = "('::', 4000), family=socket.AF_INET6, dualstack_ipv6=True"
# As the account, and outside the wrapper's control group: no layer but the packet rules binds it.
OUTSIDE = "setpriv --reuid {0} --regid {0} --clear-groups python3 -c '{1}'"


def play(session: Session, code: str) -> object:
    """Evaluate an expression of the module of clients, in the sandbox."""
    return session.evaluate(f"from outgoing import *; result = {code}")


class Journal:
    """The journal of a machine, from now on."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        shown = machine.as_root("journalctl -n 1 --show-cursor").out
        self._cursor = shown.strip().rpartition("-- cursor: ")[2]

    def await_line(self, pattern: str, within_s: float = 20.0) -> None:
        """Wait for an entry `UNIT: MESSAGE`."""
        values = f"CURSOR, PATTERN, WITHIN_S = {(self._cursor, pattern, within_s)!r}"
        found = self._machine.probe(f"{values}\n{AWAIT}")
        assert found, f"no {pattern!r} in {within_s} s"


def rules(machine: Machine) -> str:
    """Return the rules as they are."""
    return machine.as_root(LIST_RULES).out


def own_address(machine: Machine, server: str) -> str:
    """Return the egress address of a server."""
    uid = machine.uid_of(f"mcpw-{server}")
    own = machine.as_root("nft -n list set inet mcpwrap own").out
    found = re.search(rf"{uid} \. ([0-9.]+)", own)
    assert found
    return found[1]


@contextmanager
def changed(machine: Machine, file: str, text: str) -> Iterator[None]:
    """Put another text into a file, for the time of the block."""
    before = machine.read(file)
    machine.write(file, text)
    try:
        yield
    finally:
        machine.write(file, before)


# ------------------------------------------------------------------ the packet rules
