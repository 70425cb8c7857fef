"""Session state: harmless texts for the journal, and bounded memory."""

import pytest

from mcpwrap.core.gate import session as gate_session
from mcpwrap.core.gate.ports import NO_APPROVALS
from mcpwrap.core.gate.session import SessionState, subject
from mcpwrap.core.text.sanitise import shown
from tests.unit.core.scripted import ScriptedAudit, ScriptedLimits, ScriptedPolicy


@pytest.mark.parametrize(
    ("untrusted", "text"),
    [
        ("read_query", "read_query"),
        ("a b", "a b"),
        ("\x1b[31m\r\n\t\0", r"\x1b[31m\r\n\t\x00"),
        ("\\x1b", r"\\x1b"),
        ("é\u202e😀", r"\xe9\u202e\U0001f600"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 80 + "..."),
        ("\n" * 41, r"\n" * 40 + "..."),
    ],
)
def test_a_text_from_outside_is_shown_harmless(untrusted: str, text: str) -> None:
    assert shown(untrusted) == text


def test_a_part_of_a_subject_cannot_look_like_two() -> None:
    assert subject("tools/call", "a id=1: rule x", 7) == r"tools/call a\x20id=1:\x20rule\x20x id=7"
    assert subject("ping") == "ping"


def test_of_many_tasks_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_session, "MAX_TASKS", 2)
    session = SessionState(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit(), NO_APPROVALS)
    for task in ("t1", "t2", "t1", "t3"):
        session.remember_task(task, f"first tool of {task}")
    assert session.tool_by_task == {"t2": "first tool of t2", "t3": "first tool of t3"}


def listing(session: SessionState, *tools: tuple[str, str]) -> None:
    session.remember_tools([{"name": name, "description": text} for name, text in tools])


def test_a_tool_is_bound_once_it_is_another_than_it_was_first() -> None:
    session = SessionState(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit(), NO_APPROVALS)
    assert session.definition_of("drop") == ""
    session.remember_tools(None)
    listing(session, ("drop", "Drops."), ("read", "Reads."))
    assert session.definition_of("drop") == ""
    listing(session, ("drop", "Drops all."))
    changed = session.definition_of("drop")
    assert len(changed) == 64
    assert session.definition_of("read") == ""
    listing(session, ("drop", "Drops more."))
    assert session.definition_of("drop") not in {"", changed}
    listing(session, ("drop", "Drops."))
    assert session.definition_of("drop") == ""


def test_of_many_tools_none_changes_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server cannot evict the first definition of a tool by listing very many others."""
    monkeypatch.setattr(gate_session, "MAX_TOOLS", 2)
    session = SessionState(ScriptedPolicy(), ScriptedLimits(), ScriptedAudit(), NO_APPROVALS)
    listing(session, ("drop", "Drops."), ("read", "Reads."), ("x", "1"))
    assert [session.definition_of(tool) for tool in ("drop", "read", "x", "y")] == [""] * 4
    listing(session, ("y", "2"), ("drop", "Drops all."))
    assert session.definition_of("read") == ""
    assert "" not in {session.definition_of(tool) for tool in ("drop", "x", "y", "z")}
    assert len(session.tools) == 3


def test_a_text_may_be_shown_at_more_length() -> None:
    assert shown("\n" * 101, 200) == r"\n" * 100 + "..."
