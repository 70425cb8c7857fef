"""Compromised session process of the gate: it can send messages to the monitor, and no more.

The code of each attack stands where the installed child looks for a new policy, before its first
line: behind the same filter, with the same descriptors, on the channel to the real monitor.
"""

import json
from pathlib import Path

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.gate import judged
from tests.system.gate.judged import await_news, begin
from tests.system.guest import taken_over
from tests.system.guest.taken_over import ATTACKS
from tests.system.support.tiers import only_in_test_all

STAGE = judged.booted

POLICY = """
version: 1
limits: {calls: 3/h}
"""
HOOK = "        update = self._monitor.policy_update()\n"
REFUSED_ANYWAY = {"write a file", "make a network socket", "read its own memory"}
CODE = Path(taken_over.__file__).read_text()
NO_FILTER = ("as_gate/session/admit", "context.filter.enter)", "lambda: None)")


@pytest.fixture
def machine(machine: Machine) -> Machine:
    """Put the limit in force, with new counts."""
    begin(machine, POLICY)
    return machine


def run(code: str, **names: str) -> str:
    """Return the statement that runs this in the child, where these names have these values."""
    given = ", ".join(f"{name!r}: {word}" for name, word in names.items())
    return f"exec({code!r}, {{{given}}})"


def hook(code: str) -> str:
    """Return the code that replaces the child's own, to run this once."""
    once = "        if not vars(self).setdefault('tried', None): self.tried = True; "
    return f"{once}{run(code, self='self')}\n{HOOK}"


def all_told(session: Session) -> None:
    while True:
        session.receive()


def tried(machine: Machine) -> dict[str, object]:
    """Open a session, let the child attack, and return the outcome."""
    with machine.session("probe") as session:
        assert session.evaluate("result = 1") == 1  # it continues to judge
    found: dict[str, object] = json.loads(await_news(machine, "^TRIED (.*)$"))
    return found


def test_it_opens_nothing_and_reaches_nobody(machine: Machine) -> None:
    with machine.patched("as_gate/session/judge", HOOK, hook(f"{CODE}\ntry_all(self)")):
        told = tried(machine)
        assert told == dict.fromkeys(ATTACKS, 1) | {"make a thread": "refused"}  # 1 is EPERM
        with machine.patched(*NO_FILTER):  # the twin
            works = {name for name, came in tried(machine).items() if came == "works"}
            assert works == ATTACKS.keys() - REFUSED_ANYWAY


ANOTHER_WORD = only_in_test_all("another word that the monitor takes from none of ours")


@pytest.mark.parametrize(
    "packet",
    [
        "b'Nother'",  # it is of another server
        pytest.param("b'Nprobe'", marks=ANOTHER_WORD),  # it logs that once
        pytest.param("b'P'", marks=ANOTHER_WORD),  # a policy for the monitor
        "b'G'",  # an answer, from a process that has none to give
        pytest.param(
            "b'Fit cannot start'", marks=ANOTHER_WORD
        ),  # which would refuse the other agents of its server
        pytest.param("b'X' * 8000", marks=ANOTHER_WORD),
        pytest.param("b'A'", marks=ANOTHER_WORD),
        pytest.param("b'R'", marks=ANOTHER_WORD),  # its part of the audit is not full
    ],
)
def test_the_monitor_ends_a_child_that_says_what_none_of_ours_says(
    machine: Machine, packet: str
) -> None:
    with machine.patched(
        "as_gate/session/judge", HOOK, hook(f"self._monitor._socket.send({packet})")
    ):
        machine.announce("mcpwrap-gate")
        with machine.session("other") as bystander, machine.session("probe") as session:
            session.ask("result = 1")
            with pytest.raises(EOFError):
                all_told(session)
            alice = machine.uid_of("alice")
            await_news(machine, f"the session of uid {alice} at 'probe' is ended: ")
            with pytest.raises(EOFError):  # it has the same code in it, and ends as well
                bystander.evaluate("result = 1")
            await_news(machine, f"the session of uid {alice} at 'other' is ended: ")


def test_it_counts_against_nobody_but_its_own_agent_and_server(machine: Machine) -> None:
    """It requests calls without end: those of the other server are not used up."""
    ask = """
if self._about.server == "probe":
    for _ in range(1000): self._monitor.ask("run", bytes(8))
"""
    with machine.patched("as_gate/session/judge", HOOK, hook(ask)):
        with machine.session("probe") as session:
            session.ask("result = 1")
            assert session.receive()["result"]["isError"] is True  # its own are
        with machine.session("other") as session:
            assert [session.evaluate(f"result = {n}") for n in range(3)] == [0, 1, 2]


def test_a_policy_that_was_handed_out_cannot_be_changed(machine: Machine) -> None:
    """It has a descriptor of it for a moment: sealed, and of its own server only."""
    at = " " * 16
    take = f"{at}self._update = PolicyUpdate(packet[1:].decode(), memfd.read_all(fds[0]))\n"
    said = f"{at}{run(CODE + 'change_a_policy(fds[0])', fds='fds')}\n"
    with machine.patched("as_gate/session/monitor_client", take, said + take):
        with machine.session("probe") as session:
            assert session.evaluate("result = 1") == 1
            rule = "rules: [{name: r, server: other, tool: x, action: block}]"
            machine.write("/etc/mcpwrap/policy.yaml", POLICY + rule)
            machine.as_root("systemctl reload mcpwrap-gate")
            assert session.evaluate("result = 2") == 2
        told = json.loads(await_news(machine, "^TRIED (.*)$"))
        assert told == {"write": 1, "cut": 1, "others": False}
