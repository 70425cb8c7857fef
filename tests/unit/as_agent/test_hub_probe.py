"""Checks of a hub by its answers: members, and the limits of each agent that is found."""

from pathlib import Path

import pytest

from mcpwrap.as_agent.hub_probe import checks
from mcpwrap.core.doctor import Check
from mcpwrap.core.protocol.json_value import Json

ALL = "loaded 3 tools from 2/2 servers\ngit: 2 tools; ready\nfs: 1 tools; ready"


def tool(name: str, schema: dict[str, Json] | None = None) -> dict[str, Json]:
    return {"name": name, "inputSchema": schema or {"type": "object"}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Create a home with files of Claude Code, Gemini CLI and Cursor."""
    for name in (".claude.json", ".gemini/settings.json", ".cursor/mcp.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path


def found(home: Path, *tools: Json, status: str = ALL, hub: str = "tools") -> dict[str, Check]:
    return {one.what: one for one in checks(hub, str(home), list(tools), status)}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (ALL, "good"),
        ("loaded 2 tools from 1/2 servers\ngit: 2 tools", "warning"),
        ("loaded 3 tools from 2/2 servers; fs: it died", "warning"),  # its last list is known
        ("", "warning"),
        ("another text", "warning"),
    ],
)
def test_members_are_all_there_or_not(home: Path, status: str, state: str) -> None:
    assert found(home, status=status)["tools: members"].state == state


def test_text_of_members_cannot_begin_a_line(home: Path) -> None:
    check = found(home, status="loaded 1 tools from 1/1 servers\ngit: \x1b[2J")["tools: members"]
    assert "\x1b" not in check.found
    assert "\n" not in check.found


def test_each_agent_here_has_a_check_and_no_other(home: Path) -> None:
    names = {"tools: Claude Code", "tools: Gemini CLI", "tools: Cursor"}
    assert found(home, tool("git__log")).keys() == {"tools: members", *names}
    assert found(home / "empty", tool("git__log")).keys() == {"tools: members"}


@pytest.mark.parametrize(
    ("length", "over"),
    [
        (52, set()),
        (53, {"Claude Code"}),  # mcp__tools__, and 64
        (54, {"Claude Code", "Gemini CLI"}),  # mcp_tools_, and 63
        (56, {"Claude Code", "Gemini CLI", "Cursor"}),  # tools, and 60
    ],
)
def test_a_name_over_the_limit_of_a_model(home: Path, length: int, over: set[str]) -> None:
    rows = found(home, tool("a"), tool("n" * length))
    warned = {what.removeprefix("tools: ") for what, row in rows.items() if row.state == "warning"}
    assert warned == over


def test_too_many_tools_for_one_agent(home: Path) -> None:
    rows = found(home, *(tool(f"t{number}") for number in range(81)))
    assert rows["tools: Cursor"].state == "warning"
    assert rows["tools: Claude Code"].state == "good"
    assert found(home, *[tool("t")] * 80)["tools: Cursor"].state == "good"


def test_tools_that_a_model_refuses_are_counted_apart(home: Path) -> None:
    rows = found(home, tool("a"), tool("b", {"anyOf": []}))
    assert "1 tools, " in rows["tools: Claude Code"].found
    assert "1 are left out" in rows["tools: Claude Code"].found
    assert "2 tools, " in rows["tools: Cursor"].found


@pytest.mark.parametrize("tools", [None, {}, [1, "x"], [[]], [{}]])
def test_an_answer_of_another_form(home: Path, tools: object) -> None:
    assert list(checks("tools", str(home), tools, ALL))
