"""Machine for stories of egress recovery: its servers, and checks of the restored service."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed.internet import Connected
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.support import tiers
from tests.system.support.egress_sessions import machine_with_internet
from tests.system.support.servers import a_server

RULES = "/usr/lib/mcpwrap/nftables/mcpwrap.nft"
PUT_BACK = "mcpwrap-watch.service: .*are restored"
# The word in the last path identifies Squid's complaints.
REQUESTS = """requests = [
    "GET,HEAD api.good.test/v1/*", "GET,HEAD api.good.test/s*", "GET api.good.test/ws",
    "GET api.good.test/v1/ERROR",
]"""
SERVERS = (
    a_server("probe", 'egress = ["*.cdn.test", "h2.good.test", "api.good.test"]')
    + a_server("neighbour", 'egress = ["api.good.test", "other.test"]')
    + a_server("look", f'egress = ["api.good.test"]\nintercept = true\n{REQUESTS}')
    + a_server("other", f'egress = ["api.good.test"]\nintercept = true\n{REQUESTS}')
)
# The whole rules, but for the elements that the kernel writes into sets.
LIST_RULES = "nft -n -s -t list table inet mcpwrap 2>&1 | sed 's/\t# count .*//';" + "".join(
    f"nft -n list set inet mcpwrap {name} 2>&1;"
    for name in (
        "wrapped", "egress_addr", "fronted", "direct4", "direct6", "ports", "parents4", "parents6",
        "private4", "private6", "resolvers4", "resolvers6",
    )
)  # fmt: skip
LISTEN = "import socket; s = socket.create_server({where}); print('up', flush=True); input()"
EVERYWHERE = "('::', 4000), family=socket.AF_INET6, dualstack_ipv6=True"


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot a machine on an internet, where IPAddressDeny= acts beside the packet rules."""
    with machine_with_internet(suite, Profile.BPF, SERVERS) as connected:
        yield connected


def is_fast(request: pytest.FixtureRequest) -> bool:
    """Return whether this is `make test`, in which repetitions are fewer."""
    return bool(request.config.option.tier == tiers.FAST)


def outside(machine: Machine, account: str, function: str, *arguments: object) -> Any:
    """Call a function of `guest/outgoing.py` as this account, outside the wrapper's control group.

    No layer but the packet rules binds it there.
    """
    call = machine.guest_command("outgoing", function, *arguments)
    run = f"setpriv --reuid {account} --regid {account} --clear-groups"
    return json.loads(machine.as_root(f"{run} {call}").out)


class Journal:
    """The journal of a machine, from now on."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        # With --sync, earlier lines are before the cursor.
        shown = machine.look("journalctl --sync; journalctl -n 1 --show-cursor")
        self._cursor = shown.strip().rpartition("-- cursor: ")[2]

    def await_line(self, pattern: str) -> None:
        """Wait for an entry `UNIT: MESSAGE`."""
        wanted = (self._cursor, pattern, pace.WAIT_S)
        found = self._machine.look_by("journal_entries", "await_entry", *wanted)
        assert found, f"no {pattern!r} in {pace.WAIT_S} s"


def await_that(machine: Machine, condition: str) -> None:
    """Wait until a shell command that only reads succeeds."""
    loop = shlex.quote(f"until {condition}; do sleep 0.05; done")
    machine.look(f"timeout {pace.WAIT_S} sh -c {loop}")


def lives_for(unit: str, least_s: int) -> str:
    """Return the condition that the main process of a unit is this old."""
    return f"[ $(ps -o etimes= -p $(systemctl show --value -p MainPID {unit})) -ge {least_s} ]"


def rules(machine: Machine) -> str:
    """Return the present rules."""
    return machine.look(LIST_RULES)


def own_address(machine: Machine, server: str) -> str:
    """Return the egress address of a server."""
    uid = machine.uid_of(f"mcpw-{server}")
    own = machine.look("nft -n list set inet mcpwrap egress_addr")
    found = re.search(rf"{uid} \. ([0-9.]+)", own)
    assert found
    return found[1]


@contextmanager
def changed(machine: Machine, file: str, text: str) -> Iterator[None]:
    """Replace the text of a file, for the time of the block.

    At once: mcpwrap-watch may load the rules at any moment.
    """
    before = machine.read(file)
    machine.replace(file, text)
    try:
        yield
    finally:
        machine.replace(file, before)
