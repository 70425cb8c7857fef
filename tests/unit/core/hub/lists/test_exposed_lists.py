"""Bounds of what one member can make of the lists of all. The rest is in dialogues/names.txt."""

import time

import msgspec

from mcpwrap.core.hub.lists.exposed_lists import expose
from mcpwrap.core.protocol.raw_message import encoded
from mcpwrap.core.wire.hub.hub_catalogue import Definitions


def test_the_reasons_of_omitted_entries_are_bounded() -> None:
    tools = tuple(encoded({"name": "." * 1000}) for _ in range(1000))
    lists = expose("tools", {"bad": "bad"}, {"bad": Definitions(tools=tools)}, None)
    assert len(lists.omitted) == 256
    assert all(len(one.name) == 200 for one in lists.omitted)


def test_no_template_makes_a_look_up_slow() -> None:
    """With backtracking, each of these would take the square of its length."""
    template = "{x}a" * 1000 + "b"
    templates = tuple(encoded({"name": "t", "uriTemplate": template}) for _ in range(1000))
    definitions = Definitions(templates=templates)
    lists = expose("tools", {"bad": "bad"}, {"bad": definitions}, None)
    began_s = time.process_time()
    assert lists.owners("a" * 8000, frozenset()) == frozenset()
    assert time.process_time() - began_s < 1


def test_a_definition_that_is_no_json_is_omitted() -> None:
    tools = (msgspec.Raw(b'{"name":"a","inputSchema":\xff}'),)
    lists = expose("tools", {"bad": "bad"}, {"bad": Definitions(tools=tools)}, None)
    assert [one.reason for one in lists.omitted] == ["it is not an object"]
    assert not lists.tools
