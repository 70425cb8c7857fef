"""Text of a request: complete, and nothing that an agent wrote controls the terminal."""

import pytest
from msgspec.structs import replace

from mcpwrap.cli.approvals.text import ON, PageLine, cell, folded, page, pause, span, tool_of
from mcpwrap.core.approval.document import Question, digest, document
from mcpwrap.core.wire.approval_socket import Paused, Pending
from mcpwrap.gate_client.approvals import QuestionDetails
from tests.unit.cli.scripted_gate import NOW, question

PENDING = Pending(
    id="7f3a", digest="", size=1, agent_uid=5, server="lies", session="1-2", method="x",
    target="lies", rule="no-delete", message="Think.\n\x1b[2J", asked_at=NOW, expires_at=NOW + 300,
    times=3, waiting=1, may="yes",
)  # fmt: skip


def lines_of(asked: Question, before: Question | None = None) -> list[str]:
    shown = document(asked)
    seen = QuestionDetails(digest(shown), len(shown), asked, before)
    return [line.text for line in page(PENDING, seen)]


def test_what_is_bound_is_what_is_shown_and_not_what_the_list_says() -> None:
    asked = question(query="DELETE FROM t")
    lines = lines_of(asked)
    assert "agent    root (UID 0)" in lines
    assert "server   sqlite, session 1-2" in lines
    assert "tool     write_query" in lines
    assert f"sha256   {digest(document(asked))}" in lines
    assert lines[lines.index("arguments") :][:2] == ["arguments", '  query: "DELETE FROM t"']
    assert "No call of this tool was approved before." in lines
    assert not any("lies" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("a\x1b[2Jb", r"a\u001b[2Jb"),  # JSON's own escape
        ("a\x9bb", r"a\x9bb"),  # C1, which JSON leaves
        ("abc\u202edcba", r"abc\u202edcba"),
        ("a\u200bb", r"a\u200bb"),
        ("a\tc\r", r"a\tc\r"),
        ("[bold]b[/]", "[bold]b[/]"),  # rich markup has no effect
    ],
)
def test_nothing_in_it_acts(value: str, seen: str) -> None:
    assert f'  query: "{seen}"' in lines_of(question(query=value))
    named = lines_of(question(**{value: 1}))
    assert f'  ["{seen}"]: 1' in named


def test_texts_of_rule_and_tool_stay_on_their_line() -> None:
    lines = lines_of(replace(question(), target="a\nb\x1b"))
    assert r"tool     a\nb\u001b" in lines
    assert r"rule     no-delete: Think.\n\x1b[2J" in lines


def test_what_is_approved_besides_the_arguments_is_shown() -> None:
    asked = replace(question(), params={"name": "w", "arguments": {}, "task": {"ttl": 5}})
    lines = lines_of(asked)
    assert '      "ttl": 5' in lines[lines.index("params") :]
    other = replace(question(), method="resources/read", target="f:x", params={"uri": "f:x"})
    lines = lines_of(other)
    assert "tool     resources/read f:x" in lines
    assert '  uri: "f:x"' in lines
    assert "params" in lines
    assert "arguments" not in lines


def test_it_is_compared_with_the_last_approved_call() -> None:
    before, now = question(query="a", limit=1), question(query="b", limit=1)
    lines = lines_of(now, before)
    assert "@@ -1,2 +1,2 @@" in lines
    assert not any("\n" in line for line in lines)
    assert '- query: "a"' in lines
    assert '+ query: "b"' in lines
    assert "  the same arguments" in lines_of(now, now)
    assert "The server has changed the tool's description since." not in lines
    changed = lines_of(now, replace(before, definition="d0"))
    assert "The server has changed the tool's description since." in changed
    said = "The server has changed this tool since it first listed it."
    assert said in lines_of(replace(now, definition="d1"))
    assert said not in lines_of(replace(now, definition=""))


def test_a_line_that_goes_on_is_marked_so_that_no_text_passes_as_another_line() -> None:
    fake = "x" * 16 + '  "drop": false'
    text = folded([PageLine(f"  {fake}"), PageLine(""), PageLine("  b")], 20)
    assert text.plain.split("\n") == [f"  {'x' * 16}  ", f'{ON}"drop": false', "", "  b", ""]
    wide = folded([PageLine("日" * 30)], 20).plain.split("\n")
    assert wide == ["日" * 10, f"{ON}{'日' * 9}", f"{ON}{'日' * 9}", f"{ON}{'日' * 2}", ""]


def test_a_tool_differs_visibly_from_one_that_looks_like_it() -> None:
    cyrillic = "\u0441\u043e\u0440\u0443"
    asked = replace(question(), target=cyrillic)
    assert f"tool     {cyrillic} (\\u0441\\u043e\\u0440\\u0443)" in lines_of(asked)
    assert "tool     copy" in lines_of(replace(question(), target="copy"))


def test_columns_are_short_and_on_one_line() -> None:
    assert cell("a\nb") == r"a\nb"
    assert len(cell("x" * 99)) == 40
    assert tool_of(replace(question(), method="tools/list", target="")) == "tools/list"
    assert [span(s) for s in (-5, 0, 59.9, 60, 3605)] == ["0s", "0s", "59s", "1m 00s", "60m 05s"]
    one = Paused(agent_uid=0, server="sqlite", why="20 denials\n", until=NOW)
    assert pause(one).startswith("paused: root on sqlite until ")
    assert pause(one).endswith(r", 20 denials\n")
