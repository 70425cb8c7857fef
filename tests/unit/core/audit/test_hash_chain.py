"""Hash chain: it accepts only the next line, and used keys are erased."""

import pytest

from mcpwrap.core.audit import hash_chain
from mcpwrap.core.audit.hash_chain import KEY_BYTES, NO_MAC, Chain, derived, mac_of, record_of
from tests.unit.core.tamper import cuts, flips

KEY = bytes(range(KEY_BYTES))
RECORDS = [b'{"n":0}', b'{"n":1,"x":"\\"mac\\":\\""}', b'{"n":2}']


def written(key: bytes = KEY) -> tuple[Chain, list[bytes]]:
    writer, lines = Chain(key), []
    for record in RECORDS:
        lines.append(writer.line(record))
        writer.advance(lines[-1])
    return writer, lines


def test_what_was_written_is_accepted() -> None:
    writer, lines = written()
    reader = Chain(KEY)
    assert all(map(reader.accepts, lines))
    assert (reader.count, reader.mac) == (writer.count, writer.mac) == (3, mac_of(lines[-1]))
    assert list(map(record_of, lines)) == RECORDS
    assert lines[0].startswith(b'{"n":0,"mac":"')


def test_nothing_else_is_accepted() -> None:
    lines = written()[1]
    assert not Chain(derived(KEY, "x")).accepts(lines[0])
    for other in (*flips(lines[0]), *cuts(lines[0]), lines[1], lines[0].upper(), b"", b"\n"):
        reader = Chain(KEY)
        assert not reader.accepts(other)
        assert reader.accepts(lines[0])  # a refused line has changed nothing


def test_each_line_is_accepted_in_its_place_alone() -> None:
    lines = written()[1]
    reader = Chain(KEY)
    for place, line in enumerate(lines):
        others = [other for other in lines if other != line]
        assert not any(map(reader.after(place, reader.mac).accepts, others))
        assert reader.accepts(line)


def test_a_chain_can_be_verified_from_any_record() -> None:
    _, lines = written()
    later = Chain(KEY).after(2, mac_of(lines[1]))
    assert later.accepts(lines[2])
    with pytest.raises(ValueError, match="the chain already has 3 records"):
        later.after(2, NO_MAC)
    assert not Chain(KEY).after(2, NO_MAC).accepts(lines[2])


def test_earlier_keys_cannot_be_computed_from_the_current_one() -> None:
    writer, lines = written()
    key = bytes(writer._key)
    for place, line in enumerate(lines):
        before = mac_of(lines[place - 1]) if place else NO_MAC
        forged = Chain(key, place, before).line(RECORDS[place])
        assert forged != line
        assert not Chain(KEY).after(place, before).accepts(forged)


def test_a_key_is_overwritten_in_place() -> None:
    writer = Chain(KEY)
    held = writer._key
    writer.advance(writer.line(RECORDS[0]))
    assert held is writer._key
    assert bytes(held) != KEY
    writer.forget()
    assert bytes(held) == bytes(KEY_BYTES)


def test_each_session_at_each_place_has_a_key_of_its_own() -> None:
    writer = Chain(KEY)
    keys = {bytes(writer.child_key(name)) for name in ("1-1", "1-2")}
    writer.advance(writer.line(RECORDS[0]))
    keys |= {bytes(writer.child_key("1-1")), KEY, bytes(writer._key)}
    assert len(keys) == 5


@pytest.mark.parametrize("line", [b"", b"\n", b'{"n":0}\n', b'{"n":0,"mac":"zz"}\n'])
def test_a_line_without_a_mac_has_none(line: bytes) -> None:
    assert not Chain(KEY).accepts(line)
    with pytest.raises(ValueError, match=r"hex"):
        mac_of(line.rjust(hash_chain._TAIL_BYTES, b"-"))
