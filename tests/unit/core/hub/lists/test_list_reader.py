from collections.abc import Sequence

import msgspec
import pytest

from mcpwrap.core.hub.lists import list_reader
from mcpwrap.core.hub.lists.list_reader import ListReader, lists_of, unchanged_kept, with_list
from mcpwrap.core.protocol.raw_message import encoded
from mcpwrap.core.wire.hub.hub_catalogue import Definitions


def page(entries: Sequence[object], cursor: object = None) -> msgspec.Raw:
    return encoded({"tools": entries, **({} if cursor is None else {"nextCursor": cursor})})


@pytest.mark.parametrize(
    ("pages", "entries", "cut"),
    [
        ([page([1], "a"), page([2])], 2, ""),
        ([page([1], "a"), page([2], "")], 2, ""),  # some servers end with an empty cursor
        ([page([1], "a"), page([2], 7)], 2, ""),
        ([page([1], "a"), page([2], "a")], 2, "it repeats a cursor"),
        ([page([1], "a"), page([2], "b"), page([3], "a")], 3, "it repeats a cursor"),
        ([page([1], "c" * 4097)], 1, "its cursor has over 4096 characters"),
        ([page([1] * 4096)], 4096, ""),
        ([page([1] * 4097)], 4096, "it has over 4096 entries or 4194304 bytes"),
        ([page(["x" * (1 << 22)])], 0, "it has over 4096 entries or 4194304 bytes"),
        ([page([], str(n)) for n in range(257)], 0, "it has over 256 pages"),
    ],
)
def test_pages_are_read_to_the_end_or_a_bound(
    pages: list[msgspec.Raw], entries: int, cut: str
) -> None:
    reader = ListReader("tools/list")
    cursors = [reader.take(one) for one in pages]
    assert None not in cursors[:-1]
    assert cursors[-1] is None
    assert (len(reader.entries), reader.cut, reader.error) == (entries, cut, "")


@pytest.mark.parametrize("result", [b"{}", b'{"tools":null}', b'{"tools":{}}', b"[]", b"7"])
def test_a_result_without_the_list_is_an_error_and_no_empty_list(result: bytes) -> None:
    reader = ListReader("tools/list")
    assert reader.take(msgspec.Raw(result)) is None
    assert reader.error == "its result has no tools"


def test_capabilities_have_lists() -> None:
    assert lists_of({"tools", "resources", "logging"}) == [
        "tools/list", "resources/list", "resources/templates/list",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "is_kept"),
    [
        (b'{"a":1,"b":2}', True),
        (b'{"b":2,"a":1}', True),
        (b'{"b":2.0,"a":1}', True),
        (b'{"b":2,"a":3}', False),
        (b"not JSON", False),
    ],
)
def test_the_same_definitions_in_other_text_are_no_change(now: bytes, is_kept: bool) -> None:  # noqa: FBT001
    before = Definitions(tools=(msgspec.Raw(b'{"a":1,"b":2}'),))
    found = with_list(Definitions(instructions="new"), "tools/list", [msgspec.Raw(now)])
    kept = unchanged_kept(before, found)
    assert kept.instructions == "new"
    assert (kept.tools == before.tools) is is_kept


def test_templates_have_a_field_of_their_own() -> None:
    found = with_list(Definitions(), "resources/templates/list", [msgspec.Raw(b"{}")])
    assert len(found.templates) == 1
    assert not found.resources
    assert list_reader.has_entries(found)
    assert not list_reader.has_entries(Definitions())
    assert unchanged_kept(None, found) is found
