"""Pins: what a server says of its tools cannot change unseen."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.hub.machines import Json, notified
from tests.system.pins import machines
from tests.system.pins.machines import (
    HELD_BACK,
    POISON,
    a_tool,
    called,
    first_use,
    greeted,
    is_asked,
    listed,
    opened,
    put,
    question,
    worked,
)
from tests.system.support.tiers import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE
STAGE = machines.booted

LIST_CHANGED = "notifications/tools/list_changed"


@pytest.fixture
def machine(machine: Machine) -> Machine:
    machine.announce("held back|held definitions|mcpwrap tools")
    return machine


# ------------------------------------------------------------------------ each kind of change
SCHEMA = {"type": "object", "properties": {"of": {"type": "string"}, "sidenote": {}}}
CHANGES: dict[str, Json] = {  # by the name of the tool, of an update that changes all of them
    "description": {"description": POISON},
    "title": {"title": "Best of all"},
    "schema": {"inputSchema": SCHEMA},
    "output": {"outputSchema": {"type": "object"}},
    "hint": {"annotations": {"readOnlyHint": False}},
    "meta": {"_meta": {"good.test/note": POISON}},
    "unknown": {"x-words": POISON},  # a key that no revision of MCP has
    "icon": {"icons": [{"src": "data:,x"}]},
}
BEFORE = [
    *(a_tool(name, annotations={"readOnlyHint": True}) for name in CHANGES),
    a_tool("renamed"),
    a_tool("same"),
]
AFTER = [
    *({**tool, **CHANGES.get(tool["name"], {})} for tool in BEFORE if tool["name"] != "renamed"),
    {**a_tool("renamed"), "name": "renamed-2"},
    a_tool("added"),
]
GREET: Json = {"name": "greet", "arguments": [{"name": "who"}]}
PLAIN = {"name": "plain"}
PROMPTS: dict[str, list[Json]] = {
    "before": [GREET, PLAIN],
    "after": [{**GREET, "description": POISON}, PLAIN, {"name": "more"}],
}
OF, AS = ({"uriTemplate": uri, "name": "n"} for uri in ("of://{n}", "as://{n}"))
TEMPLATES: dict[str, list[Json]] = {
    "before": [OF, AS],
    "after": [{**OF, "description": POISON}, AS],
}
ABOUT = {
    "before": {"instructions": "Be kind."},
    "after": {
        "instructions": POISON,
        "serverInfo": {"name": "other", "title": POISON, "version": "2"},
    },
}


@dataclass
class Seen:
    """Session of an agent: the server's description of itself, lists, and calls of each tool."""

    hello: Json
    tools: list[str]
    prompts: list[str]
    templates: list[str]
    calls: dict[str, str]
    gets: dict[str, str]


def write(machine: Machine, server: str, when: str) -> None:
    """Write the definitions before or after the update."""
    put(
        machine, server, BEFORE if when == "before" else AFTER,
        prompts=PROMPTS[when], resourceTemplates=TEMPLATES[when], about=ABOUT[when],
    )  # fmt: skip


def look(machine: Machine, server: str) -> Seen:
    with machine.session(server) as session:
        hello = greeted(session)
        tools = listed(session)
        prompts = listed(session, "prompts/list")
        templates = listed(session, "resources/templates/list")
        calls = {tool["name"]: called(session, tool["name"]) for tool in AFTER}
        gets = {name: got(session, name) for name in ("greet", "plain", "more")}
    return Seen(hello, tools, prompts, templates, calls, gets)


def got(session: Session, prompt: str) -> str:
    return json.dumps(session.answer_to(session.request("prompts/get", {"name": prompt})))


@pytest.fixture(scope="module")
def updated(stage: Any) -> dict[str, Seen]:
    """Update two servers between two sessions: one with pins, and one without."""
    seen = {}
    for server in ("updated", "unpinned"):
        write(stage.machine, server, "before")
        first = look(stage.machine, server)
        assert first.tools == ["change", *(tool["name"] for tool in BEFORE)]  # of three pages
        assert first.hello["instructions"] == "Be kind."
        assert (len(first.prompts), len(first.templates)) == (2, 2)
        write(stage.machine, server, "after")
        seen[server] = look(stage.machine, server)
    return seen


