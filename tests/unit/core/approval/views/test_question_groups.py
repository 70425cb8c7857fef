"""Groups of pending questions: what is of one kind, and what is shown of it."""

import pytest
from msgspec.structs import replace

from mcpwrap.core.approval.views.question_groups import (
    MAX_SHOWN_BYTES,
    are_of_one_kind,
    brief,
    columns,
    grouped,
    shown_together,
    summary,
)
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.approval_socket import Pending
from tests.unit.core.approval.questions import question

ONE = Pending(
    id="a", digest="d", size=10, agent_uid=1, server="s", session="1-1", method="tools/call",
    target="t", rule="r", message="m", asked_at=1.0, expires_at=2.0, times=1, waiting=1, may="yes",
)  # fmt: skip
OTHER = replace(ONE, id="b", digest="e", session="2-2", asked_at=5.0, times=3)


def test_calls_of_one_kind_are_one_group() -> None:
    (group,) = grouped([ONE, OTHER])
    assert (group.first, group.pending, group.is_several) == (ONE, (ONE, OTHER), True)
    assert not grouped([ONE])[0].is_several
    assert grouped([OTHER])[0].key == group.key  # by its kind alone
    assert grouped([]) == ()


@pytest.mark.parametrize(
    "other",
    [
        replace(OTHER, agent_uid=2),
        replace(OTHER, server="x"),
        replace(OTHER, target="x"),
        replace(OTHER, rule="x"),
        replace(OTHER, message="x"),
        replace(OTHER, may="proof"),
        replace(OTHER, asking=("x",)),
        replace(OTHER, deciding=("x",)),
        replace(OTHER, exact=("x",)),
    ],
)
def test_others_are_not(other: Pending) -> None:
    assert [group.pending for group in grouped([ONE, other])] == [(ONE,), (other,)]


def test_only_calls_are_grouped() -> None:
    pair = [replace(ONE, method="pins"), replace(OTHER, method="pins")]
    assert [group.is_several for group in grouped(pair)] == [False, False]


def test_documents_of_one_kind_agree() -> None:
    one = question({"name": "t", "arguments": {"a": 1}})
    assert are_of_one_kind(one, question({"name": "t", "arguments": {"a": 2}}))
    assert not are_of_one_kind(one, replace(one, server="x"))


def test_only_so_much_is_shown_together() -> None:
    large = replace(OTHER, size=MAX_SHOWN_BYTES)
    assert shown_together([ONE, large, ONE]) == (ONE, ONE)
    assert shown_together([large]) == (large,)


def test_columns_are_the_deciding_arguments() -> None:
    first: dict[str, Json] = {"z": "x\ny", "path": "/a", "long": "l" * 500}
    second: dict[str, Json] = {"path": "/b"}
    asked = [question({"name": "t", "arguments": each}) for each in (first, second)]
    assert columns([brief(each, ("path",)) for each in asked]) == (
        ("path",), [('"/a"',), ('"/b"',)],
    )  # fmt: skip
    names, rows = columns([brief(each, ()) for each in asked])
    assert names == ("long", "path", "z")
    assert rows[0] == (f'"{"l" * 119}…', '"/a"', "x …")
    assert rows[1] == ("", '"/b"', "")
    assert columns([]) == ((), [])


def test_outcomes_are_summed_up() -> None:
    assert summary(["approved", "gone", "approved"], 3) == "2 approved, 1 gone"
    assert summary(["approved"], 3) == "1 approved, 2 not answered"
