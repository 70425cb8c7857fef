"""Secrets of one start: unsealed for that start only, in time, unchanged and never older."""

from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.secrets.aead import KEY_BYTES, NONCE_BYTES, unseal
from mcpwrap.core.secrets.capability import (
    Capability,
    CapabilityError,
    ClockReadings,
    Secret,
    accept,
    bundle,
    mint,
    open_bundle,
)
from tests.unit.core.secrets.starts import (
    BUNDLE,
    MINTED,
    NONCES,
    NOW,
    RANDOM,
    SECOND,
    SECRETS,
    START,
    after,
    as_text,
    boot_later,
    opened,
    set_wall,
)


def test_a_start_has_its_secrets() -> None:
    assert opened() == SECRETS
    assert accept(as_text(MINTED), name="git", invocation_id=START, now=NOW) == MINTED


def test_a_start_without_secrets_has_none() -> None:
    assert opened(sealed=bundle(MINTED, {}, [], NOW), keys=()) == {}


def test_a_capability_names_its_start_and_its_expiry() -> None:
    minted = mint("git", START, RANDOM, NOW)
    assert minted == Capability(
        name="git",
        capability_id="0011223344556677",
        invocation_id=START,
        session_key=bytes(range(KEY_BYTES)).hex(),
        expires_at="2025-01-02T03:05:05+00:00",
        expires_boot_s=1060,
    )
    until = ("2025-01-02T03:05:05+00:00", 1060)
    assert [
        (s.name, s.key, s.version, s.capability_id, s.expires_at, s.expires_boot_s)
        for s in BUNDLE.secrets
    ] == [
        ("git", "KEY", 1, "0011223344556677", *until),
        ("git", "TOKEN", 3, "0011223344556677", *until),
    ]


def test_a_secret_is_sealed_for_one_start() -> None:
    until = ("2025-01-02T03:05:05+00:00", "1060")
    start = ("git", "0011223344556677", START, *until)
    bound = ("in a bundle", *start, "TOKEN", "3", *until)
    sealed = bytes.fromhex(BUNDLE.secrets[1].ciphertext)
    assert unseal(sealed, RANDOM.session_key, bound=bound) == b"ghp_wJalrXUt"


def test_each_secret_needs_a_nonce_of_its_own() -> None:
    assert [s.ciphertext[: NONCE_BYTES * 2] for s in BUNDLE.secrets] == [n.hex() for n in NONCES]
    for nonces in (NONCES[:1], [*NONCES, bytes(NONCE_BYTES)]):
        with pytest.raises(ValueError, match="zip"):
            bundle(MINTED, SECRETS, nonces, NOW)


values = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(values, st.builds(Secret, values, st.integers(1, 2**53))))
def test_secrets_open_as_they_were_sealed(secret_by_key: dict[str, Secret]) -> None:
    nonces = [bytes([n] * NONCE_BYTES) for n in range(len(secret_by_key))]
    sealed = bundle(MINTED, secret_by_key, nonces, NOW)
    assert opened(sealed=sealed, keys=list(secret_by_key)) == secret_by_key


EAST = timezone(timedelta(hours=9))
EXPIRED = "has expired"
ANOTHER_BOOT = "is of another boot, or the clock was set back"
DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)


@pytest.mark.parametrize(
    "now",
    [
        NOW,
        after(60 * SECOND - MICROSECOND),
        set_wall(60 * SECOND - MICROSECOND),
        boot_later(59.999),
        ClockReadings((NOW.wall + 59 * SECOND).astimezone(EAST), NOW.boot_s),
        set_wall(-5 * SECOND),  # a step, as on a machine that gets the time after it has booted
    ],
)
def test_for_a_minute_it_opens(now: ClockReadings) -> None:
    assert opened(now=now) == SECRETS


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (after(60 * SECOND), EXPIRED),
        (after(DAY), EXPIRED),
        (ClockReadings((NOW.wall + 60 * SECOND).astimezone(EAST), NOW.boot_s), EXPIRED),
        # By one clock only: the other was set back, or counts from another boot.
        (set_wall(60 * SECOND), EXPIRED),
        (boot_later(60), EXPIRED),
        (ClockReadings(NOW.wall - 30 * SECOND, NOW.boot_s + 60), EXPIRED),
        (ClockReadings(NOW.wall - DAY, NOW.boot_s + 61), EXPIRED),
        (ClockReadings(NOW.wall + 60 * SECOND, 5.0), EXPIRED),
        # Made in the future, by one clock or by both.
        (set_wall(-DAY), ANOTHER_BOOT),
        (set_wall(-5 * SECOND - MICROSECOND), ANOTHER_BOOT),
        (boot_later(-0.001), ANOTHER_BOOT),
        (boot_later(-995), ANOTHER_BOOT),  # a moment after a boot, and the clock was set as well
        (after(-DAY), ANOTHER_BOOT),
    ],
)
def test_from_that_very_second_it_stays_shut_by_either_clock(now: ClockReadings, why: str) -> None:
    with pytest.raises(CapabilityError, match=f"the capability {why}"):
        accept(as_text(MINTED), name="git", invocation_id=START, now=now)
    with pytest.raises(CapabilityError, match=f"the secret KEY {why}"):
        open_bundle(as_text(BUNDLE), MINTED, keys=("KEY", "TOKEN"), held={}, now=now)


def test_fractions_of_a_second_do_not_count() -> None:
    minted = mint("git", START, RANDOM, after(timedelta(microseconds=999_999)))
    assert minted == MINTED


def test_at_a_reload_a_new_bundle_opens_with_the_capability_of_the_start() -> None:
    now = after(timedelta(days=30))
    changed = {**SECRETS, "TOKEN": Secret("ghp_new", 4)}
    sealed = as_text(bundle(MINTED, changed, NONCES, now))
    found = open_bundle(sealed, MINTED, keys=("KEY", "TOKEN"), held=SECRETS, now=now)
    assert found == changed


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ({}, None),
        ({"TOKEN": Secret("x", 2)}, None),
        ({"TOKEN": Secret("x", 3)}, None),  # the same again: a reload without a change
        ({"TOKEN": Secret("x", 4)}, "the secret TOKEN is version 3, and 4 is in use"),
        ({"KEY": Secret("x", 1), "TOKEN": Secret("x", 4)}, "the secret TOKEN is version 3, and 4"),
        ({"KEY": Secret("x", 2), "TOKEN": Secret("x", 3)}, "the secret KEY is version 1, and 2"),
        ({"OTHER": Secret("x", 99)}, None),
    ],
)
def test_no_secret_is_followed_by_an_older_one(held: dict[str, Secret], why: str | None) -> None:
    if why is None:
        assert opened(held=held) == SECRETS
        return
    with pytest.raises(CapabilityError, match=why):
        opened(held=held)


def test_the_repr_of_a_secret_has_only_its_version() -> None:
    assert repr(Secret("ghp_wJalrXUt", 3)) == f"{Secret('ghp_wJalrXUt', 3)}" == "Secret(version=3)"
