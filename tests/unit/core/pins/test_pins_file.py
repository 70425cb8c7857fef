"""Files of pins: what is read is what was written, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.pins.pins_file import (
    DamagedPinsError,
    HeldDefinitions,
    ServerPins,
    decode_held,
    decode_pins,
    encode,
    file_digest,
)
from tests.unit.core.pins.pin_book import PinBook, tool_definition


def book() -> PinBook:
    book = PinBook()
    book.show("1-1", tool_definition("add", "Adds \u2028 \x00 '\"."), tool_definition("sub"))
    book.show("1-2", tool_definition("add", "Adds more."))
    book.reject(tool_definition("add", "Adds more."))
    return book


CONTENT = encode(book().pins)


def test_files_are_read_as_they_were_written() -> None:
    written = book()
    assert decode_pins(encode(written.pins)) == written.pins
    assert decode_held(encode(written.held)) == written.held
    assert file_digest(CONTENT) == CONTENT.splitlines()[0].decode()


@given(at=st.integers(0, len(CONTENT) - 1), bit=st.integers(0, 7))
def test_a_changed_byte_is_noticed(at: int, bit: int) -> None:
    changed = bytearray(CONTENT)
    changed[at] ^= 1 << bit
    with pytest.raises(DamagedPinsError):
        decode_pins(bytes(changed))


@given(length=st.integers(0, len(CONTENT) - 1))
def test_a_part_of_a_file_is_noticed(length: int) -> None:
    with pytest.raises(DamagedPinsError):
        decode_pins(CONTENT[:length])


@pytest.mark.parametrize("value", [ServerPins(format=2), HeldDefinitions(format=2)])
def test_a_later_format_is_refused(value: ServerPins | HeldDefinitions) -> None:
    read = decode_pins if isinstance(value, ServerPins) else decode_held
    with pytest.raises(DamagedPinsError, match="another version"):
        read(encode(value))
