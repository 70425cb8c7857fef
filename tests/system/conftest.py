"""Machines for stories: Debian 12 and 13, on request testing, with the package installed by apt."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from tests.shared import pace
from tests.system.bed import installed, roots
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile, remove_abandoned
from tests.system.support import durations, tiers
from tests.system.support.progress import Progress
from tests.system.support.stages import Stages, machine_of

# For one case; one that needs more has a mark. Most of it is for a root: the first story that needs
# a browser, say, builds it, and downloads it at the speed of the host.
TIMEOUT_S = 600
STAGES = Stages()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `make test` and `make test-all`."""
    group = parser.getgroup("mcpwrap")
    group.addoption("--tier", choices=tiers.TIERS, default=tiers.ALL, help="which stories to run")
    group.addoption("--write-durations", action="store_true", help="record how long stories took")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and keep pytest-xdist from an order of its own."""
    config.option.loadscopereorder = False
    marks = ("only_in_test_all(reason)", "on_each_release(reason)", "needs_limits(reason, instead)")
    for mark in marks:
        config.addinivalue_line("markers", f"{mark}: see tests/system/support/tiers.py")
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(Progress(config), "mcpwrap-progress")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark each case with its group and its timeout: later, xdist would no longer see the group."""
    item.add_marker(pytest.mark.xdist_group(_group(item)))
    stated = item.get_closest_marker("timeout")
    seconds = (stated.args[0] if stated else TIMEOUT_S) * pace.PACE
    item.add_marker(pytest.mark.timeout(seconds), append=False)


@pytest.hookimpl(trylast=True)  # after pytest has grouped the cases that share a fixture
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tier's cases; group those of one machine, and put the longest group first."""
    if config.option.tier == tiers.FAST:
        _keep(config, items, [item for item in items if tiers.is_fast(item)])
    instead = {item.nodeid: tiers.unlimited_here(item) for item in items}
    _keep(config, items, [item for item in items if not instead[item.nodeid]])
    left_out = {durations.case_of(case): story for case, story in instead.items() if story}
    config.stash[tiers.WITHOUT_LIMITS] = left_out
    durations.sort(items, _group)


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    ids = {item.nodeid for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ids])
    items[:] = kept


def _group(item: pytest.Item) -> str:
    """Return the name of the group that runs in one process: its shared machine, or its module.

    Both releases of it, one after the other: the kernel counts the processes of one UID in all
    machines together, and a story of a limit on them would reach that of the other release.
    """
    assert isinstance(item, pytest.Function)
    stage = getattr(item.module, "STAGE", None)
    shared = getattr(stage, "__qualname__", "")
    name = f"{stage.__module__}.{shared}" if shared else item.module.__name__
    return name.removeprefix("tests.system.")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Build missing roots and packages of each release in parallel, before the first test."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return  # a worker of xdist: its parent process has done this

    def prepare(suite: str) -> None:
        roots.ensure(roots.build_root(suite))
        installed.booted(suite).remove()

    remove_abandoned(installed.MACHINES)
    with ThreadPoolExecutor() as pool:
        list(pool.map(prepare, roots.SUITES))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Give the modules after a failure a machine of their own: it may have spoiled this one."""
    if report.failed:
        STAGES.is_spoiled = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the stage that is up; a worker of xdist tells its parent which cases need limits."""
    STAGES.take_down()
    if hasattr(session.config, "workeroutput"):
        left_out = session.config.stash.get(tiers.WITHOUT_LIMITS, {})
        session.config.workeroutput["without limits"] = left_out


@pytest.fixture(scope="session", params=roots.SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    """Return each Debian release in turn."""
    name: str = request.param
    return name


@pytest.fixture
def boot(suite: str) -> Iterator[Callable[..., Machine]]:
    """Boot machines for one test; each must end without an unannounced line."""
    machines: list[Machine] = []

    def boot_one(profile: Profile = Profile.LIMITS, *, package: bool = True) -> Machine:
        kind = installed.booted if package else installed.bare_machine
        machines.append(kind(suite, profile))
        machines[-1].add_person("alice", groups="mcpwrap" if package else "")
        return machines[-1]

    yield boot_one
    try:
        for machine in machines:
            assert machine.unannounced() == []
    finally:
        for machine in machines:
            with suppress(OSError):
                machine.remove()


@pytest.fixture(scope="session")
def lend() -> Callable[..., Any]:
    """Lend a stage by the function that prepares it; see `support/stages.py`."""
    return STAGES.lend


@pytest.fixture(scope="module")
def stage(suite: str, request: pytest.FixtureRequest) -> Any:
    """Lend the stage that the module names."""
    return STAGES.lend(request.module.STAGE, suite)


@pytest.fixture
def machine(stage: Any) -> Iterator[Machine]:
    """Lend the stage's machine to one test, which must not leave an unannounced line."""
    machine = machine_of(stage)
    yield machine
    assert machine.unannounced() == []


@pytest.fixture
def alone_on_the_host() -> Iterator[None]:
    """Lock the same story of another run on this host.

    The kernel counts the processes of one UID over all machines, and a fork bomb takes all that it
    may.
    """
    with roots.locked("processes-of-a-uid"):
        yield


@pytest.fixture
def internet(stage: Any) -> Internet:
    """Return the stage's internet, without records of this test yet."""
    internet: Internet = stage.internet
    internet.forget()
    return internet
