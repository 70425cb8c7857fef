"""Definitions that a session collects: dialogues of an agent with a server, through the gate."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from mcpwrap.core.gate.definitions import collector
from mcpwrap.core.gate.definitions.collector import DefinitionsCollector
from mcpwrap.core.gate.gate import Gate
from mcpwrap.core.pins.definitions import server_definition
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.hub import hub_catalogue
from tests.unit.core.scripted import ScriptedAudit, ScriptedLimits, ScriptedPolicy

Turn = tuple[str, dict[str, Json], dict[str, Json]]  # method, params, result or error
TOOLS: dict[str, Json] = {"capabilities": {"tools": {}}, "instructions": "Use it."}
ALL: dict[str, Json] = {"capabilities": {"tools": {}, "prompts": {}, "resources": {}}}
MISSING: dict[str, Json] = {"code": -32601, "message": "Method not found"}
EXPIRED: dict[str, Json] = {"code": -32001, "message": "the login has expired"}


def begin(about: dict[str, Json]) -> Turn:
    return "initialize", {}, {"protocolVersion": "2025-06-18", **about}


def tools(*names: str, cursor: str = "", following: str = "") -> Turn:
    params: dict[str, Json] = {"cursor": cursor} if cursor else {}
    result: dict[str, Json] = {"tools": [{"name": name} for name in names]}
    return "tools/list", params, {**result, "nextCursor": following} if following else result


@dataclass
class Store:
    """Store that keeps everything, unless it is busy."""

    is_busy: bool = False
    kept: list[bytes] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def keep(self, definitions: bytes) -> bool:
        if not self.is_busy:
            self.kept.append(definitions)
        return not self.is_busy

    def leave_out(self, why: str) -> None:
        self.left_out.append(why)


class Session:
    """Session whose agent sends a request after each response."""

    def __init__(self, policy: ScriptedPolicy | None = None) -> None:
        self.store = Store()
        self._gate = Gate(policy or ScriptedPolicy(), ScriptedLimits(), ScriptedAudit())
        self._gate.collect(DefinitionsCollector(self.store))
        self._id = 0

    def say(self, *turns: Turn) -> None:
        for method, params, answer in turns:
            self._id += 1
            head: dict[str, Json] = {"jsonrpc": "2.0", "id": self._id}
            request = {**head, "method": method, "params": params}
            kind = "error" if "code" in answer else "result"
            self._gate.from_agent(msgspec.json.encode(request))
            self._gate.from_server(msgspec.json.encode({**head, kind: answer}))

    def kept(self) -> list[list[str]]:
        """Return the names of the tools in each version that was kept."""
        versions = [hub_catalogue.decode_definitions(text) for text in self.store.kept]
        return [[msgspec.json.decode(raw)["name"] for raw in one.tools] for one in versions]


@pytest.mark.parametrize(
    ("turns", "kept"),
    [
        ([begin(TOOLS), tools("a", "b")], [["a", "b"]]),
        ([tools("a"), begin(TOOLS)], [["a"]]),  # in any order
        ([("server/discover", {}, TOOLS), tools("a")], [["a"]]),
        ([begin(TOOLS), tools()], [[]]),  # an empty list is known to be empty
        ([begin({"capabilities": {}})], [[]]),
        ([begin({"capabilities": []})], [[]]),
        ([tools("a")], []),  # nothing is known of its other lists
        ([begin(ALL), tools("a")], []),
        # All pages of one pass, and no other.
        ([begin(TOOLS), tools("a", following="2"), tools("b", cursor="2")], [["a", "b"]]),
        ([begin(TOOLS), tools("a", following="2")], []),
        ([begin(TOOLS), tools("a", following="2"), tools("b", cursor="3")], []),
        ([begin(TOOLS), tools("b", cursor="2")], []),
        (
            [begin(TOOLS), tools("a", following="2"), tools("c", following="3"),
             tools("b", cursor="2"), tools("d", cursor="3")],
            [],
        ),
        (
            [begin(TOOLS), tools("a", following="2"), ("tools/list", {"cursor": "2"}, EXPIRED)],
            [],
        ),
        # A list that is not complete leaves the one before.
        ([begin(TOOLS), tools("a"), tools("b", following="2")], [["a"]]),
        ([begin(TOOLS), tools("a"), ("tools/list", {}, EXPIRED)], [["a"]]),
        ([begin(TOOLS), ("tools/list", {}, EXPIRED)], []),
        # Only changes are kept.
        ([begin(TOOLS), tools("a"), tools("a"), tools("b"), tools("b")], [["a"], ["b"]]),
        ([begin(TOOLS), ("tools/list", {"cursor": None}, {"tools": [{"name": "a"}]})], [["a"]]),
        ([begin(TOOLS), ("tools/list", {"cursor": 5}, {"tools": [{"name": "a"}]})], []),
        # A server without the method has an empty list; that without a login has not.
        (
            [begin(ALL), tools("a"), ("prompts/list", {}, {"prompts": []}),
             ("resources/list", {}, {"resources": []}), ("resources/templates/list", {}, MISSING)],
            [["a"]],
        ),
        (
            [begin(ALL), tools("a"), ("prompts/list", {}, {"prompts": []}),
             ("resources/list", {}, {"resources": []}), ("resources/templates/list", {}, EXPIRED)],
            [],
        ),
    ],
)  # fmt: skip
def test_lists_are_kept_when_they_are_complete(
    turns: Sequence[Turn], kept: list[list[str]]
) -> None:
    session = Session()
    session.say(*turns)
    assert (session.kept(), session.store.left_out) == (kept, [])


def test_the_digest_of_what_a_server_says_of_itself_is_kept() -> None:
    session = Session()
    session.say(begin(TOOLS), tools())
    [text] = session.store.kept
    assert hub_catalogue.decode_definitions(text).server_digest == server_definition(TOOLS).digest


def test_they_are_kept_as_the_server_sent_them() -> None:
    session = Session(ScriptedPolicy(hidden={"a"}, redacts="Use"))
    session.say(begin(ALL), tools("a"))
    session.say(
        ("prompts/list", {}, {"prompts": [{"name": "p", "x": {"b": 1, "a": [2.50]}}]}),
        ("resources/list", {}, {"resources": [{"uri": "x:y"}]}),
        ("resources/templates/list", {}, {"resourceTemplates": [{"uriTemplate": "x:{y}"}]}),
    )
    (text,) = session.store.kept
    assert hub_catalogue.decode_definitions(text) == hub_catalogue.Definitions(
        capabilities=msgspec.Raw(b'{"tools":{},"prompts":{},"resources":{}}'),
        tools=(msgspec.Raw(b'{"name":"a"}'),),
        prompts=(msgspec.Raw(b'{"name":"p","x":{"b":1,"a":[2.5]}}'),),
        resources=(msgspec.Raw(b'{"uri":"x:y"}'),),
        templates=(msgspec.Raw(b'{"uriTemplate":"x:{y}"}'),),
    )


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (tools("ab"), "over 96 bytes"),  # of the list
        (tools("abc", "d"), "not a list of up to 1 entries"),
        (("tools/list", {}, {"tools": {}}), "not a list"),
        (tools("a", following="x" * 4097), "not a short string"),
        (("tools/list", {}, {"tools": [], "nextCursor": 7}), "not a short string"),
    ],
)
def test_lists_over_a_bound_are_left_out(
    monkeypatch: pytest.MonkeyPatch, turn: Turn, why: str
) -> None:
    monkeypatch.setattr(collector, "MAX_ENTRIES", 1)
    session = Session()
    session.say(begin({"capabilities": {"tools": {}}}), tools("a"))
    if "bytes" in why:
        monkeypatch.setattr(collector, "MAX_DEFINITIONS_BYTES", 96)
        turn = tools("a" * 90)
    session.say(turn)
    assert session.kept() == [["a"]]
    assert why in session.store.left_out[0]


def test_pages_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MAX_ENTRIES", 2)
    session = Session()
    session.say(begin(TOOLS), tools("a", following="2"), tools("b", "c", cursor="2"))
    session.say(tools("a", following="2"), tools("b", cursor="2"))
    assert (session.kept(), len(session.store.left_out)) == ([["a", "b"]], 1)


def test_all_lists_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MAX_DEFINITIONS_BYTES", 100)
    session = Session()
    session.say(begin({**TOOLS, "instructions": "x" * 100}), tools("a"))
    assert session.store.left_out == ["they have over 100 bytes"]
    assert session.kept() == []


def test_what_a_busy_store_refused_is_kept_with_the_next_list() -> None:
    session = Session()
    session.say(begin(TOOLS))
    session.store.is_busy = True
    session.say(tools("a"))
    session.store.is_busy = False
    session.say(tools("a"))
    assert session.kept() == [["a"]]