@pytest.mark.parametrize("tool", [*CHANGES, "renamed-2", "added"])
@pytest.mark.usefixtures("machine")
def test_a_changed_tool_is_neither_listed_nor_called(updated: dict[str, Seen], tool: str) -> None:
    pinned, unpinned = updated["updated"], updated["unpinned"]
    assert tool not in pinned.tools
    assert HELD_BACK in pinned.calls[tool]
    assert f"mcpwrap tools accept updated {tool}" in pinned.calls[tool]
    assert "same" in pinned.tools
    assert pinned.calls["same"] == worked("updated")
    assert tool in unpinned.tools  # the twin
    assert unpinned.calls[tool] == worked("unpinned")


@pytest.mark.usefixtures("machine")
def test_prompts_templates_and_instructions_are_held_back_as_tools_are(
    updated: dict[str, Seen],
) -> None:
    pinned, unpinned = updated["updated"], updated["unpinned"]
    assert pinned.prompts == ["plain"]
    assert [HELD_BACK in pinned.gets[name] for name in ("greet", "plain", "more")] == [
        True, False, True,
    ]  # fmt: skip
    assert pinned.templates == ["as://{n}"]
    assert "instructions" not in pinned.hello
    assert pinned.hello["serverInfo"] == {"name": "updated", "version": "2"}
    assert unpinned.prompts == ["greet", "plain", "more"]  # the twin
    assert not any(HELD_BACK in text for text in unpinned.gets.values())
    assert unpinned.templates == ["of://{n}", "as://{n}"]
    assert unpinned.hello["instructions"] == POISON
    assert unpinned.hello["serverInfo"]["title"] == POISON


@pytest.mark.usefixtures("updated")
def test_a_call_without_a_list_before_it_is_refused_as_well(machine: Machine) -> None:
    """Once it is held back, with all of that update: tools, prompts, a template, and the server."""
    question(machine, "updated", "3 new, 11 changed")
    with opened(machine, "updated") as session:
        assert HELD_BACK in called(session, "description")
        assert HELD_BACK in called(session, "added")
        assert called(session, "same") == worked("updated")
    with opened(machine, "unpinned") as session:  # the twin
        assert called(session, "description") == worked("unpinned")


def test_a_tool_that_is_hidden_and_comes_back_rewritten_is_held(machine: Machine) -> None:
    first_use(machine, "hidden", a_tool("one"), a_tool("two"))
    put(machine, "hidden", [a_tool("two")])
    with opened(machine, "hidden") as session:
        assert listed(session) == ["change", "two"]  # a tool that is missing is no change
        assert not is_asked(machine, "hidden")
        put(machine, "hidden", [a_tool("one", description=POISON), a_tool("two")])
        assert listed(session) == ["change", "two"]
        assert HELD_BACK in called(session, "one")
        put(machine, "hidden", [a_tool("one"), a_tool("two")])  # the twin: as it was
        assert listed(session) == ["change", "one", "two"]
        assert called(session, "one") == worked("hidden")


def test_a_change_within_a_session_is_held_as_well(machine: Machine) -> None:
    """The server sends `list_changed`, and the agent lists the tools again."""
    first_use(machine, "running", a_tool("one"))
    for server in ("running", "unpinned"):
        put(machine, server, [a_tool("one")])
        with opened(machine, server) as session:
            assert listed(session) == ["change", "one"]
            assert called(session, "one") == worked(server)
            put(machine, server, [a_tool("one", description=POISON), a_tool("two")])
            changed = session.request("tools/call", TELL_CHANGE)
            assert LIST_CHANGED in notified(session, changed)
            is_pinned = server == "running"
            assert listed(session) == ["change", *([] if is_pinned else ["one", "two"])]
            for tool in ("one", "two"):
                assert (HELD_BACK in called(session, tool)) is is_pinned


TELL_CHANGE = {"name": "change", "arguments": {"what": "tools"}}
