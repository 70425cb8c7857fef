"""Sealed values: unsealed only with their key, in their context, and unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.secrets.aead import KEY_BYTES, NONCE_BYTES, SealError, key_id, seal, unseal
from tests.unit.core.tamper import cuts, flips, told

KEY = bytes(range(KEY_BYTES))
NONCE = bytes(range(100, 100 + NONCE_BYTES))
BOUND = ("at rest", "git", "TOKEN", "1")
SEALED = seal(b"ghp_wJalrXUt", KEY, nonce=NONCE, bound=BOUND)
# Written by the first version: later ones must open it.
WRITTEN = (
    "6465666768696a6b6c6d6e6f707172737475767778797a7b"  # the nonce comes first
    "1b1b89ef8864e8eef568c84bbbb4db8d276e70a340bc11528b65e50a"
)


def expect_shut(sealed: bytes, key: bytes = KEY, bound: tuple[str, ...] = BOUND) -> None:
    with pytest.raises(SealError):
        unseal(sealed, key, bound=bound)


def test_a_value_of_the_first_version_opens() -> None:
    assert SEALED.hex() == WRITTEN
    assert unseal(bytes.fromhex(WRITTEN), KEY, bound=BOUND) == b"ghp_wJalrXUt"


@given(st.binary(), st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES), st.lists(st.text()))
def test_a_value_opens_as_it_was_sealed(value: bytes, key: bytes, bound: list[str]) -> None:
    sealed = seal(value, key, nonce=NONCE, bound=tuple(bound))
    assert unseal(sealed, key, bound=tuple(bound)) == value
    assert len(sealed) == NONCE_BYTES + len(value) + 16


def test_equal_values_have_different_ciphertexts() -> None:
    other = seal(b"ghp_wJalrXUt", KEY, nonce=bytes(NONCE_BYTES), bound=BOUND)
    assert other[NONCE_BYTES:] != SEALED[NONCE_BYTES:]


def test_with_any_bit_flipped_it_stays_shut() -> None:
    for changed in flips(SEALED):
        expect_shut(changed)


def test_cut_off_or_with_more_it_stays_shut() -> None:
    for changed in cuts(SEALED):
        expect_shut(changed)


def test_with_any_bit_of_the_key_flipped_it_stays_shut() -> None:
    for key in flips(KEY):
        expect_shut(SEALED, key)


@pytest.mark.parametrize("key", [b"", KEY[:-1], KEY + b"\0"], ids=len)
def test_a_malformed_key_opens_nothing(key: bytes) -> None:
    expect_shut(SEALED, key)
    expect_shut(b"", key)


@pytest.mark.parametrize(
    "bound",
    [
        (),
        ("at rest", "git", "TOKEN"),
        ("at rest", "git", "TOKEN", "2"),
        ("at rest", "git", "TOKEN", "1", ""),
        ("at rest", "git", "TOKEN", "", "1"),
        ("at rest", "time", "TOKEN", "1"),
        ("at rest", "git", "OTHER", "1"),
        ("at rest", "TOKEN", "git", "1"),
        ("at rest", "gitT", "OKEN", "1"),  # the boundary between two texts counts
        ("at rest", "git", "TOKEN1"),
        ("in a bundle", "git", "TOKEN", "1"),
        ("AT REST", "git", "TOKEN", "1"),
    ],
)
def test_in_another_context_it_stays_shut(bound: tuple[str, ...]) -> None:
    expect_shut(SEALED, bound=bound)


@pytest.mark.parametrize(
    ("sealed", "why"),
    [
        (b"", "it is cut off"),
        (SEALED[: NONCE_BYTES - 1], "it is cut off"),
        (SEALED[:NONCE_BYTES], "it was changed, or sealed for something else"),
        (SEALED[:-1], "it was changed, or sealed for something else"),
    ],
)
def test_the_reason_of_a_refusal(sealed: bytes, why: str) -> None:
    with pytest.raises(SealError) as caught:
        unseal(sealed, KEY, bound=BOUND)
    assert str(caught.value) == why


@given(st.text("äöü€😀", min_size=3), st.integers(0), st.integers(1, 255))
def test_no_reason_reveals_the_value(value: str, position: int, change: int) -> None:
    sealed = bytearray(seal(value.encode(), KEY, nonce=NONCE, bound=BOUND))
    sealed[position % len(sealed)] ^= change
    with pytest.raises(SealError) as caught:
        unseal(bytes(sealed), KEY, bound=BOUND)
    assert value not in told(caught.value)


def test_the_name_of_a_key_is_stable_and_reveals_nothing() -> None:
    assert key_id(KEY) == "e7e64ede81bd3273"
    names = {key_id(key) for key in [KEY, *flips(KEY)]}
    assert len(names) == 1 + KEY_BYTES * 8
    assert not any(name in KEY.hex() for name in names)
