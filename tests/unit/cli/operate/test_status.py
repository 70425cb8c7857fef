"""`mcpwrap status`: what it reports beside the servers' states, and the fix for a closed socket."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpwrap.cli.operate import status
from mcpwrap.cli.operate.hub_status import HubMemberStatus
from mcpwrap.cli.operate.status import ServerStatus
from mcpwrap.core.approval.document import Question
from mcpwrap.core.wire.panic_file import Panic
from mcpwrap.errors import UsageError
from mcpwrap.machine import observer, planning, policy_files
from mcpwrap.plan.registry import Allocation, Registry
from tests.unit.cli.scripted_gate import ScriptedGate, question
from tests.unit.plain_account import without_root


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a policy, and a folder for more policies."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "policy.d").mkdir()
        (folder / "policy.yaml").write_text("version: 1")
        monkeypatch.setattr(policy_files, "FILE", f"{made}/policy.yaml")
        monkeypatch.setattr(policy_files, "FOLDER", f"{made}/policy.d")
        monkeypatch.setattr(observer, "expect_roots_own", lambda: None)
        monkeypatch.setattr(planning, "vanished", list)
        yield folder


def expect(flaw: str) -> None:
    assert "".join(status._flaws()[:1]).partition(": ")[2].startswith(flaw)
    assert flaw or status._flaws() == []


@pytest.mark.parametrize("name", ["policy.yaml", "policy.d"])
def test_what_others_may_not_read_is_no_flaw(folder: Path, name: str) -> None:
    path = folder / name
    path.chmod(path.stat().st_mode & ~0o077)

    def read() -> None:
        with pytest.raises(
            UsageError, match="Permission denied"
        ) as error:  # this is what `plan` prints
            policy_files.policy_files()
        assert error.value.where == str(path)

    without_root(read)
    without_root(lambda: expect(""))
    path.chmod(path.stat().st_mode | 0o022)  # the twin
    expect("accounts other than root can ")


@pytest.mark.parametrize(
    ("stopped", "fix"),
    [
        (Panic(), "`sudo mcpwrap restart git`, or for all `sudo mcpwrap apply`"),
        (Panic(names=("time",)), "`sudo mcpwrap restart git`, or for all `sudo mcpwrap apply`"),
        (Panic(names=("git",)), "`sudo mcpwrap resume git`"),
        (Panic(everything=True), "`sudo mcpwrap resume`"),
    ],
)
def test_a_socket_that_panic_has_closed_is_opened_by_resume(
    monkeypatch: pytest.MonkeyPatch, stopped: Panic, fix: str
) -> None:
    monkeypatch.setattr(observer, "panic", lambda: stopped)
    found = status._state("git", {"ActiveState": "inactive"}, {"ActiveState": "inactive"})
    assert found == ("stopped", f"its socket does not listen: {fix}")
    # The twin: a socket that `apply` has opened meanwhile.
    found = status._state("git", {"ActiveState": "active"}, {"ActiveState": "inactive"})
    assert found == ("ready", "starts on first use")


def _question_on(server: str) -> Question:
    return Question(
        agent_uid=0,
        server=server,
        method="pins",
        target="1 new",
        definition="",
        params={},
        policy="",
    )


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("git", ["definitions of 'git' are held back (1 new): `mcpwrap tools diff git`"]),
        ("sqlite", []),  # a call waits for approval, and no definition
        ("tools", ["definitions of 'git' are held back (1 new): `mcpwrap tools diff git`"]),
    ],
)
def test_a_server_whose_tools_are_hidden_is_named(
    gate: ScriptedGate,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    lines: list[str],
) -> None:
    gate.put("1", question(x=1))
    gate.put("2", _question_on("git"))
    gate.put("3", _question_on("other"))
    registry = Registry(by_name=dict.fromkeys(("git", "sqlite", "tools"), Allocation(uid=1)))
    monkeypatch.setattr(observer, "registry", lambda: registry)
    monkeypatch.setattr(observer, "server_names", lambda: list(registry.by_name))
    monkeypatch.setattr(observer, "panic", Panic)
    monkeypatch.setattr(status, "_flaws", list)
    monkeypatch.setattr(status, "_gate_listens", lambda: True)
    monkeypatch.setattr(status, "_with_members", lambda _, names: [_row(one) for one in names])
    assert status.command.main([name], standalone_mode=False) == 0
    assert capsys.readouterr().err.splitlines() == lines
    assert status.command.main([name, "--json"], standalone_mode=False) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["held_back"] == ("1 new" if name == "git" else "")
    gate.hang_up()
    assert status.command.main([name], standalone_mode=False) == 0
    assert capsys.readouterr().err == ""


def _row(name: str) -> ServerStatus:
    member = HubMemberStatus(name="git", namespace="git", state="ready", status="", tools=None)
    return ServerStatus(
        name=name, account=f"mcpw-{name}", uid=1, state="ready", status="", sessions=0,
        memory_bytes=None, refused=None, members=(member,) if name == "tools" else (),
    )  # fmt: skip
