"""Capability of one start of a wrapper: unseals the wrapper's own secrets, at that start only.

Root generates a session key, stores it in a capability that is bound to this start ($INVOCATION_ID,
systemd.exec(5)), and seals the secrets with it into a bundle. The capability is a credential of the
unit; the bundle is not secret. At a reload root seals a new bundle for the same capability.

Both expire by two clocks: the wall clock, which can be set, and the boot clock (CLOCK_BOOTTIME of
clock_gettime(2)), which cannot be set, and which restarts at each boot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from mcpwrap.core.secrets import aead
from mcpwrap.core.secrets.aead import SealError
from mcpwrap.core.secrets.at_rest import unhex

T = TypeVar("T", "Capability", "Bundle")
VALID_FOR = timedelta(seconds=60)  # from mint to unseal; a machine that boots takes several
_WALL_STEP = timedelta(seconds=5)  # by which the clock may be set back during a boot


class Capability(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Key to the secrets of one start. `refused` is root's reason if it minted no key."""

    name: str
    capability_id: str = ""
    invocation_id: str = ""
    session_key: str = ""
    expires_at: str = ""
    expires_boot_s: int = 0
    refused: str = ""


class SealedSecret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sealed secret of a bundle."""

    name: str
    key: str
    version: int
    capability_id: str
    expires_at: str
    expires_boot_s: int
    ciphertext: str


class Bundle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All secrets of one server, sealed."""

    secrets: tuple[SealedSecret, ...]


@dataclass(frozen=True, slots=True)
class Secret:
    """Value of a secret, and its version, which only ever grows."""

    value: str
    version: int

    def __repr__(self) -> str:
        return f"Secret(version={self.version})"  # a traceback must not show the value


class CapabilityError(ValueError):
    """Failure to unseal the secrets of this start. The text has the reason, and no value."""


@dataclass(frozen=True, slots=True)
class ClockReadings:
    """Current time by both clocks."""

    wall: datetime
    boot_s: float  # since the boot, time in suspend included

    def expiry(self) -> tuple[str, int]:
        """Return the expiry of a record that is made now, by each clock, in whole seconds."""
        at = (self.wall + VALID_FOR).isoformat(timespec="seconds")
        return at, int(self.boot_s + VALID_FOR.total_seconds())


@dataclass(frozen=True, slots=True)
class Randomness:
    """Fresh values from the system's random source: an id and a session key."""

    capability_id: str
    session_key: bytes


def mint(name: str, invocation_id: str, random: Randomness, now: ClockReadings) -> Capability:
    """Return the capability of one start."""
    expires_at, expires_boot_s = now.expiry()
    return Capability(
        name=name,
        capability_id=random.capability_id,
        invocation_id=invocation_id,
        session_key=random.session_key.hex(),
        expires_at=expires_at,
        expires_boot_s=expires_boot_s,
    )


def bundle(
    capability: Capability,
    secret_by_key: Mapping[str, Secret],
    nonces: Sequence[bytes],
    now: ClockReadings,
) -> Bundle:
    """Seal the secrets for the holder of a capability, each with a new nonce."""
    expires_at, expires_boot_s = expiry = now.expiry()
    sealed = []
    for (key, secret), nonce in zip(sorted(secret_by_key.items()), nonces, strict=True):
        bound = _bound(capability, key, secret.version, expiry)
        session_key = unhex(capability.session_key)
        ciphertext = aead.seal(secret.value.encode(), session_key, nonce=nonce, bound=bound).hex()
        sealed.append(
            SealedSecret(
                name=capability.name,
                key=key,
                version=secret.version,
                capability_id=capability.capability_id,
                expires_at=expires_at,
                expires_boot_s=expires_boot_s,
                ciphertext=ciphertext,
            )
        )
    return Bundle(secrets=tuple(sealed))


