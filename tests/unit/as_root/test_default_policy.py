"""`mcpwrap policy default` as root: the file is written whole, and the gate reads it."""

from pathlib import Path

import pytest

from mcpwrap.as_root import default_policy, gate_reload
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine import policy_files


class Systemd:
    """systemd with a gate in a state; it can fail to reload it."""

    def __init__(self) -> None:
        self.state = "active"
        self.done: list[str] = []
        self.fails = False

    def properties(self, units: list[str], names: list[str]) -> dict[str, dict[str, str]]:
        return {unit: dict.fromkeys(names, self.state) for unit in units}

    def run(self, *argv: str) -> str:
        self.done.append(" ".join(argv[1:]))
        if self.fails:
            raise ToolError("no bus", where="systemctl", fix="fix it", code="E-TOOL-FAILED")
        return ""


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    (tmp_path / "policy.d").mkdir()
    monkeypatch.setattr(policy_files, "FILE", str(tmp_path / "policy.yaml"))
    monkeypatch.setattr(policy_files, "FOLDER", str(tmp_path / "policy.d"))
    own = str(tmp_path / "policy.d/default-policy.yaml")
    monkeypatch.setattr(policy_files, "DEFAULT_POLICY_FILE", own)
    made = Systemd()
    monkeypatch.setattr(gate_reload, "properties", made.properties)
    monkeypatch.setattr(gate_reload, "run", made.run)
    return made


def disabled() -> list[str]:
    return [one.rule for one in parse_policy(policy_files.policy_files()).disabled]


def test_a_change_is_in_force_at_once(systemd: Systemd, capsys: pytest.CaptureFixture[str]) -> None:
    default_policy.change("disable", "force-push", "git")
    assert disabled() == ["force-push"]
    assert systemd.done == ["reload -- mcpwrap-gate.service"]
    assert "default.force-push is disabled for git, from now: " in capsys.readouterr().out
    default_policy.change("enable", "force-push", "git")
    assert disabled() == []


def test_a_gate_that_does_not_run_reads_it_later(
    systemd: Systemd, capsys: pytest.CaptureFixture[str]
) -> None:
    systemd.state = "inactive"
    default_policy.change("disable", "*", "*")
    assert systemd.done == []
    assert "from the gate's next start" in capsys.readouterr().out
    assert not parse_policy(policy_files.policy_files()).has_default_policy


def test_a_reload_that_fails_is_reported(systemd: Systemd) -> None:
    systemd.fails = True
    with pytest.raises(McpwrapError, match="is written, and the gate did not read it") as raised:
        default_policy.change("disable", "limits", "*")
    assert raised.value.exit_code == 1
    assert disabled() == ["limits"]


def test_a_policy_with_errors_changes_nothing(systemd: Systemd, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("version: 2\n")
    with pytest.raises(McpwrapError, match="not a supported version"):
        default_policy.change("disable", "limits", "*")
    assert systemd.done == []
    assert list((tmp_path / "policy.d").iterdir()) == []
