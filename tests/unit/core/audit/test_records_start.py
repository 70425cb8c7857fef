"""Start of an audit epoch: root's keys for the gate, and the form of the gate's records."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.audit import records
from mcpwrap.core.audit.records import Record

ROOT_KEY, BOOT = bytes(range(32)), bytes(range(16))


def test_a_start_is_decoded_and_its_buffer_zeroed() -> None:
    start = records.start_of(ROOT_KEY, 7, BOOT)
    file = bytearray(records.encode_start(start))
    assert records.decode_start(file) == start
    assert file == bytes(len(file))


def test_each_epoch_has_its_own_key_and_the_common_ones() -> None:
    one, two = (records.start_of(ROOT_KEY, epoch) for epoch in (1, 2))
    assert one.key != two.key
    assert (one.digest_key, one.box) == (two.digest_key, two.box)
    secrets = [bytes(one.key), one.digest_key, bytes(records.box_of(ROOT_KEY)), ROOT_KEY]
    assert len(set(secrets)) == len(secrets)


@pytest.mark.parametrize("size", [0, 32, 119, 121])
def test_a_start_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"{size} bytes"):
        records.decode_start(bytearray(size))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_record_is_one_line_of_ascii_that_means_the_same(text: str) -> None:
    record = Record(
        n=0, at=1.5, server="git", uid=1, session="1-1", sender="agent", decision="x", target=text
    )
    encoded = records.encode(record)
    assert encoded.isascii()
    assert encoded.splitlines() == [encoded]
    assert records.decode_record(encoded) == record
    assert msgspec.json.decode(encoded)["target"] == text if text else True
