"""Directives of our units, and the release of systemd that each distribution has."""

from pathlib import Path

import pytest
import tomli

from tests.unit.unit_files import UNITS, settings

TOP = Path(__file__).parents[3]
SINCE: dict[str, int] = tomli.loads((TOP / "tests/shared/systemd_directives.toml").read_text())
# As each was released.
SYSTEMD = {
    "deb12": 252,
    "deb13": 257,
    "deb14": 262,
    "ubuntu24.04": 255,
    "fc43": 258,
    "el10": 257,
    "suse16.0": 257,
}
ALL = [path for path in UNITS.rglob("mcpwrap*") if path.is_file()]


@pytest.mark.parametrize("system", tomli.loads((TOP / "packaging/targets.toml").read_text()))
def test_each_system_knows_each_directive(system: str) -> None:
    assert unknown(SYSTEMD[system]) == set()


def test_a_release_that_is_too_old_is_noticed() -> None:
    assert unknown(248) == {"OnSuccess", "SocketBindAllow", "SocketBindDeny"}


def unknown(systemd: int) -> set[str]:
    """Return the directives that a release of systemd would ignore."""
    found = (name for unit in ALL for name in settings(str(unit.relative_to(UNITS))))
    used = {name.partition(" ")[2] for name in found}
    return {name for name in used if SINCE[name] > systemd}
