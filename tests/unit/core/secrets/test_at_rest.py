"""Secrets at rest: a file is unsealed only unchanged, in its place, and of the last version."""

import json
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcpwrap.core.secrets import at_rest
from mcpwrap.core.secrets.aead import KEY_BYTES, NONCE_BYTES, SealError, key_id
from mcpwrap.core.secrets.at_rest import Label, SealedSecretFile
from mcpwrap.core.wire.secret_index import SecretIndex, SecretVersion
from tests.unit.core.tamper import cuts, flips, told

KEY, OTHER_KEY = bytes(range(KEY_BYTES)), bytes(KEY_BYTES)
KEYS = {key_id(key): key for key in (KEY, OTHER_KEY)}
NONCE = bytes(range(100, 100 + NONCE_BYTES))
TOKEN = "ghp_wJalrXUt"
RECORD = at_rest.put(TOKEN, Label("git", "TOKEN", 3), KEY, NONCE)
CIPHERTEXT = RECORD.ciphertext
# Written by the first version: later ones must open it.
WRITTEN = (
    '{"format":1,"name":"git","key":"TOKEN","version":3,"sealed_with":"e7e64ede81bd3273",'
    '"ciphertext":"6465666768696a6b6c6d6e6f707172737475767778797a7b'
    '1b1b89ef8864e8eef568c84b37f37e2576f53ffddacf631410a10968"}\n'
)
texts = st.text(st.characters(exclude_categories=["Cs"]))


def opened(text: str) -> str:
    return at_rest.take(at_rest.decode(text), KEYS)


def test_a_file_of_the_first_version_opens() -> None:
    assert at_rest.encode(RECORD) == WRITTEN
    assert opened(WRITTEN) == TOKEN


@given(texts, st.builds(Label, texts, texts, st.integers(1, 2**53)), st.sampled_from([*KEYS]))
def test_a_secret_opens_as_it_was_put(value: str, label: Label, sealed_with: str) -> None:
    record = at_rest.put(value, label, KEYS[sealed_with], NONCE)
    assert at_rest.decode(at_rest.encode(record)) == record
    assert at_rest.take(record, KEYS) == value
    assert (record.name, record.key, record.version) == (label.name, label.key, label.version)
    assert record.sealed_with == sealed_with


def test_with_any_bit_flipped_a_file_stays_shut() -> None:
    for raw in flips(WRITTEN.encode()):
        with suppress(UnicodeDecodeError):  # refused by the reader of the file
            text = raw.decode()
            with pytest.raises(SealError):
                opened(text)


def test_cut_off_or_with_more_a_file_stays_shut() -> None:
    for raw in cuts(WRITTEN.encode()):
        with pytest.raises(SealError):
            opened(raw.decode())


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (replace(RECORD, name="time"), "it was changed, or sealed for something else"),
        (replace(RECORD, key="OTHER"), "it was changed, or sealed for something else"),
        (replace(RECORD, version=2), "it was changed, or sealed for something else"),
        (replace(RECORD, version=4), "it was changed, or sealed for something else"),
        (
            replace(RECORD, sealed_with=key_id(OTHER_KEY)),
            "it was changed, or sealed for something else",
        ),
        (
            replace(RECORD, sealed_with="0" * 16),
            "sealed with another store key than this machine's",
        ),
        (replace(RECORD, sealed_with=""), "sealed with another store key than this machine's"),
        (replace(RECORD, ciphertext=""), "it is cut off"),
        (replace(RECORD, ciphertext="ghij"), "it is not hexadecimal"),
        (replace(RECORD, ciphertext=CIPHERTEXT[:-1]), "it is not hexadecimal"),
        # A second form of the same bytes would be a file that root did not write.
        (replace(RECORD, ciphertext=CIPHERTEXT.upper()), "it is not hexadecimal"),
        (replace(RECORD, ciphertext=f"{CIPHERTEXT} "), "it is not hexadecimal"),
    ],
)
def test_a_changed_record_stays_shut(record: SealedSecretFile, why: str) -> None:
    with pytest.raises(SealError) as caught:
        at_rest.take(record, KEYS)
    assert str(caught.value) == why


def test_a_store_without_its_key_opens_nothing() -> None:
    for keys in ({}, {key_id(OTHER_KEY): OTHER_KEY}, {key_id(KEY): OTHER_KEY}):
        with pytest.raises(SealError):
            at_rest.take(RECORD, keys)


AS_JSON = json.loads(WRITTEN)
CHANGED = "it was changed, or written by another version of mcpwrap"


def written(**fields: object) -> str:
    """Return the text of a record with these fields, in the form that `encode` has."""
    return json.dumps(AS_JSON | fields, separators=(",", ":")) + "\n"


