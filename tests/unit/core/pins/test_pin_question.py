"""Question on held definitions: one for all, what is new first, accepted as it was shown."""

import msgspec

from mcpwrap.core.approval import document
from mcpwrap.core.approval.document import MAX_DOCUMENT_BYTES
from mcpwrap.core.pins.definitions import Definition, Finding
from mcpwrap.core.pins.pin_question import (
    NOTHING,
    HeldChanges,
    changes_in,
    document_of,
    held_changes,
)
from tests.unit.core.pins.pin_book import ALICE, PinBook, tool_definition

ADD, ADD_CHANGED = tool_definition("add", "Adds."), tool_definition("add", "Adds all.")
SUB, SUB_CHANGED = tool_definition("sub"), tool_definition("sub", "Subtracts.")
NEW = tool_definition("new")


def updated() -> PinBook:
    book = PinBook()
    book.show("1-1", ADD, SUB, version="1.0")
    book.show("1-2", ADD_CHANGED, SUB_CHANGED, NEW, version="1.1")
    return book


def asked(book: PinBook) -> HeldChanges:
    return held_changes(book.pins, book.held.held, nothing_found)


def nothing_found(_: Definition) -> tuple[Finding, ...]:
    return ()


def test_an_update_is_one_question() -> None:
    changes = asked(updated())
    assert [(one.what, one.name, one.before, one.after) for one in changes.changes] == [
        ("added", "new", NOTHING, msgspec.Raw(NEW.text)),
        ("changed", "add", msgspec.Raw(ADD.text), msgspec.Raw(ADD_CHANGED.text)),
        ("changed", "sub", msgspec.Raw(SUB.text), msgspec.Raw(SUB_CHANGED.text)),
    ]
    assert changes.summary() == "1 new, 2 changed: 1.0 -> 1.1"


def test_what_has_findings_comes_first() -> None:
    book, found = updated(), Finding("model-instruction", "description", "all", "It instructs.")
    changes = held_changes(
        book.pins, book.held.held, lambda one: (found,) if one == SUB_CHANGED else ()
    )
    assert [one.name for one in changes.changes] == ["new", "sub", "add"]
    assert changes.changes[1].findings == (found,)


def test_a_rejected_definition_is_not_asked_about_again() -> None:
    book = updated()
    book.reject(ADD_CHANGED)
    assert [one.name for one in asked(book).changes] == ["new", "sub"]
    book.reject(NEW, SUB_CHANGED)
    assert asked(book).changes == ()


def test_what_was_rejected_is_in_the_question_apart() -> None:
    book = updated()
    book.reject(ADD_CHANGED)
    [one] = asked(book).rejected
    assert (one.name, one.digest, one.is_rejected) == ("add", ADD_CHANGED.digest, True)
    assert not any(each.is_rejected for each in asked(book).changes)
    assert ADD_CHANGED.digest not in {each.digest for each in asked(book).changes}
    book.accept(ADD_CHANGED)
    assert asked(book).rejected == ()


def test_the_document_has_what_is_accepted() -> None:
    book = updated()
    changes = asked(book)
    text = document_of("calculator", ALICE, changes)
    question = document.read(text)
    assert (question.method, question.server, question.target) == (
        "pins",
        "calculator",
        "1 new, 2 changed: 1.0 -> 1.1",
    )
    assert changes_in(question) == changes
    assert document_of("calculator", ALICE, asked(updated())) == text


def test_a_question_is_no_longer_than_a_person_reads() -> None:
    book = PinBook()
    before, large = (
        [tool_definition(f"large{n}", text * (MAX_DOCUMENT_BYTES // 8)) for n in range(6)]
        for text in ("x", "y")
    )
    book.show("1-1", *before)
    book.show("1-2", *large)
    changes = asked(book)
    assert 0 < len(changes.changes) < len(large)
    assert changes.more == len(large) - len(changes.changes)
    assert len(document_of("calculator", ALICE, changes)) <= MAX_DOCUMENT_BYTES


def test_an_update_of_a_large_server_is_one_question() -> None:
    """A hundred tools with 2 KB each, as a server for issues and code has them."""
    book = PinBook()
    book.show("1-1", *[tool_definition(f"t{n}", "x" * 2000) for n in range(100)])
    book.show("1-2", *[tool_definition(f"t{n}", "y" * 2000) for n in range(100)])
    changes = asked(book)
    assert (len(changes.changes), changes.more) == (100, 0)
