"""Hub of real servers from npm and PyPI, and a remote one: the same as each of them directly."""

import pytest

from tests.system.bed.machine import Machine
from tests.system.hub import comparison, machines, real_servers
from tests.system.hub.comparison import AUTO, LEGACY, MODERN, PYTHON, TYPESCRIPT
from tests.system.hub.machines import HUB, call, opened, text_of
from tests.system.hub.real_servers import FETCHED, MEMBERS
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = [
    ON_ONE_RELEASE,
    only_in_test_all("test_hub_messages.py has a member of each era, with each client"),
]

STAGE = real_servers.booted
ROWS = [
    (client, mode, member)
    for client, modes in ((PYTHON, (LEGACY, MODERN)), (TYPESCRIPT, (LEGACY, AUTO)))
    for mode in modes
    for member in MEMBERS
]


@pytest.mark.parametrize(("client", "mode", "member"), ROWS)
def test_all_of_a_real_server_is_as_it_is_directly(
    machine: Machine, client: str, mode: str, member: str
) -> None:
    calls, uris = MEMBERS[member]
    # With nothing known the first list has what is ready; the comparison is of all.
    with opened(machine) as session:
        machines.await_tools(session, f"{member}__{next(iter(calls))}")
    by_hub = comparison.used(machine, client, mode, HUB, calls, prefix=f"{member}__", uris=uris)
    own_mode = LEGACY if mode == LEGACY else AUTO
    directly = comparison.used(machine, client, own_mode, member, calls, uris=uris)
    comparison.assert_same(by_hub, directly)
    assert set(calls) <= set(directly["tools"])
    if member != "far":  # whose other tools ask the agent what it cannot know
        assert set(calls) == set(directly["tools"])
    steps = [step for step in directly if "{" in step]
    assert len(comparison.failed(directly)) < len(steps) * 2 / 3  # as some are meant to


def test_members_that_download_their_packages_first(machine: Machine) -> None:
    """At the first start, each with a time of its own; then they are there at once."""
    with opened(machine, FETCHED) as session:
        machines.await_tools(session, "npx__echo", "uvx__echo")
        for member in ("npx", "uvx"):
            assert text_of(call(session, f"{member}__echo", text="there")) == "there"
    with opened(machine, FETCHED) as session:
        assert {"npx__echo", "uvx__echo"} <= set(machines.tools_of(session))
