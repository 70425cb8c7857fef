"""Contexts of servers, from the access list that root wrote."""

from pathlib import Path

from mcpwrap.core.policy.compiled import ServerContext
from mcpwrap.core.wire.server_files import AccessList, AccessRule, HubMemberRule, encode
from mcpwrap.machine.server_contexts import applied_contexts

GIT = AccessRule(uids=(), gids=(), inherits=(), workspaces=("/home/a/p",))
ALL = AccessRule(uids=(), gids=(), inherits=(), hub=(HubMemberRule(name="git", namespace="git"),))


def test_workspaces_and_hubs_are_known(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    path.write_text(encode(AccessList(by_server={"git": GIT, "all": ALL})))
    assert applied_contexts(str(path)) == {
        "git": ServerContext(workspaces=("/home/a/p",)),
        "all": ServerContext(is_hub=True),
    }


def test_without_a_list_of_this_version_there_is_none(tmp_path: Path) -> None:
    assert applied_contexts(str(tmp_path / "gate.json")) == {}
    (tmp_path / "gate.json").write_text('{"newer": 1}')
    assert applied_contexts(str(tmp_path / "gate.json")) == {}
