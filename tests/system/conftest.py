"""Machines for stories: Debian 12 and 13, with the package installed by apt."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.system.bed import installed, roots
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile, remove_abandoned
from tests.system.bed.session import PROBE
from tests.system.outgoing import machine_with_internet
from tests.system.servers import PROBE_SERVER, THREE_SERVERS

# Over a minute each, by `--durations=0`, some with few tests. Who runs files side by side begins
# with these, so that at the end no process is left alone with a long one.
LONGEST = (
    "test_apply", "test_secret_store", "test_secret_refusals", "test_streams_out", "test_mutation",
    "test_egress_survives", "test_package", "test_streams", "test_stock_squid", "test_vm",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Keep pytest-xdist from an order of its own, by the number of tests alone."""
    config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)  # after pytest has put together what shares a fixture
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, then those with the most tests; within a file all stays."""
    rank_by_stem = {stem: rank for rank, stem in enumerate(LONGEST)}
    count_by_path = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[int, int, str]:
        stem = item.path.stem
        return rank_by_stem.get(stem, len(LONGEST)), -count_by_path[item.path], stem

    items.sort(key=place)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Build what is missing for both releases side by side, before the first test needs it."""
    if hasattr(session.config, "workerinput"):
        return  # one of several that run side by side: who started it has done this

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


@pytest.fixture(scope="module")
def connected(suite: str, request: pytest.FixtureRequest) -> Iterator[tuple[Machine, Internet]]:
    """Boot a machine on an internet, as the module says in CONNECTED: its limits, its servers."""
    profile, servers = request.module.CONNECTED
    with machine_with_internet(suite, profile, servers) as both:
        yield both


@pytest.fixture
def internet(connected: tuple[Machine, Internet]) -> Internet:
    """Return its internet, which has seen nothing of this test yet."""
    connected[1].forget()
    return connected[1]


@pytest.fixture
def machine(suite: str, request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Lend the module's machine to one test, which must not leave an unannounced line."""
    if hasattr(request.module, "CONNECTED"):
        lent: Machine = request.getfixturevalue("connected")[0]
    else:
        lent = request.getfixturevalue("wrapped_machine")
    yield lent
    assert lent.unannounced() == []