def accept(text: bytes, *, name: str, invocation_id: str, now: ClockReadings) -> Capability:
    """Return the capability in a credential, if it is for this start of this server.

    Raises:
        CapabilityError: empty, changed, expired, refused by root, or for another start or server.
    """
    if not text.strip():
        raise CapabilityError("root minted no capability for this start")
    capability = _decode(text, Capability, "the capability")
    if capability.refused:
        raise CapabilityError(capability.refused)
    if capability.name != name:
        raise CapabilityError("the capability is for another server")
    if not invocation_id or capability.invocation_id != invocation_id:
        raise CapabilityError("the capability is for another start")
    _expect_current(capability, "the capability", now)
    return capability


def open_bundle(
    text: bytes,
    capability: Capability,
    *,
    keys: Sequence[str],
    held: Mapping[str, Secret],
    now: ClockReadings,
) -> dict[str, Secret]:
    """Unseal the secrets `keys` of a bundle. Each must be at least as new as the `held` one.

    Raises:
        CapabilityError: a secret is missing, changed, expired, older, or sealed for another server
            or start.
    """
    found = _decode(text, Bundle, "the bundle").secrets
    if sorted(sealed.key for sealed in found) != sorted(keys):
        raise CapabilityError("the bundle does not have the secrets that the server declares")
    return {sealed.key: _open(sealed, capability, held.get(sealed.key), now) for sealed in found}


def _open(
    sealed: SealedSecret, capability: Capability, held: Secret | None, now: ClockReadings
) -> Secret:
    what = f"the secret {sealed.key}"
    if (sealed.name, sealed.capability_id) != (capability.name, capability.capability_id):
        raise CapabilityError(f"{what} was sealed for another server or start")
    _expect_current(sealed, what, now)
    if held and sealed.version < held.version:
        raise CapabilityError(f"{what} is version {sealed.version}, and {held.version} is in use")
    expiry = (sealed.expires_at, sealed.expires_boot_s)
    bound = _bound(capability, sealed.key, sealed.version, expiry)
    try:
        value = aead.unseal(unhex(sealed.ciphertext), unhex(capability.session_key), bound=bound)
    except SealError as error:
        raise CapabilityError(f"{what} cannot be unsealed: {error}") from None
    return Secret(value.decode(), sealed.version)


def encode(record: Capability | Bundle) -> str:
    """Return the text of a record."""
    return msgspec.json.encode(record, order="deterministic").decode() + "\n"


def _decode(text: bytes, kind: type[T], what: str) -> T:
    try:
        record = msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise CapabilityError(f"{what} is malformed or cut off") from None
    if encode(record).encode() != text:
        raise CapabilityError(f"{what} was changed")
    return record


def _bound(
    capability: Capability, key: str, version: int, expiry: tuple[str, int]
) -> tuple[str, ...]:
    """Return the context of a sealed secret.

    It is server, id, start and expiry of the capability, and the secret's key, version and expiry.
    """
    c = capability
    start = (c.name, c.capability_id, c.invocation_id, c.expires_at, str(c.expires_boot_s))
    return ("in a bundle", *start, key, str(version), expiry[0], str(expiry[1]))


def _expect_current(record: Capability | SealedSecret, what: str, now: ClockReadings) -> None:
    """Refuse a record that has expired by either clock, or expires too far ahead by either.

    The latter is of another boot, or was made before the wall clock was set back.
    """
    try:
        wall_left = datetime.fromisoformat(record.expires_at) - now.wall
        boot_left = timedelta(seconds=record.expires_boot_s - now.boot_s)
    except (ValueError, TypeError, OverflowError):  # not a time, or a time without a zone
        raise CapabilityError(f"{what} has no valid expiry") from None
    if min(wall_left, boot_left) <= timedelta():
        raise CapabilityError(f"{what} has expired")
    if wall_left > VALID_FOR + _WALL_STEP or boot_left > VALID_FOR:
        raise CapabilityError(f"{what} is of another boot, or the clock was set back")
