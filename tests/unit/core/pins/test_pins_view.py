"""View of pins: a session's process knows what is accepted, and what is held for its agent."""

from mcpwrap.core.pins.pins_view import PinsView, decode, encode
from tests.unit.core.pins.pin_book import ALICE, BOB, PinBook, tool_definition

ADD, ADD_CHANGED = tool_definition("add", "Adds."), tool_definition("add", "Adds all.")


def changed() -> PinBook:
    book = PinBook()
    book.show("1-1", ADD)
    book.show("1-2", ADD_CHANGED)
    return book


def test_what_is_accepted_and_held() -> None:
    book = changed()
    view = book.view
    assert (view.accepts(ADD), view.accepts(ADD_CHANGED)) == (True, False)
    assert view.digests_of("tool", "add") == (ADD.digest,)
    assert view.digests_of("prompt", "add") == ()
    assert view.held_for(ALICE) == {ADD.key: {ADD_CHANGED.digest}}
    assert view.held_for(BOB) == {}
    book.reject(ADD_CHANGED)
    assert book.view.rejected == (ADD_CHANGED.digest,)
    assert book.view.held_for(ALICE) == {ADD.key: {ADD_CHANGED.digest}}


def test_first_use_is_over_after_its_list() -> None:
    assert PinsView().is_first_use("tool", "1-1", is_first_page=True)
    view = changed().view
    assert not view.is_first_use("tool", "1-2", is_first_page=True)
    assert view.is_first_use("prompt", "1-2", is_first_page=True)


def test_a_view_is_read_as_it_was_written() -> None:
    view = changed().view
    assert decode(encode(view)) == view
