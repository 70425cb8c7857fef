"""Probes that read files or answers of tools; the others are tried by the stories."""

from pathlib import Path

import pytest

from mcpwrap.machine.prerequisites import probes
from tests.project.imports import TOP
from tests.unit.unit_files import settings

# Directives that make namespaces, mounts, or filters of what a server sees.
SANDBOX = (
    "Private", "Protect", "TemporaryFileSystem", "ReadOnlyPaths", "RestrictNamespaces",
    "NoNewPrivileges", "SystemCallArchitectures",
)  # fmt: skip
# The drop-in of a server sets it, unless the server has a network.
OF_DROP_IN = {"[Service] PrivateNetwork"}


def test_the_trial_unit_has_what_a_servers_unit_has() -> None:
    trial, server = settings(probes.TRIAL_UNIT), settings("mcpwrap@.service")
    wanted = {n for n in server if n.removeprefix("[Service] ").startswith(SANDBOX)}
    assert len(wanted) > 12
    for name in wanted:
        assert trial.get(name) == server[name], name
    added = {n for n in trial if n.removeprefix("[Service] ").startswith(SANDBOX)} - wanted
    assert added == OF_DROP_IN


def test_the_trial_unit_compares_each_namespace_that_it_makes() -> None:
    (line,) = settings(probes.TRIAL_UNIT)["[Service] ExecStart"]
    assert "for n in mnt net ipc; do test ! /proc/self/ns/$$n -ef /proc/1/ns/$$n || exit 1" in line


@pytest.mark.parametrize(
    ("shown", "is_old"),
    [
        ("Version=252.39-1~deb12u2\n", False),
        ("Version=257.9-1~deb13u1\n", False),
        ("Version=v262~rc1\n", False),
        ("Version=249.11-0ubuntu3.16\n", True),  # Ubuntu 22.04
        ("Version=\n", False),  # systemd(1) does not say
    ],
)
def test_an_old_systemd_is_named(
    monkeypatch: pytest.MonkeyPatch, shown: str, *, is_old: bool
) -> None:
    monkeypatch.setattr(probes, "run", lambda *_: shown)
    reason = probes.systemd_version()
    assert reason == ("it is 249, and the oldest that works is 252" if is_old else "")


@pytest.mark.parametrize(
    ("controllers", "missing"),
    [
        ("cpuset cpu io memory hugetlb pids\n", []),
        ("cpu pids\n", ["memory"]),  # cgroup_disable=memory
        ("\n", ["cpu", "memory", "pids"]),  # a container to which nothing is delegated
    ],
)
def test_controllers_of_cgroup_v2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, controllers: str, missing: list[str]
) -> None:
    monkeypatch.setattr(probes, "_CGROUPS", tmp_path)
    (tmp_path / "cgroup.controllers").write_text(controllers)
    assert probes.missing_controllers() == missing


def test_controllers_of_cgroup_v1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probes, "_CGROUPS", tmp_path)
    for name in ("cpu", "memory"):
        (tmp_path / name).mkdir()
    assert probes.missing_controllers() == ["pids"]


def test_each_kind_of_statement_in_the_rules_has_a_part() -> None:
    """Without one, the refusal of a kernel is not named, but quoted."""
    rules = (TOP / "nftables/mcpwrap.nft").read_text()
    parts = str(probes.PART_BY_NAME.values())
    for word in ("skuid", " . ", "flags interval", "dynamic", "reject", "fib", "socket wildcard"):
        assert word in rules
        assert word in parts
