"""Webhook post: it has each name and no value; its signature is as the manual documents."""

import re
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mcpwrap.core.approval import document
from mcpwrap.core.approval.document import Question
from mcpwrap.core.notify.webhook_post import (
    MAX_NAME_CHARS,
    MAX_NAMES,
    AgentPayload,
    WebhookPayload,
    posted,
    signature,
)
from mcpwrap.core.pins.definitions import Finding
from mcpwrap.core.pins.pin_question import document_of, held_changes
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import Pending
from tests.unit.core.pins.pin_book import PinBook, tool_definition

MANUAL = Path(__file__).parents[4] / "docs/mcpwrap.8.rst"
KEY = "0123456789abcdef0123456789abcdef"
PENDING = Pending(
    id="k3b7", digest="f00d", size=312, agent_uid=1000, server="sqlite", session="1-1",
    method="tools/call", target="write_query", rule="ask-first", message="Changes the table.",
    asked_at=1_777_890_030.9, expires_at=1_777_890_330.9, times=3, waiting=1, may="no",
)  # fmt: skip


def told(params: dict[str, Json], pending: Pending = PENDING) -> WebhookPayload:
    question = Question(
        agent_uid=1000, server="sqlite", method="tools/call", target="write_query",
        definition="", params=params, policy="",
    )  # fmt: skip
    return posted(pending, question, account="alice", machine="build7")


def test_everything_is_named() -> None:
    assert told({"name": "write_query", "arguments": {}}) == WebhookPayload(
        machine="build7",
        id="k3b7",
        server="sqlite",
        method="tools/call",
        target="write_query",
        agent=AgentPayload(1000, "alice"),
        rule="ask-first",
        message="Changes the table.",
        size=312,
        sha256="f00d",
        asked_at="2026-05-04T10:20:30+00:00",
        expires_at="2026-05-04T10:25:30+00:00",
        arguments={},
        arguments_left_out=0,
        url="http://127.0.0.1:52080/approval/k3b7",
    )


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"name": "t", "arguments": {}}, {}),
        (
            {"name": "t", "arguments": {"q": "hunter2", "n": 4711, "f": 0.5, "b": True, "z": None}},
            {
                "b": {"type": "boolean"},
                "f": {"type": "number"},
                "n": {"type": "number"},
                "q": {"type": "string", "characters": 7},
                "z": {"type": "null"},
            },
        ),
        (
            # the agent chooses names inside a value, and they can be secret
            {"arguments": {"env": {"hunter2": "x"}, "list": ["hunter2", ["hunter2"]]}},
            {"env": {"type": "object", "keys": 1}, "list": {"type": "array", "items": 2}},
        ),
        ({"uri": "file:///hunter2"}, {"uri": {"type": "string", "characters": 15}}),
        ({"arguments": "hunter2"}, {"arguments": {"type": "string", "characters": 7}}),
        ({"arguments": {"a\u202eb\x1b[": None}}, {r"a\u202eb\x1b[": {"type": "null"}}),
        ({}, {}),
    ],
)  # fmt: skip
def test_an_argument_is_its_name_its_type_and_its_length(
    params: dict[str, Json], expected: object
) -> None:
    text = msgspec.json.encode(told(params))
    assert msgspec.json.decode(text)["arguments"] == expected
    assert b"hunter2" not in text


def test_arguments_over_the_limit_are_counted() -> None:
    body = told({"arguments": {f"{number:03}": 1 for number in range(MAX_NAMES + 7)}})
    assert len(body.arguments) == MAX_NAMES
    assert body.arguments_left_out == 7


def test_names_are_cut_and_equal_ones_counted() -> None:
    body = told({"arguments": {"a" * 200: 1, "a" * 300: 1}})
    assert [len(name) for name in body.arguments] == [MAX_NAME_CHARS]
    assert body.arguments_left_out == 1


def test_a_uri_has_no_query() -> None:
    pending = msgspec.structs.replace(PENDING, target="https://me:pw@x.example/a?token=hunter2#b")
    assert told({}, pending).target == "https://x.example/a"


def test_held_definitions_are_named_without_their_texts() -> None:
    book = PinBook()
    book.show("1-1", tool_definition("add", "hunter2"), version="1.2.0")
    names = [f"new{number:03}" for number in range(MAX_NAMES + 7)]
    new = [tool_definition(name, "hunter2") for name in names]
    book.show("1-2", tool_definition("add", "hunter3"), *new, version="1.3.0")
    found = Finding("model-instruction", "description", "hunter2", "hunter2")
    changes = held_changes(book.pins, book.held.held, lambda _: (found,))
    question = document.read(document_of("github", 1000, changes))
    pending = msgspec.structs.replace(
        PENDING, method="pins", target=question.target, expires_at=0.0
    )
    text = msgspec.json.encode(posted(pending, question, account="alice", machine="build7"))
    body = msgspec.json.decode(text)
    assert body["target"] == "57 new, 1 changed: 1.2.0 -> 1.3.0"
    assert (body["expires_at"], body["arguments"]) == ("", {})
    assert body["definitions"][0] == {
        "kind": "tool",
        "name": "new000",
        "change": "added",
        "findings": ["model-instruction"],
    }
    assert len(body["definitions"]) == MAX_NAMES
    assert body["definitions_left_out"] == 8
    assert b"hunter" not in text


def test_a_request_has_no_definitions() -> None:
    assert b"definitions" not in msgspec.json.encode(told({"name": "t", "arguments": {}}))


@pytest.fixture(scope="module")
def is_genuine() -> Callable[[str, bytes, str], bool]:
    """Return the function that the manual gives to receivers."""
    found = re.search(
        r"^    import hashlib.*?\n(?=\S)", MANUAL.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found
    names: dict[str, Callable[[str, bytes, str], bool]] = {}
    exec(textwrap.dedent(found[0]), names)
    return names["is_genuine"]


def test_the_manuals_function_verifies_the_signature(
    is_genuine: Callable[[str, bytes, str], bool],
) -> None:
    now_s, body = int(time.time()), b'{"id":"k3b7"}'
    good = signature(KEY.encode(), now_s, body)
    assert is_genuine(good, body, KEY)
    assert not is_genuine(good, body + b" ", KEY)
    assert not is_genuine(good, body, KEY[:-1] + "0")
    assert not is_genuine(good.replace(f"t={now_s}", f"t={now_s - 1}"), body, KEY)
    assert not is_genuine(signature(KEY.encode(), now_s - 400, body), body, KEY)  # a replay


def test_the_signature_does_not_change_between_versions() -> None:
    mac = "91b5374b153842ad05b2c4eab9349b8321b14703165bd3fb8b034dfb8be98ae5"
    assert signature(b"key", 1, b"body") == f"t=1,v1={mac}"
