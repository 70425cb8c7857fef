"""Audit records: each is one line of ASCII, and decodes to an equal record."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.public import PublicKey, SealedBox

from mcpwrap.core.audit import records
from mcpwrap.core.audit.records import (
    MAX_TEXT_CHARS,
    ChainHead,
    Record,
    SessionClosed,
    SessionHeads,
    box_of,
    cut,
    decode_event,
    decode_record,
    encode,
    part_file,
    start_of,
)
from tests.unit.core.audit_records import NASTY
from tests.unit.core.audits import ROOT_KEY


def record(target: str, **fields: object) -> Record:
    values = {"n": 3, "at": 1.5, "server": "s", "uid": 1000, "session": "1-2", "sender": "agent"}
    return Record(decision="blocked", target=target, **values, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", NASTY)
def test_text_from_outside_cannot_begin_a_line(text: str) -> None:
    line = encode(record(text))
    assert line.isascii()
    assert len(line.decode().splitlines()) == 1
    assert not [c for c in line if c < 32]
    assert decode_record(line) == record(text)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(), st.integers() | st.none())
def test_every_record_comes_back(target: str, untrusted_why: str, number: int | None) -> None:
    why = untrusted_why.encode(errors="replace").decode()
    number = None if number is None else number % 2**53
    before = record(target, why=why, id=number)
    line = encode(before)
    assert line.isascii()
    assert b"\n" not in line
    assert decode_record(line) == before


def test_params_are_kept_as_they_were_written() -> None:
    for params in (b'{"a":[1.0,null,"\\n"]}', '{"a":"\u2028é"}'.encode()):
        line = encode(record("t", plain=msgspec.Raw(params)))
        assert line.isascii()
        kept = decode_record(line).plain
        assert msgspec.json.decode(kept) == msgspec.json.decode(params)
    assert b"plain" not in encode(record("t"))


def test_events_decode_to_their_types() -> None:
    for event in (
        SessionHeads(n=1, at=2.0, heads={"1-1": ChainHead(3, "00")}),
        SessionClosed(n=1, at=2.0, session="1-1", head=ChainHead(3, "00"), torn=7),
    ):
        assert decode_event(encode(event)) == event
    with pytest.raises(msgspec.MsgspecError):
        decode_event(encode(record("t")))
    with pytest.raises(msgspec.MsgspecError):
        decode_record(b'{"what":"ended","n":1,"at":2.0}')


@pytest.mark.parametrize(
    ("chars", "kept"), [(0, 0), (MAX_TEXT_CHARS, MAX_TEXT_CHARS), (257, 259), (10**6, 259)]
)
def test_a_long_text_is_cut(chars: int, kept: int) -> None:
    assert len(cut("é" * chars)) == kept


def test_parts_of_sessions_have_names_of_their_own() -> None:
    assert [part_file("12-3", part) for part in (1, 2)] == ["3-1.jsonl", "3-2.jsonl"]


def test_each_epoch_has_another_key_and_all_have_one_box() -> None:
    starts = [start_of(ROOT_KEY, epoch) for epoch in (1, 2, 11)]
    assert len({bytes(start.key) for start in starts} | {starts[0].digest_key, ROOT_KEY}) == 5
    assert len({(start.digest_key, start.box) for start in starts}) == 1
    assert start_of(bytes(32), 1).key != starts[0].key
    # The gate reads what root writes.
    assert msgspec.json.decode(msgspec.json.encode(starts[0]), type=records.Start) == starts[0]


def test_only_the_root_key_unseals() -> None:
    sealed = SealedBox(PublicKey(start_of(ROOT_KEY, 7).box)).encrypt(b"{}")
    assert SealedBox(box_of(ROOT_KEY)).decrypt(sealed) == b"{}"
