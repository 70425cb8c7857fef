"""Checks of the machine: no verdict from a tool that fails, or on a unit in transition."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine import nft_table, observer, policy_files
from mcpwrap.machine.doctor import machine_checks
from mcpwrap.plan.registry import Registry

CONFIG = parse([SourceFile("c", b"")])
LOADED = "table inet mcpwrap {\n\tset wrapped {\n\t\ttype uid\n\t}\n}\n"
GATE, WATCH = "mcpwrap-gate.socket", "mcpwrap-watch.service"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have a machine on which nothing was applied, and every unit is up."""
    monkeypatch.setattr(observer, "expect_roots_own", lambda: None)
    monkeypatch.setattr(observer, "vanished_policies", dict)
    monkeypatch.setattr(policy_files, "FILE", str(tmp_path / "policy.yaml"))
    monkeypatch.setattr(policy_files, "FOLDER", str(tmp_path / "policy.d"))
    monkeypatch.setattr(observer, "listeners", list)
    monkeypatch.setattr(observer, "registry", Registry)
    monkeypatch.setattr(nft_table, "run", nft(LOADED))
    monkeypatch.setattr(machine_checks, "properties", units("active", "running"))


def units(active: str, sub: str) -> Callable[..., dict[str, dict[str, str]]]:
    """Return a function that reports this state for every unit."""

    def properties(names: Iterable[str], _: object) -> dict[str, dict[str, str]]:
        return {name: {"ActiveState": active, "SubState": sub} for name in names}

    return properties


def state_of(what: str) -> str:
    """Return the state of the check of one thing."""
    return next(check.state for check in machine_checks.machine(CONFIG) if check.what == what)


@pytest.mark.parametrize(
    ("active", "sub", "state"),
    [
        ("active", "running", "good"),
        ("reloading", "reload", "good"),
        ("failed", "failed", "failed"),
        ("inactive", "dead", "failed"),
        ("activating", "start", "unknown"),
        ("deactivating", "stop", "unknown"),
        ("activating", "auto-restart", "failed"),  # it fails again and again
    ],
)
def test_a_unit_is_judged_once_it_is_up_or_down(
    monkeypatch: pytest.MonkeyPatch, active: str, sub: str, state: str
) -> None:
    monkeypatch.setattr(machine_checks, "properties", units(active, sub))
    assert (state_of(GATE), state_of(WATCH)) == (state, state)


def nft(ruleset: str) -> Callable[..., str]:
    """Return a function that prints these rules, and sets without elements."""
    return lambda *argv: ruleset if "ruleset" in argv else '{"nftables": []}'


@pytest.mark.parametrize(
    ("ruleset", "state"),
    [
        (LOADED, "good"),
        (f"table inet filter {{\n}}\n{LOADED}table inet other {{\n}}\n", "good"),
        ("", "failed"),
        ("table inet mcpwrap2 {\n}\n", "failed"),
    ],
)
def test_rules_are_loaded_if_mcpwraps_table_is(
    monkeypatch: pytest.MonkeyPatch, ruleset: str, state: str
) -> None:
    monkeypatch.setattr(nft_table, "run", nft(ruleset))
    assert state_of("packet rules") == state


@pytest.mark.parametrize(
    "said", ["timed out after 90 seconds", "[Errno 2] No such file or directory: 'nft'"]
)
def test_if_nft_fails_the_result_is_unknown(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    def run(*argv: str) -> str:
        raise ToolError(said, where=" ".join(argv), fix="see what it says", code="E-TOOL-FAILED")

    monkeypatch.setattr(nft_table, "run", run)
    assert state_of("packet rules") == "unknown"


def test_a_systemd_that_does_not_answer_leaves_the_other_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def properties(*_: object) -> dict[str, dict[str, str]]:
        raise ToolError(
            "timed out", where="systemctl show", fix="see what it says", code="E-TOOL-FAILED"
        )

    monkeypatch.setattr(machine_checks, "properties", properties)
    assert (state_of(GATE), state_of("packet rules")) == ("unknown", "good")


@pytest.mark.parametrize(("mode", "state"), [(0o644, "good"), (0o666, "failed")])
def test_a_policy_must_be_a_file_of_root_too(tmp_path: Path, mode: int, state: str) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1")
    policy.chmod(mode)
    found = next(
        c for c in machine_checks.machine(CONFIG) if c.what in {"root's files", str(policy)}
    )
    assert (found.state, "(mode 0666)" in found.found) == (state, state == "failed")
