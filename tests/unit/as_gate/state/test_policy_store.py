"""Missing policy files: the policy in force stays, and is not replaced by a smaller one."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.core.policy.rules import Rule, decode
from mcpwrap.core.wire.server_files import AccessList, AccessRule
from mcpwrap.errors import UsageError
from mcpwrap.machine import policy_files

RULE = "version: 1\nrules: [{name: NAME, server: SERVER, tool: '*', action: block}]"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make a policy folder, with one file for each of two servers."""
    monkeypatch.setattr(policy_files, "FILE", str(tmp_path / "policy.yaml"))
    monkeypatch.setattr(policy_files, "FOLDER", str(tmp_path / "policy.d"))
    (tmp_path / "policy.d").mkdir()
    for name in ("git", "time"):
        write(tmp_path / "policy.d", name)
    return tmp_path / "policy.d"


def write(folder: Path, name: str) -> None:
    (folder / f"{name}.yaml").write_text(RULE.replace("NAME", name).replace("SERVER", name))


def recorded(folder: Path) -> Callable[[], AccessList]:
    """Return the access list as `apply` writes it with both files."""
    by_server = {
        name: AccessRule(uids=(), gids=(), inherits=(), policy=(str(folder / f"{name}.yaml"),))
        for name in ("git", "time")
    }
    by_server["other"] = AccessRule(uids=(), gids=(), inherits=())
    return lambda: AccessList(by_server=by_server)


def missing(policies: Policies, guests: Callable[[], AccessList]) -> list[str]:
    """Return the names of refused servers."""
    return [name for name, one in guests().by_server.items() if policies.missing(one)]


def test_a_policy_in_force_stays(folder: Path) -> None:
    policies, guests = Policies(), recorded(folder)
    assert policies.reload(guests)
    before = policies.describe()
    (folder / "git.yaml").unlink()
    assert not policies.reload(guests)
    assert policies.problem.startswith(f"{folder}/git.yaml: gone")
    assert policies.describe() == f"{before}, not that of the files"
    assert missing(policies, guests) == []
    assert len(rules_of(policies, "git")) == 1


def test_a_gate_that_starts_without_a_file_refuses_its_servers_only(folder: Path) -> None:
    guests = recorded(folder)
    (folder / "git.yaml").unlink()
    policies = Policies()
    policies.reload(guests)
    assert missing(policies, guests) == ["git"]
    assert "git.yaml: gone" in policies.what_vanished()
    write(folder, "git")  # it exists again, and was not read yet
    assert missing(policies, guests) == ["git"]
    policies.reload(guests)
    assert missing(policies, guests) == []
    assert len(rules_of(policies, "git")) == 1


def test_after_apply_they_are_served_without_it(folder: Path) -> None:
    (folder / "git.yaml").unlink()
    policies, guests = Policies(), recorded(folder)
    policies.reload(guests)
    time = guests().by_server["time"]
    after = AccessList(by_server={"git": AccessRule(uids=(), gids=(), inherits=()), "time": time})
    assert missing(policies, lambda: after) == []
    policies.reload(lambda: after)
    assert policies.what_vanished() == ""


def test_a_recorded_file_that_was_not_read_yet_is_not_missing(folder: Path) -> None:
    (folder / "git.yaml").unlink()
    policies, guests = Policies(), recorded(folder)
    policies.reload()  # before `apply` recorded it
    write(folder, "git")
    assert missing(policies, guests) == []
    (folder / "git.yaml").unlink()
    assert missing(policies, guests) == ["git"]


def test_a_folder_that_others_can_write_is_refused(folder: Path) -> None:
    policies = Policies()
    folder.chmod(0o777)
    for path in folder.iterdir():
        path.unlink()
    assert not policies.reload()
    assert policies.compiled("git") is None
    assert "(mode 0777)" in policies.why_none
    folder.chmod(0o755)
    assert policies.reload()  # the twin


def test_without_an_access_list_missing_files_are_unknown(folder: Path) -> None:
    def unreadable() -> AccessList:
        raise UsageError("others can write it", where="gate.json", fix="", code="E-FILE-ACCESS")

    policies = Policies()
    assert not policies.reload(unreadable)
    assert policies.compiled("git") is None


def rules_of(policies: Policies, server: str) -> tuple[Rule, ...]:
    """Return the rules that a session receives."""
    with os.fdopen(policies.sealed_copy(server), "rb") as file:
        file.seek(0)
        return decode(file.read()).rules
