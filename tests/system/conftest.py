"""Machines for stories: Debian 12 and 13, with the package installed by apt."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.system.bed import installed, roots
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile, remove_abandoned
from tests.system.bed.session import PROBE
from tests.system.servers import PROBE_SERVER, THREE_SERVERS


def pytest_sessionstart() -> None:
    """Build what is missing for both releases side by side, before the first test needs it."""

    def prepare(suite: str) -> None:
        roots.ensure(roots.build_root(suite))
        installed.installed_machine(suite).remove()

    remove_abandoned(installed.MACHINES)
    with ThreadPoolExecutor() as pool:
        list(pool.map(prepare, roots.SUITES))


@pytest.fixture(scope="session", params=roots.SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    """Return each Debian release in turn."""
    name: str = request.param
    return name


@pytest.fixture
def boot(suite: str) -> Iterator[Callable[..., Machine]]:
    """Boot machines that a test wants for itself; each must end without an unannounced line."""
    machines: list[Machine] = []

    def boot_one(profile: Profile = Profile.LIMITS, *, package: bool = True) -> Machine:
        kind = installed.installed_machine if package else installed.bare_machine
        machines.append(kind(suite, profile))
        machines[-1].add_person("alice", groups="mcpwrap" if package else "")
        machines[-1].write("/opt/probe.py", PROBE)
        return machines[-1]

    yield boot_one
    try:
        for machine in machines:
            assert machine.unannounced() == []
    finally:
        for machine in machines:
            with suppress(OSError):
                machine.remove()


@pytest.fixture(scope="module")
def wrapped_machine(suite: str) -> Iterator[Machine]:
    """Boot a machine with three real servers and the probe, and an agent called alice."""
    machine = installed.installed_machine(suite)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("mallory")
        machine.write("/opt/probe.py", PROBE)
        machine.configure(THREE_SERVERS + PROBE_SERVER)
        machine.apply()
        yield machine
    finally:
        machine.remove()


@pytest.fixture
def machine(wrapped_machine: Machine) -> Iterator[Machine]:
    """Lend the module's machine to one test, which must not leave an unannounced line."""
    yield wrapped_machine
    assert wrapped_machine.unannounced() == []
