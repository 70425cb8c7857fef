"""Root writes accepted rules whole, and only over the file that was shown."""

from pathlib import Path

import pytest

from mcpwrap.as_root import accepted_rules as as_root
from mcpwrap.as_root import gate_reload
from mcpwrap.config.policy.errors import PolicyError
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux.systemd.systemctl import ToolError
from mcpwrap.machine import accepted_rules, policy_files

RULES = "version: 1\nrules:\n  - {name: accepted-1, tool: t, action: allow, instead_of: ask}\n"
GIVEN = f"{RULES}\0- cases\n".encode()
NONE = accepted_rules.digest("")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "policy.d").mkdir()
    monkeypatch.setattr(policy_files, "FILE", str(tmp_path / "policy.yaml"))
    monkeypatch.setattr(policy_files, "FOLDER", str(tmp_path / "policy.d"))
    monkeypatch.setattr(accepted_rules, "FOLDER", str(tmp_path / "policy.d"))
    monkeypatch.setattr(accepted_rules, "RULES", str(tmp_path / "policy.d/accepted.yaml"))
    monkeypatch.setattr(accepted_rules, "CASES", str(tmp_path / "policy-cases/accepted.yaml"))
    return tmp_path


def gate_is(monkeypatch: pytest.MonkeyPatch, state: str, *, reloads: bool = True) -> list[str]:
    asked: list[str] = []

    def run(*argv: str) -> str:
        asked.append(argv[1])
        if not reloads:
            raise ToolError("job failed", where="systemctl", fix="", code="E-TOOL-FAILED")
        return ""

    found = {"mcpwrap-gate.service": {"ActiveState": state}}
    monkeypatch.setattr(gate_reload, "properties", lambda *_: found)
    monkeypatch.setattr(gate_reload, "run", run)
    return asked


def test_a_gate_that_runs_is_reloaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = gate_is(monkeypatch, "active")
    as_root.write(NONE, GIVEN)
    assert asked == ["reload"]
    assert capsys.readouterr().out == "accepted, from now: the gate has read it\n"
    assert (folder / "policy.d/accepted.yaml").read_text() == RULES
    assert (folder / "policy-cases/accepted.yaml").read_text() == "- cases\n"


def test_a_gate_that_cannot_be_reloaded_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate_is(monkeypatch, "active", reloads=False)
    with pytest.raises(McpwrapError, match="is written, and the gate did not read it"):
        as_root.write(NONE, GIVEN)
    assert (folder / "policy.d/accepted.yaml").exists()


def test_a_file_that_changed_meanwhile_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate_is(monkeypatch, "inactive")
    as_root.write(NONE, GIVEN)
    with pytest.raises(UsageError) as caught:
        as_root.write(NONE, GIVEN.replace(b"-1", b"-2"))
    assert caught.value.code == "E-POLICY-ACCEPTED-CHANGED"
    assert (folder / "policy.d/accepted.yaml").read_text() == RULES
    as_root.write(accepted_rules.digest(RULES), GIVEN.replace(b"-1", b"-2"))
    assert "accepted-2" in (folder / "policy.d/accepted.yaml").read_text()


@pytest.mark.parametrize(
    "given",
    [b"rules: []\0", b"version: 1\nrules:\n  - {name: ask, tool: t, action: block}\n\0"],
)
def test_a_policy_with_errors_is_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: bytes
) -> None:
    gate_is(monkeypatch, "active")
    (folder / "policy.yaml").write_text(
        "version: 1\nrules:\n  - {name: ask, tool: t, action: allow_with_approval}\n"
    )
    with pytest.raises(PolicyError):
        as_root.write(NONE, given)
    assert list((folder / "policy.d").iterdir()) == []
    assert not (folder / "policy-cases").exists()
