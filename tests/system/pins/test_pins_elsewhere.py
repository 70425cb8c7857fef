"""Pins of a remote server, and of a member of a hub."""

import pytest

from tests.shared import pace
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.http import remote
from tests.system.hub.machines import DEFINITIONS
from tests.system.pins import machines
from tests.system.pins.machines import (
    HELD_BACK,
    HUB,
    POISON,
    REMOTE,
    UNPINNED_REMOTE,
    a_tool,
    accept,
    called,
    first_use,
    listed,
    opened,
    put,
    worked,
)
from tests.system.support.tiers import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE
STAGE = machines.booted

TOOL = "test_simple_text"  # of the conformance suite's server


@pytest.fixture
def machine(machine: Machine) -> Machine:
    machine.announce("held back|held definitions|mcpwrap tools")
    return machine


def test_pins_of_a_remote_server_hold(machine: Machine, internet: Internet) -> None:
    """Of one by the official library, which is started anew with another description."""
    names, said = dict[str, list[str]](), ""
    with remote.far_server(machine, internet, ""):
        for server in (REMOTE, UNPINNED_REMOTE):
            with opened(machine, server) as session:
                names[server] = listed(session)
                said = called(session, TOOL)
                assert HELD_BACK not in said
    assert TOOL in names[REMOTE]
    assert names[REMOTE] == names[UNPINNED_REMOTE]
    with remote.far_server(machine, internet, "", {TOOL: {"description": POISON}}):
        with opened(machine, REMOTE) as session:
            assert listed(session) == [name for name in names[REMOTE] if name != TOOL]
            assert HELD_BACK in called(session, TOOL)
            accept(machine, REMOTE)
            assert listed(session) == names[REMOTE]
            assert called(session, TOOL) == said
        with opened(machine, UNPINNED_REMOTE) as session:  # the twin
            assert listed(session) == names[UNPINNED_REMOTE]
            assert called(session, TOOL) == said


def test_pins_of_a_member_hold_in_a_hub(machine: Machine) -> None:
    first_use(machine, "member", a_tool("one"), a_tool("two"))
    put(machine, "unpinned", [a_tool("one")])
    with opened(machine, HUB) as session:
        pace.until(lambda: {"member__one", "unpinned__one"} <= set(listed(session)))
        assert called(session, "member__one") == worked("member")
    for server in ("member", "unpinned"):
        machine.as_root(f"systemctl stop mcpwrap@{server}")
        put(machine, server, [a_tool("one", description=POISON), a_tool("two"), a_tool("new")])
    with opened(machine, HUB) as session:
        # The list is of the definitions that were accepted, before any member is started.
        catalogue = described(session)
        assert catalogue["member__one"] == "Return one."
        why = called(session, "member__one")  # the call that starts it
        assert HELD_BACK in why
        assert "mcpwrap tools accept member one" in why
        assert called(session, "unpinned__one") == worked("unpinned")  # the twin
        pace.until(lambda: described(session).get("unpinned__one") == POISON)
        now = described(session)
        assert now.get("member__one") in {None, "Return one."}
        assert "member__new" not in now
        assert "unpinned__new" in now
        stored = f"{DEFINITIONS}/{machine.uid_of('alice')}/member.json"
        pace.until(lambda: POISON[:20] in machine.read(stored))  # as the member sent it
        with opened(machine, HUB) as later:
            assert POISON not in [
                described(later).get(f"member__{name}") for name in ("one", "new")
            ]
            assert described(later)["unpinned__one"] == POISON
        accept(machine, "member")
        pace.until(lambda: described(session).get("member__one") == POISON)
        assert called(session, "member__one") == worked("member")


def described(session: Session) -> dict[str, str]:
    """Return the description of each tool of a hub, whose list has one page."""
    result = session.answer_to(session.request("tools/list"))["result"]
    return {tool["name"]: tool["description"] for tool in result["tools"] if "description" in tool}
