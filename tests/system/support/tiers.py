"""Marks for the tier of a story, and for the releases of Debian on which it runs.

`make test` is the fast tier: each promise once, on one release. `make test-all` is everything. A
story without a mark is in both tiers: on the first release in the fast one, on each in the other.
"""

import pytest

from tests.system.bed import nspawn
from tests.system.bed.roots import SUITES

FAST, ALL = TIERS = ("fast", "all")
# In a run's configuration: each case that is left out for want of limits, and what runs instead.
WITHOUT_LIMITS = pytest.StashKey[dict[str, str]]()

# Stories of the emulated machine, in which limits act.
LIMITS_OF_SESSIONS = "vm/test_vm.py::test_with_controllers_a_session_is_held_to_its_own_limits"
LIMITS_OF_RUNS = "vm/test_run_limits.py::test_with_controllers_a_run_is_held_to_its_own_limits"
PRINCIPALS = "vm/test_principals.py::test_each_principal_acts_under_its_own_account"

# For stories whose result depends on our own code only, which is the same on each release: not on
# systemd, nft or Squid, nor on the output of their versions.
ON_ONE_RELEASE = pytest.mark.parametrize("suite", SUITES[:1], indirect=True)


def on_release(suite: str) -> pytest.MarkDecorator:
    """Run the story on this release alone, in both tiers.

    A run of other suites, such as that of Debian testing, has it on its first one.
    """
    here = suite if suite in SUITES else SUITES[0]
    return pytest.mark.parametrize("suite", [here], indirect=True)


def on_each_release(reason: str) -> pytest.MarkDecorator:
    """Run the story on each release in the fast tier too, for this reason."""
    return pytest.mark.on_each_release(reason)


def only_in_test_all(reason: str) -> pytest.MarkDecorator:
    """Leave the story, or a row of its table, to `make test-all`, for this reason."""
    return pytest.mark.only_in_test_all(reason)


def needs_limits(reason: str, instead: str) -> pytest.MarkDecorator:
    """Leave the story to machines where limits act, for this reason.

    `instead` is the story of the emulated machine that shows the same, such as
    `LIMITS_OF_SESSIONS`.
    """
    return pytest.mark.needs_limits(reason, instead)


def unlimited_here(item: pytest.Item) -> str:
    """Return what runs instead of a case that needs limits on a machine without; "" of others."""
    mark = item.get_closest_marker("needs_limits")
    if mark is None or nspawn.has_limits(suite_of(item) or SUITES[0]):
        return ""
    return str(mark.args[1])


def is_fast(item: pytest.Item) -> bool:
    """Return whether the fast tier has this case."""
    if item.get_closest_marker("only_in_test_all"):
        return False
    suite = suite_of(item)
    if suite in (None, SUITES[0]) or item.get_closest_marker("on_each_release"):
        return True
    return not _runs_also_on(item, SUITES[0])


def suite_of(item: pytest.Item) -> str | None:
    """Return the release that the case names, if it names one."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    suite = params.get("suite")
    return str(suite) if suite else None


def _runs_also_on(item: pytest.Item, suite: str) -> bool:
    """Return whether the story of this case may run on this release."""
    pinned = [
        mark.args[1]
        for mark in item.iter_markers("parametrize")
        if mark.args and mark.args[0] == "suite"
    ]
    return not pinned or suite in pinned[0]