def test_the_helper_writes_the_form_of_the_file() -> None:
    assert written() == WRITTEN


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not a sealed secret, or it is cut off"),
        ("null\n", "it is not a sealed secret, or it is cut off"),
        ("[]\n", "it is not a sealed secret, or it is cut off"),
        ('{"name":"\\ud800"}\n', "it is not a sealed secret, or it is cut off"),  # half a character
        (WRITTEN.replace('"key":"TOKEN",', ""), "it is not a sealed secret, or it is cut off"),
        (
            WRITTEN.replace('"version":3', '"version":"3"'),
            "it is not a sealed secret, or it is cut off",
        ),
        (
            WRITTEN.replace('"version":3', '"version":3.0'),
            "it is not a sealed secret, or it is cut off",
        ),
        (written(name=None), "it is not a sealed secret, or it is cut off"),
        (written(value="x"), "it is not a sealed secret, or it is cut off"),  # a field too many
        (written(format=0), CHANGED),
        (written(format=2), CHANGED),
        (WRITTEN.replace('"format":1,', ""), CHANGED),  # refused, although it is the default
        (WRITTEN.replace('"version":3', '"version":2,"version":3'), CHANGED),
        (WRITTEN.replace("git", "gi\\u0074"), CHANGED),
        (WRITTEN.replace(",", ", "), CHANGED),
        (f"\ufeff{WRITTEN}", "it is not a sealed secret, or it is cut off"),
        (json.dumps(dict(sorted(AS_JSON.items())), separators=(",", ":")) + "\n", CHANGED),
    ],
)
def test_only_the_text_that_is_written_is_read(text: str, why: str) -> None:
    with pytest.raises(SealError) as caught:
        at_rest.decode(text)
    assert str(caught.value) == why


@given(texts)
def test_no_text_breaks_the_decoder(text: str) -> None:
    with pytest.raises(SealError):
        at_rest.decode(text)


changes: st.SearchStrategy[Mapping[str, str | int]] = (
    st.dictionaries(st.sampled_from(["name", "key", "sealed_with"]), texts, min_size=1)
    | st.builds(dict, version=st.integers())
    | st.builds(dict, ciphertext=texts | st.binary().map(bytes.hex))
)


@given(st.text("äöü€😀", min_size=3), changes)
def test_no_reason_reveals_the_value(value: str, change: Mapping[str, str | int]) -> None:
    record = at_rest.put(value, Label("git", "TOKEN", 3), KEY, NONCE)
    changed = replace(record, **change)
    assume(changed != record)
    with pytest.raises(SealError) as caught:
        at_rest.take(changed, KEYS)
    assert value not in told(caught.value)


@pytest.mark.parametrize(
    ("name", "key", "last_version", "why"),
    [
        ("git", "TOKEN", 3, None),
        ("git", "TOKEN", 2, None),  # interrupted before the list was written: newer, and accepted
        ("git", "TOKEN", 0, None),
        ("git", "TOKEN", 4, "its file has version 3, and 4 was set"),  # from an old backup
        ("time", "TOKEN", 3, "its file is for TOKEN of git"),
        ("git", "OTHER", 3, "its file is for TOKEN of git"),
        ("TOKEN", "git", 3, "its file is for TOKEN of git"),
        ("time", "TOKEN", 4, "its file is for TOKEN of git"),
    ],
)
def test_a_file_is_accepted_in_its_place_and_if_it_is_the_last_version(
    name: str, key: str, last_version: int, why: str | None
) -> None:
    if why is None:
        at_rest.expect(RECORD, name, key, last_version)
        return
    with pytest.raises(SealError) as caught:
        at_rest.expect(RECORD, name, key, last_version)
    assert str(caught.value) == why


def setting(version: int, *, is_set: bool = True) -> SecretVersion:
    return SecretVersion(version=version, is_set=is_set, changed_at="2025-01-02T03:04:05+00:00")


def test_only_a_secret_that_is_set_has_a_last_version() -> None:
    assert at_rest.last_set(setting(7)) == 7
    for known in (None, setting(7, is_set=False)):
        with pytest.raises(SealError, match="it is not set"):
            at_rest.last_set(known)


def test_the_list_changes_in_one_place() -> None:
    one = SecretIndex().with_one("git", "TOKEN", setting(1))
    two = one.with_one("git", "KEY", setting(1)).with_one("time", "TOKEN", setting(5))
    changed = two.with_one("git", "TOKEN", setting(2, is_set=False))
    assert changed.by_server == {
        "git": {"KEY": setting(1), "TOKEN": setting(2, is_set=False)},
        "time": {"TOKEN": setting(5)},
    }
    assert changed.of("git", "TOKEN") == setting(2, is_set=False)
    assert changed.without_server("git").by_server == {"time": {"TOKEN": setting(5)}}
    assert changed.without_server("nobody") == changed
    assert (SecretIndex().of("git", "TOKEN"), one.of("git", "KEY")) == (None, None)
    assert one.by_server == {"git": {"TOKEN": setting(1)}}  # as it was


def test_equal_lists_give_equal_texts() -> None:
    changes = [("b", "B"), ("a", "A"), ("b", "A")]
    forth, back = SecretIndex(), SecretIndex()
    for (name, key), (name_back, key_back) in zip(changes, reversed(changes), strict=True):
        forth = forth.with_one(name, key, setting(1))
        back = back.with_one(name_back, key_back, setting(1))
    assert at_rest.encode(forth) == at_rest.encode(back)
    assert list(forth.by_server["b"]) == ["A", "B"]  # as `mcpwrap secret list` prints them
    assert at_rest.encode(SecretIndex()) == '{"format":1,"by_server":{}}\n'


@pytest.mark.parametrize("text", ["0g", "0", "0A", "00 ", " 00", "0 0", "00\n", "٠٠", "é"])  # noqa: RUF001
def test_bytes_have_one_form(text: str) -> None:
    with pytest.raises(SealError, match="it is not hexadecimal"):
        at_rest.unhex(text)


@given(st.binary())
def test_bytes_are_read_as_they_were_written(raw: bytes) -> None:
    assert at_rest.unhex(raw.hex()) == raw
