"""Definitions of a next version, in dialogues with a scripted server."""

import json
from typing import Any

import pytest

from mcpwrap.as_wrapper.next_version.definitions_client import DefinitionsClient

INFO = {"name": "git", "version": "2"}
TOOLS, PROMPTS, TEMPLATES = "tools/list", "prompts/list", "resources/templates/list"


class Dialogue:
    """Client, and the script of a server: by method the answers, one for each request."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self.client = DefinitionsClient()
        self.asked: list[tuple[str, Any]] = []
        self.answers: dict[str, list[Any]] = {"initialize": [handshake(tools={})], **answers}

    def play(self) -> DefinitionsClient:
        """Exchange lines until the client asks no more."""
        lines = [self.client.begin()]
        while lines:
            message = json.loads(lines.pop(0))
            self.asked.append((message["method"], message.get("params")))
            if "id" in message:
                answer = self.answers[message["method"]].pop(0)
                lines += self.client.take(reply(message["id"], answer))
        return self.client

    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]


def handshake(**capabilities: Any) -> dict[str, Any]:
    return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": INFO}


def reply(request_id: object, answer: Any) -> bytes:
    key = "error" if "code" in answer else "result"
    return json.dumps({"jsonrpc": "2.0", "id": request_id, key: answer}).encode()


def refusal(code: int, message: str = "no") -> dict[str, Any]:
    return {"code": code, "message": message}


def test_each_pinned_list_is_read_to_its_end() -> None:
    dialogue = Dialogue(
        {
            "initialize": [handshake(tools={}, prompts={}, resources={}, logging={})],
            TOOLS: [{"tools": [{"name": "a"}], "nextCursor": "2"}, {"tools": [{"name": "b"}]}],
            PROMPTS: [{"prompts": []}],
            TEMPLATES: [{"resourceTemplates": [{"uriTemplate": "x:{y}"}]}],
        }
    )
    client = dialogue.play()
    assert dialogue.methods() == [
        "initialize", "notifications/initialized", TOOLS, TOOLS, PROMPTS, TEMPLATES,
    ]  # fmt: skip
    assert dialogue.asked[3] == (TOOLS, {"cursor": "2"})
    assert (client.is_done, client.problem) == (True, "")
    assert [(page.method, json.loads(bytes(page.result))) for page in client.pages][1:3] == [
        (TOOLS, {"tools": [{"name": "a"}], "nextCursor": "2"}),
        (TOOLS, {"tools": [{"name": "b"}]}),
    ]


def test_a_server_of_the_later_era_is_asked_as_it_wants() -> None:
    found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    dialogue = Dialogue(
        {
            "initialize": [refusal(-32601)],
            "server/discover": [found],
            TOOLS: [{"tools": []}],
        }
    )
    client = dialogue.play()
    assert dialogue.methods() == ["initialize", "server/discover", TOOLS]
    envelope = dialogue.asked[2][1]["_meta"]
    assert envelope["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert [page.method for page in client.pages] == ["server/discover", TOOLS]
    assert client.problem == ""


ENDLESS = [{"tools": [], "nextCursor": "1"}, {"tools": [], "nextCursor": "1"}]


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({TOOLS: [refusal(-32601)]}, ""),  # it has the capability, and not the method: no tools
        ({TOOLS: [refusal(-32603, "log in\x1b")]}, r"it refuses tools/list: 'log in\x1b'"),
        ({TOOLS: [{"tools": {}}]}, "tools/list: its result has no tools"),
        ({TOOLS: ENDLESS}, "tools/list: it repeats a cursor"),
        (
            {"initialize": [refusal(-32601)], "server/discover": [refusal(-32601)]},
            "it refuses server/discover: 'no'",
        ),
        (
            {"initialize": [refusal(-32601)], "server/discover": [{"supportedVersions": ["9"]}]},
            "it supports neither 2025-11-25 nor 2026-07-28",
        ),
        ({TOOLS: [{"tools": [], "x": "y" * 17_000_000}]}, "it lists over 16777216 bytes"),
    ],
)
def test_what_is_not_complete_is_no_answer(answers: dict[str, list[Any]], problem: str) -> None:
    client = Dialogue(answers).play()
    assert (client.is_done, client.problem) == (True, problem)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b'{"jsonrpc":"2.0","id":"s","method":"ping"}', {"result": {}}),
        (b'{"jsonrpc":"2.0","id":"s","method":"roots/list"}', {"result": {"roots": []}}),
        (
            b'{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}',
            {"error": {"code": -32601, "message": "Only definitions are read"}},
        ),
        (b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}', None),
        (b'{"jsonrpc":"2.0","id":99,"result":{}}', None),  # to a request that was not made
        (b"starting up", None),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}', None),
        (b"", None),
    ],
)
def test_what_else_a_server_writes(line: bytes, answer: dict[str, Any] | None) -> None:
    client = DefinitionsClient()
    client.begin()
    expected = [] if answer is None else [{"jsonrpc": "2.0", "id": "s", **answer}]
    assert [json.loads(each) for each in client.take(line)] == expected
    assert not client.is_done
