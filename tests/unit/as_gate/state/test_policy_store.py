"""Missing policy files: the policy in force stays, and is not replaced by a smaller one."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcpwrap.as_gate.state.policy_store import Policies
from mcpwrap.as_gate.state.refusal import RefusalError
from mcpwrap.core.policy.compiled import compile_policy
from mcpwrap.core.policy.rules import Policy, Rule, decode, digest
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.server_files import AccessList, AccessRule, HubMemberRule
from mcpwrap.errors import UsageError
from mcpwrap.machine import policy_files
from mcpwrap.machine.default_policy import shipped

DELETE: dict[str, Json] = {"name": "delete_project", "arguments": {}}
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


def test_agents_read_the_rules_of_their_server_alone(folder: Path) -> None:
    (folder / "both.yaml").write_text(
        RULE.replace("NAME", "both").replace("SERVER", "[git, secret-*]")
    )
    policies, guests = Policies(), recorded(folder)
    policies.reload(guests)
    rule = guests().by_server["git"]
    seen = for_agents(policies, rule)
    assert [(one.name, one.servers) for one in seen.rules] == [
        ("both", ("git",)),
        ("git", ("git",)),
    ]
    assert seen.default_rules
    # The members of a hub have the default policy, and a hub has not.
    hub = replace(rule, hub=(HubMemberRule(name="time", namespace="t"),))
    seen = for_agents(policies, hub)
    assert (seen.default_rules, seen.default_limits) == ((), ())
    assert len(seen.rules) == 2
    (folder / "git.yaml").unlink()
    fresh = Policies()
    fresh.reload(guests)
    with pytest.raises(RefusalError, match="E-POLICY-FILE-MISSING"):
        for_agents(fresh, rule)


def for_agents(policies: Policies, rule: AccessRule) -> Policy:
    with os.fdopen(policies.copy_for_agents("git", rule), "rb") as file:
        file.seek(0)
        return decode(file.read())


def test_the_default_policy_is_in_force_without_any_file(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    policies = Policies()
    assert policies.reload()
    assert judged(policies, "git") == "default.delete-tools"
    assert policies.digest == digest(shipped.extended(Policy()))
    (folder / "off.yaml").write_text("version: 1\ndefault_policy: disabled\n")
    assert policies.reload()
    assert judged(policies, "git") == ""


def test_the_default_policy_does_not_take_the_place_of_a_file_that_is_gone(folder: Path) -> None:
    guests = recorded(folder)
    policies = Policies()
    (folder / "git.yaml").unlink()
    policies.reload(guests)
    git, time = (guests().by_server[name] for name in ("git", "time"))
    with pytest.raises(RefusalError, match="E-POLICY-FILE-MISSING"):
        policies.rules_for("git", git)
    assert policies.rules_for("time", time).judge("tools/call", DELETE).rule == "time"  # the twin


def test_a_hub_is_compiled_as_one(folder: Path) -> None:
    policies = Policies()
    policies.reload()
    plain = AccessRule(uids=(), gids=(), inherits=())
    hub = replace(plain, hub=(HubMemberRule(name="git", namespace="git"),))
    assert policies.rules_for("other", plain).judge("tools/call", DELETE).rule
    assert policies.rules_for("other", hub).judge("tools/call", DELETE).rule == ""
    last = policies.compiled("other")
    assert last is not None
    assert last.context.is_hub  # asked without a context, which limits do not need
    assert policies.rules_for("other", hub) is last


def test_a_session_receives_the_default_policys_rules(folder: Path) -> None:
    policies = Policies()
    (folder / "off.yaml").write_text(
        "version: 1\ndefault_policy: {disabled: [{rule: delete-tools, server: git}]}\n"
    )
    policies.reload()
    for server, has_it in {"git": False, "time": True}.items():
        with os.fdopen(policies.sealed_copy(server), "rb") as file:
            file.seek(0)
            part = decode(file.read())
        assert ("default.delete-tools" in [rule.name for rule in part.default_rules]) is has_it
        compiled = policies.compiled(server)
        assert compiled is not None
        own = compile_policy(part, server)
        assert own.judge("tools/call", DELETE) == compiled.judge("tools/call", DELETE)


def judged(policies: Policies, server: str) -> str:
    """Return the rule that decides on a call of a tool that deletes."""
    compiled = policies.compiled(server)
    assert compiled is not None
    return compiled.judge("tools/call", DELETE).rule


def rules_of(policies: Policies, server: str) -> tuple[Rule, ...]:
    """Return the rules that a session receives."""
    with os.fdopen(policies.sealed_copy(server), "rb") as file:
        file.seek(0)
        return decode(file.read()).rules
