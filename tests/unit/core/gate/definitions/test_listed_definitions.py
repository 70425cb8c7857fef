"""Definitions that a session was listed: pages of a list, and names that it has twice."""

import pytest

from mcpwrap.core.gate.definitions import listed_definitions
from mcpwrap.core.gate.definitions.listed_definitions import ListedDefinitions
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.pins.definitions import Definition
from mcpwrap.core.protocol.methods import ProtocolEra
from tests.unit.core.pins.pin_book import tool_definition

OLD, NEW = tool_definition("a", "Old."), tool_definition("a", "New.")
OTHER, A = tool_definition("b"), OLD.key


def page(
    listed: ListedDefinitions, *tools: Definition, cursor: str = "", following: str = ""
) -> bool:
    context = RequestContext("tools/list", "", ProtocolEra.HANDSHAKE, cursor=cursor)
    return listed.add_page(context, tools, following, is_first_use=True)


def test_the_pages_of_one_list_belong_together() -> None:
    listed = ListedDefinitions()
    assert page(listed, OLD, following="2")
    assert page(listed, NEW, cursor="2", following="3")
    assert listed.digests_of(A) == frozenset({OLD.digest, NEW.digest})
    assert not page(listed, cursor="2")  # again, or of another list
    assert page(listed, cursor="3")
    assert page(listed, NEW)
    assert listed.digests_of(A) == frozenset({NEW.digest})


def test_a_page_without_its_list_is_no_first_use() -> None:
    listed = ListedDefinitions()
    assert not page(listed, OLD, cursor="2")
    assert listed.digests_of(A) == frozenset({OLD.digest})


@pytest.mark.parametrize(("most", "other"), [(1, None), (2, frozenset({OTHER.digest}))])
def test_beyond_the_last_name_only_known_ones_are_remembered(
    most: int, other: frozenset[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_definitions, "MAX_NAMES", most)
    listed = ListedDefinitions()
    for one in (OLD, OTHER, NEW):
        listed.add(one)
    assert listed.is_full is (other is None)
    assert listed.digests_of(OTHER.key) == other
    assert listed.digests_of(A) == frozenset({NEW.digest})
