"""`mcpwrap status` of hubs: the states of their members, and what these listed last."""

from pathlib import Path

import msgspec
import pytest

from mcpwrap.cli.operate import hub_status, status
from mcpwrap.cli.operate.hub_status import HubMemberStatus
from mcpwrap.cli.operate.status import ServerStatus
from mcpwrap.core.wire.hub.hub_catalogue import Definitions
from mcpwrap.core.wire.server_files import HubMemberSpec
from mcpwrap.linux import accounts
from mcpwrap.machine import hub_members
from mcpwrap.plan.registry import Allocation

MEMBERS = (
    HubMemberSpec(name="git", namespace="g"),
    HubMemberSpec(name="gone", namespace=""),
)
LISTED = Definitions(tools=(msgspec.Raw(b'{"name":"a"}'), msgspec.Raw(b'{"name":"b"}')))


@pytest.fixture
def definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Definitions of `git` for two agents, and files that the gate did not write."""
    for uid, found in (("1000", LISTED), ("1001", Definitions())):
        (tmp_path / uid).mkdir()
        (tmp_path / uid / "git.json").write_bytes(msgspec.json.encode(found))
    (tmp_path / "1000" / "odd.json").write_text("{")
    (tmp_path / "1000" / "link.json").symlink_to(tmp_path / "1000" / "git.json")
    monkeypatch.setattr(hub_members, "DEFINITIONS", tmp_path)
    monkeypatch.setattr(accounts, "name_of", {1000: "alice"}.get)
    return tmp_path


@pytest.mark.parametrize(
    ("member", "tools"),
    [
        ("git", {"alice": 2, "1001": 0}),  # an account that was deleted has its UID
        ("odd", {}),
        ("link", {}),
        ("silent", {}),
    ],
)
def test_tools_are_counted_by_agent(definitions: Path, member: str, tools: dict[str, int]) -> None:
    assert hub_members.tools_by_agent(member) == tools


def test_a_machine_on_which_nothing_was_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_members, "DEFINITIONS", tmp_path / "none")
    assert hub_members.tools_by_agent("git") == {}


def row(name: str, state: str = "ready") -> ServerStatus:
    return ServerStatus(
        name=name, account=f"mcpw-{name}", uid=1, state=state, status="s", sessions=0,
        memory_bytes=None, refused=None,
    )  # fmt: skip


def test_a_hub_has_its_members_under_it(definitions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def statuses(known: dict[str, Allocation]) -> list[ServerStatus]:
        asked.extend(known)
        return [row(name, "failed" if name == "git" else "ready") for name in known]

    monkeypatch.setattr(status, "statuses", statuses)
    monkeypatch.setattr(hub_members, "members_of", lambda name: MEMBERS if name == "tools" else ())
    known = dict.fromkeys(("git", "other", "tools"), Allocation(uid=1))
    [hub] = status._with_members(known, ["tools"])
    assert asked == ["git", "tools"]  # a member's state is needed, although only the hub is shown
    assert hub.members == (
        HubMemberStatus(
            name="git", namespace="g", state="failed", status="s", tools={"alice": 2, "1001": 0}
        ),
        HubMemberStatus(
            name="gone", namespace="", state="missing", status=hub_status._GONE, tools={}
        ),
    )
    assert [one.members for one in status._with_members(known, ["git", "other"])] == [(), ()]


@pytest.mark.parametrize(
    ("tools", "text"),
    [
        (None, "-"),
        ({}, "-"),
        ({"alice": 3}, "3"),
        ({"alice": 3, "bob": 3}, "3"),
        ({"alice": 3, "bob": 1}, "3 (alice), 1 (bob)"),
    ],
)
def test_the_column_of_tools(tools: dict[str, int] | None, text: str) -> None:
    one = HubMemberStatus(name="git", namespace="g", state="ready", status="", tools=tools)
    assert hub_status._tools(one) == text
