"""Conformance of a hub: the official suite finds the same as for its one member, directly."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.hub.machines import ALICE, HUB, a_hub, await_tools, opened
from tests.system.support import conformance
from tests.system.support.conformance import RUNS, SIMPLE, Found, run_suite
from tests.system.support.tiers import on_release, only_in_test_all

pytestmark = [
    on_release("trixie"),
    only_in_test_all("the official suite takes minutes; test_hub_messages.py has its messages"),
]

DIRECT, THROUGH_HUB = ["mcpwrap-connect", "fixture"], ["mcpwrap-connect", HUB]
# With its member's own names: the suite knows those of its server.
SETTINGS = {"fixture": 'namespace = ""'}
# The checks that differ, and the reason of each: what is found directly, and through the hub.
DIFFERENCES: dict[str, dict[str, tuple[str | None, str | None]]] = {
    "2025-11-25": {},
    # The server notifies of lists that are the same as before. A hub tells of changes alone.
    "2026-07-28": {
        f"server-stateless:sep-2575-server-sends-{kind}-list-changed-on-subscription": (
            "SUCCESS",
            "WARNING",  # a server SHOULD
        )
        for kind in ("prompts", "tools")
    },
}


@contextmanager
def with_hub_of_the_fixture(suite: str) -> Iterator[Machine]:
    """Boot a machine with the suite, its server, and a hub that has it as its one member."""
    with installed.conformance_machine(suite) as machine:
        machine.add_person("alice", groups="mcpwrap")
        conformance.put_policy(machine, conformance.POLICY)
        hub = a_hub(("fixture",), ours=ALICE, settings=SETTINGS)
        machine.configure(conformance.FIXTURE + hub)
        machine.apply()
        with opened(machine) as session:
            await_tools(session, "test_simple_text")
        yield machine


STAGE = with_hub_of_the_fixture


@pytest.fixture(scope="module")
def direct(stage: Machine) -> Found:
    """Return the suite's findings for the member, behind the gate."""
    return run_suite(stage, 18001, DIRECT)


def test_through_a_hub_the_same_checks_succeed(machine: Machine, direct: Found) -> None:
    """Each check by its name; also how many there are."""
    found = run_suite(machine, 18002, THROUGH_HUB)
    for requirements, before in direct.items():
        after = found[requirements]
        print(requirements, dict(Counter(before.values())), dict(Counter(after.values())))
        differ = conformance.differences(before, after)
        seen = {check: (before.get(check), after.get(check)) for check in sorted(differ)}
        assert seen == DIFFERENCES[requirements]


def test_a_tool_that_a_policy_hides_is_found_missing(machine: Machine, direct: Found) -> None:
    """By the member's rules, so it is the member behind its gate that answers."""
    hiding = conformance.HIDING.replace("tool:", "server: fixture, tool:")
    conformance.put_policy(machine, hiding)
    found = run_suite(machine, 18003, THROUGH_HUB, conformance.ONE_CALL)
    for version in RUNS:
        assert found[version][f"{SIMPLE}:{SIMPLE}"] == "FAILURE"
        assert direct[version][f"{SIMPLE}:{SIMPLE}"] == "SUCCESS"
