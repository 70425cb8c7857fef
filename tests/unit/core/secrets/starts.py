"""One start of a server with two secrets, and the wrapper's part in it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mcpwrap.core.secrets.aead import KEY_BYTES, NONCE_BYTES
from mcpwrap.core.secrets.capability import (
    Bundle,
    Capability,
    ClockReadings,
    Randomness,
    Secret,
    accept,
    bundle,
    encode,
    mint,
    open_bundle,
)

NOW = ClockReadings(datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC), 1000.0)
SECOND = timedelta(seconds=1)
START, OTHER_START = "5f3b" * 8, "0a1c" * 8  # as $INVOCATION_ID is written
SECRETS = {"TOKEN": Secret("ghp_wJalrXUt", 3), "KEY": Secret("-----BEGIN\n€\n", 1)}
NONCES = [bytes(range(n, n + NONCE_BYTES)) for n in (0, 100)]
RANDOM = Randomness("0011223344556677", bytes(range(KEY_BYTES)))
MINTED = mint("git", START, RANDOM, NOW)
BUNDLE = bundle(MINTED, SECRETS, NONCES, NOW)
KEY, TOKEN = BUNDLE.secrets  # in the order of their names


def after(passed: timedelta, now: ClockReadings = NOW) -> ClockReadings:
    """Return a later time, by both clocks."""
    return ClockReadings(now.wall + passed, now.boot_s + passed.total_seconds())


def set_wall(change: timedelta) -> ClockReadings:
    """Return NOW after a change of the wall clock."""
    return replace(NOW, wall=NOW.wall + change)


def boot_later(seconds: float) -> ClockReadings:
    """Return NOW by the wall clock, and another time by the boot clock."""
    return replace(NOW, boot_s=NOW.boot_s + seconds)


def opened(
    capability: Capability | str | bytes = MINTED,
    sealed: Bundle | str | bytes = BUNDLE,
    *,
    keys: Sequence[str] = ("TOKEN", "KEY"),
    held: Mapping[str, Secret] | None = None,
    now: ClockReadings = NOW,
) -> dict[str, Secret]:
    """Do what a wrapper does when it starts."""
    taken = accept(as_text(capability), name="git", invocation_id=START, now=now)
    return open_bundle(as_text(sealed), taken, keys=keys, held=held or {}, now=now)


def as_text(record: Capability | Bundle | str | bytes) -> bytes:
    match record:
        case bytes():
            return record
        case str():
            return record.encode()
        case _:
            return encode(record).encode()
