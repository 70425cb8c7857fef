"""Pages of docs/how-to, played as a stranger types them: each command, each file, each output."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.system.bed import installed
from tests.system.bed.internet import Connected
from tests.system.bed.machine import Machine
from tests.system.how_to import pages
from tests.system.how_to.player import Player
from tests.system.support import how_to
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.wrap.people import add_alice

STAGE = pages.of_a_stranger
pytestmark = on_release("trixie")  # the one with sudo and the Inspector
REST = only_in_test_all("one page is as good as another for the reader; the fast tier has some")


@pytest.fixture
def other_machine(suite: str) -> Iterator[Machine]:
    """Boot the machine to which a page moves."""
    with installed.agents_machine(suite) as machine:
        pages.prepare(machine)
        add_alice(machine)
        yield machine


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if page.is_fast else REST) for name, page in pages.PAGES.items()],
)
def test_a_page_works_as_it_is_written(
    stage: Connected, machine: Machine, name: str, request: pytest.FixtureRequest
) -> None:
    page, steps = pages.PAGES[name], how_to.read((pages.FOLDER / name).read_text())
    machines = {"": machine}
    if any(not isinstance(step, how_to.LeftOut) and step.machine for step in steps):
        machines["new"] = request.getfixturevalue("other_machine")
    pages.anew(machine)
    machine.unannounced()
    with ExitStack() as stack:
        stack.enter_context(page.before(stage))
        if "new" in machines:
            stack.enter_context(page.between(machine, machines["new"]))
        Player(machines).play(steps)
