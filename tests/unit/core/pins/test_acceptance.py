"""Pins of a server: first use is accepted, and after it nothing without a person."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.pins import acceptance
from mcpwrap.core.pins.acceptance import MAX_HELD, MAX_HELD_OF_NAME, MAX_VARIANTS, PinsFullError
from mcpwrap.core.pins.definitions import Definition
from mcpwrap.core.pins.pins_file import MAX_HELD_BYTES, MAX_PINS_BYTES
from tests.unit.core.pins.pin_book import ALICE, BOB, PinBook, tool_definition

ADD, ADD_CHANGED = tool_definition("add", "Adds."), tool_definition("add", "Adds; reads ~/.ssh.")
NEW = tool_definition("new")


def test_what_the_first_session_lists_is_accepted() -> None:
    book = PinBook()
    book.show("1-1", ADD, version="1.2")
    assert book.accepted() == [ADD]
    assert book.waiting() == []
    assert (book.pins.accepted[0].by, book.pins.accepted[0].version) == ("", "1.2")


def test_in_strict_it_is_held() -> None:
    book = PinBook(is_strict=True)
    book.show("1-1", ADD)
    assert (book.accepted(), book.waiting()) == ([], [ADD])
    book.accept(ADD)
    assert (book.accepted(), book.waiting()) == ([ADD], [])


@pytest.mark.parametrize("later", [ADD_CHANGED, NEW], ids=["changed", "added"])
def test_what_a_later_session_lists_is_held_until_it_is_accepted(later: Definition) -> None:
    book = PinBook()
    book.show("1-1", ADD)
    book.show("1-2", later)
    assert (book.accepted(), book.waiting()) == ([ADD], [later])
    book.accept(later)
    assert (book.accepted(), book.waiting()) == ([ADD, later], [])


def test_the_same_definition_is_not_held() -> None:
    book = PinBook()
    book.show("1-1", ADD)
    book.show("1-2", ADD)
    assert (book.accepted(), book.waiting()) == ([ADD], [])


@pytest.mark.parametrize(
    ("session", "is_first", "is_accepted"),
    [("1-1", False, True), ("1-1", True, False), ("1-2", False, False), ("1-2", True, False)],
    ids=["next page", "begun again", "other session's page", "other session"],
)
def test_first_use_lasts_until_the_last_page_of_its_session(
    session: str, *, is_first: bool, is_accepted: bool
) -> None:
    book = PinBook()
    book.show("1-1", ADD, last=False)
    book.show(session, NEW, first=is_first)
    assert (NEW in book.accepted(), NEW in book.waiting()) == (is_accepted, not is_accepted)


def test_nothing_is_accepted_after_the_last_page() -> None:
    book = PinBook()
    book.show("1-1", ADD)
    book.show("1-1", NEW, first=False)
    assert (book.accepted(), book.waiting()) == ([ADD], [NEW])


def test_a_tool_that_is_hidden_and_shown_again_rewritten_is_held() -> None:
    book = PinBook()
    book.show("1-1", ADD, NEW)
    book.show("1-2", NEW)
    book.show("1-3", ADD_CHANGED, NEW)
    assert (book.accepted(), book.waiting()) == ([ADD, NEW], [ADD_CHANGED])


def test_a_rejected_definition_stays_held_until_it_is_accepted_after_all() -> None:
    book = PinBook()
    book.show("1-1", ADD)
    book.show("1-2", ADD_CHANGED)
    book.reject(ADD_CHANGED)
    book.show("1-3", ADD_CHANGED)
    assert (book.waiting(), [one.digest for one in book.pins.rejected]) == (
        [ADD_CHANGED],
        [ADD_CHANGED.digest],
    )
    book.accept(ADD_CHANGED)
    assert (book.waiting(), book.pins.rejected) == ([], ())


def test_what_an_account_is_listed_last_replaces_what_was_held_for_it() -> None:
    book = PinBook()
    book.show("1-1", ADD)
    second = tool_definition("add", "Another.")
    book.show("1-2", ADD_CHANGED, uid=ALICE)
    book.show("1-3", ADD_CHANGED, uid=BOB)
    book.show("1-4", second, uid=ALICE)
    assert [(one.canonical(), one.uids) for one in book.held.held] == [
        (ADD_CHANGED, (BOB,)),
        (second, (ALICE,)),
    ]
    book.show("1-5", uid=BOB, again=["add"])
    assert book.waiting() == [second]


def test_a_name_keeps_its_latest_variants() -> None:
    book = PinBook()
    variants = [tool_definition("add", f"For login {n}.") for n in range(MAX_VARIANTS + 1)]
    for n, one in enumerate(variants):
        book.show(f"1-{n}", one)
        book.accept(one)
    assert book.accepted() == variants[1:]


def test_what_is_held_is_bounded_and_the_oldest_stays() -> None:
    book = PinBook()
    book.show("1-1", ADD)
    for n in range(MAX_HELD_OF_NAME + 1):
        book.show("1-2", tool_definition("new", str(n)), uid=n)
    assert book.waiting() == [tool_definition("new", str(n)) for n in range(MAX_HELD_OF_NAME)]
    book.show("1-3", *(tool_definition(str(n)) for n in range(MAX_HELD)))
    assert len(book.waiting()) == MAX_HELD
    book.held = type(book.held)()
    huge = tool_definition("huge", "x" * MAX_HELD_BYTES)
    book.show("1-4", NEW)
    book.show("1-5", huge)
    assert book.waiting() == [NEW]


def test_of_a_name_with_several_definitions_none_is_accepted_at_first_use() -> None:
    book = PinBook()
    book.show("1-1", ADD, NEW, ADD_CHANGED, NEW)
    assert (book.accepted(), book.waiting()) == ([NEW], [ADD, ADD_CHANGED])


def test_nor_one_on_a_later_page() -> None:
    book = PinBook()
    book.show("1-1", ADD, last=False)
    book.show("1-1", ADD, ADD_CHANGED, NEW, first=False)
    assert (book.accepted(), book.waiting()) == ([ADD, NEW], [ADD_CHANGED])


def test_more_than_a_file_may_hold_is_not_accepted() -> None:
    book = PinBook()
    with pytest.raises(PinsFullError):
        book.show("1-1", tool_definition("huge", "x" * MAX_PINS_BYTES))
    assert book.pins.accepted == ()
    book.show("1-1", tool_definition("large", "x" * (MAX_PINS_BYTES // 2)))
    assert len(book.pins.accepted) == 1


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["list", "accept", "reject"]),
        st.sampled_from(["1-1", "1-2"]),
        st.sampled_from([ALICE, BOB]),
        st.booleans(),
        st.lists(st.sampled_from([ADD, ADD_CHANGED, NEW]), max_size=3, unique=True),
    ),
    max_size=12,
)


@given(events=EVENTS)
def test_only_first_use_and_a_person_accept(
    events: list[tuple[str, str, int, bool, list[Definition]]],
) -> None:
    book = PinBook()
    allowed = set[str]()
    for what, session, uid, is_last, tools in events:
        if what == "list":
            if acceptance.is_first_use(book.pins, "tool", session, is_first_page=True):
                names = [one.key for one in tools]
                allowed |= {one.digest for one in tools if names.count(one.key) == 1}
            book.show(session, *tools, uid=uid, last=is_last)
        elif what == "accept":
            allowed |= {one.digest for one in tools if one in book.waiting()}
            book.accept(*tools)
        else:
            book.reject(*tools)
    assert {one.digest for one in book.accepted()} == allowed
    assert allowed.isdisjoint(one.digest for one in book.waiting())


def test_a_kind_that_a_server_declares_not_to_have_has_no_first_use_later() -> None:
    book = PinBook()
    book.describe("1-1", undeclared=("prompt",))
    book.show("1-1", ADD)
    assert book.accepted()[1:] == [ADD]
    assert not book.view.is_first_use("prompt", "1-2", is_first_page=True)
    assert book.view.is_first_use("template", "1-2", is_first_page=True)


def test_what_it_declares_later_takes_nothing_from_what_is_begun() -> None:
    book = PinBook()
    book.show("1-1", ADD)
    book.describe("1-1", undeclared=("tool",))
    book.show("1-2", NEW)
    assert (ADD in book.accepted(), book.waiting()) == (True, [NEW])


def test_accounts_take_turns_where_not_all_can_be_held() -> None:
    book = PinBook()
    book.show("1-1", ADD)
    book.show("1-2", *(tool_definition(str(n)) for n in range(MAX_HELD)), uid=ALICE)
    book.show("1-3", ADD_CHANGED, uid=BOB)
    assert (len(book.waiting()), ADD_CHANGED in book.waiting()) == (MAX_HELD, True)
