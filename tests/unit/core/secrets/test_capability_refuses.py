"""Changed, swapped, stale or cut secrets of a start: none opens, and no error reveals a value."""

from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcpwrap.core.secrets.aead import KEY_BYTES
from mcpwrap.core.secrets.capability import (
    Bundle,
    Capability,
    CapabilityError,
    Randomness,
    SealedSecret,
    Secret,
    accept,
    bundle,
    encode,
    mint,
    open_bundle,
)
from tests.unit.core.secrets.starts import (
    BUNDLE,
    KEY,
    MINTED,
    NONCES,
    NOW,
    OTHER_START,
    RANDOM,
    SECOND,
    SECRETS,
    START,
    TOKEN,
    as_text,
    boot_later,
    opened,
    set_wall,
)
from tests.unit.core.tamper import cuts, flips, told

values = st.text(st.characters(exclude_categories=["Cs"]))


def with_one(sealed: SealedSecret) -> Bundle:
    """Return the bundle with this secret in place of TOKEN."""
    return Bundle(secrets=(KEY, sealed))


def test_with_any_bit_of_the_capability_flipped_nothing_opens() -> None:
    for changed in flips(as_text(MINTED)):
        with pytest.raises(CapabilityError):
            opened(changed)


def test_with_any_bit_of_the_bundle_flipped_nothing_opens() -> None:
    for changed in flips(as_text(BUNDLE)):
        with pytest.raises(CapabilityError):
            opened(sealed=changed)


def test_cut_off_or_with_more_nothing_opens() -> None:
    for changed in cuts(as_text(MINTED)):
        with pytest.raises(CapabilityError):
            opened(changed)
    for changed in cuts(as_text(BUNDLE)):
        with pytest.raises(CapabilityError):
            opened(sealed=changed)


EARLIER, LATER = "2025-01-02T03:05:04+00:00", "2025-01-02T03:05:11+00:00"
ANOTHER_BOOT = "is of another boot, or the clock was set back"
DOES_NOT_OPEN = "the secret TOKEN cannot be unsealed: it was changed, or sealed for something else"
KEY_DOES_NOT_OPEN = (
    "the secret KEY cannot be unsealed: it was changed, or sealed for something else"
)


@pytest.mark.parametrize(
    ("capability", "why"),
    [
        ("", "root minted no capability for this start"),  # as a cold start's unit leaves it
        ("\n", "root minted no capability for this start"),
        ("null\n", "the capability is malformed or cut off"),
        (b"\xff", "the capability is malformed or cut off"),
        (b'{"name":"\xff"}\n', "the capability is malformed or cut off"),
        ('{"name":"\\ud800"}\n', "the capability is malformed or cut off"),  # half a character
        ('{"name":"git"}\n', "the capability was changed"),  # its fields are all written
        (encode(MINTED).replace(",", ", "), "the capability was changed"),
        (encode(BUNDLE), "the capability is malformed or cut off"),
        (replace(MINTED, refused="the secret X is not set"), "the secret X is not set"),
        (Capability(name="git", refused="damaged"), "damaged"),
        (replace(MINTED, name="time"), "the capability is for another server"),
        (replace(MINTED, name=""), "the capability is for another server"),
        (replace(MINTED, invocation_id=OTHER_START), "the capability is for another start"),
        (replace(MINTED, invocation_id=""), "the capability is for another start"),
        (replace(MINTED, expires_at=""), "the capability has no valid expiry"),
        (replace(MINTED, expires_at="soon"), "the capability has no valid expiry"),
        # Without a zone it could be any of 26 hours.
        (
            replace(MINTED, expires_at="2025-01-02T03:05:05"),
            "the capability has no valid expiry",
        ),
        (replace(MINTED, expires_at="2025-01-02T03:04:05+00:00"), "the capability has expired"),
        (replace(MINTED, expires_at="2025-01-02T04:05:05+02:00"), "the capability has expired"),
        (replace(MINTED, expires_at="0001-01-01T00:00:00+23:59"), "the capability has expired"),
        (replace(MINTED, expires_boot_s=1000), "the capability has expired"),
        (replace(MINTED, expires_boot_s=0), "the capability has expired"),
        (encode(MINTED).replace('"expires_boot_s":1060,', ""), "the capability was changed"),
        (replace(MINTED, expires_at=LATER), f"the capability {ANOTHER_BOOT}"),
        (replace(MINTED, expires_boot_s=1061), f"the capability {ANOTHER_BOOT}"),
        (replace(MINTED, expires_boot_s=2**63), "the capability has no valid expiry"),
        # The following are refused by the context that the secrets were sealed for.
        (
            replace(MINTED, capability_id="0011223344556678"),
            "the secret KEY was sealed for another server or start",
        ),
        (replace(MINTED, expires_at=EARLIER), KEY_DOES_NOT_OPEN),
        (replace(MINTED, expires_boot_s=1059), KEY_DOES_NOT_OPEN),
        (replace(MINTED, session_key="00" * KEY_BYTES), KEY_DOES_NOT_OPEN),
        (replace(MINTED, session_key="00"), KEY_DOES_NOT_OPEN),
        (
            replace(MINTED, session_key=MINTED.session_key.upper()),
            "the secret KEY cannot be unsealed: it is not hexadecimal",
        ),
        (replace(MINTED, session_key=""), KEY_DOES_NOT_OPEN),
    ],
)
def test_a_capability_is_of_this_start_and_server_as_root_wrote_it(
    capability: Capability | str | bytes, why: str
) -> None:
    with pytest.raises(CapabilityError) as caught:
        opened(capability)
    assert str(caught.value) == why


@pytest.mark.parametrize("invocation_id", ["", OTHER_START, START[:-1], START.upper()])
def test_a_start_takes_no_capability_of_another(invocation_id: str) -> None:
    for capability in (MINTED, replace(MINTED, invocation_id="")):  # two empty ids do not match
        with pytest.raises(CapabilityError, match="the capability is for another start"):
            accept(as_text(capability), name="git", invocation_id=invocation_id, now=NOW)


def test_even_a_capability_that_is_accepted_opens_no_secrets_of_another() -> None:
    for changed in (
        replace(MINTED, name="time"),
        replace(MINTED, capability_id="x"),
        replace(MINTED, invocation_id=OTHER_START),
        replace(MINTED, session_key="00" * KEY_BYTES),
        replace(MINTED, expires_at=LATER),
        replace(MINTED, expires_boot_s=1061),
    ):
        with pytest.raises(CapabilityError):
            open_bundle(as_text(BUNDLE), changed, keys=("KEY", "TOKEN"), held={}, now=NOW)


@pytest.mark.parametrize("field", ["name", "capability_id"])
def test_nor_when_the_secrets_claim_to_be_for_it(field: str) -> None:
    changed = replace(MINTED, **{field: "time"})
    sealed = Bundle(secrets=tuple(replace(s, **{field: "time"}) for s in BUNDLE.secrets))
    with pytest.raises(CapabilityError, match=KEY_DOES_NOT_OPEN):
        open_bundle(as_text(sealed), changed, keys=("KEY", "TOKEN"), held={}, now=NOW)


SEALED_FOR_ANOTHER = "the secret TOKEN was sealed for another server or start"
NOT_DECLARED = "the bundle does not have the secrets that the server declares"


@pytest.mark.parametrize(
    ("sealed", "why"),
    [
        ("", "the bundle is malformed or cut off"),
        ("[]\n", "the bundle is malformed or cut off"),
        (encode(MINTED), "the bundle is malformed or cut off"),
        (b'{"secrets":[],"\xff":1}\n', "the bundle is malformed or cut off"),
        (
            encode(BUNDLE).replace('"version":3', '"version":"3"'),
            "the bundle is malformed or cut off",
        ),
        (
            encode(BUNDLE).replace('"version":3', '"version":2,"version":3'),
            "the bundle was changed",
        ),
        (encode(BUNDLE).rstrip(), "the bundle was changed"),
        (Bundle(secrets=()), NOT_DECLARED),
        (Bundle(secrets=(KEY,)), NOT_DECLARED),
        (Bundle(secrets=(KEY, KEY)), NOT_DECLARED),
        (Bundle(secrets=(KEY, TOKEN, TOKEN)), NOT_DECLARED),
        (Bundle(secrets=(KEY, TOKEN, replace(TOKEN, key="MORE"))), NOT_DECLARED),
        (with_one(replace(TOKEN, key="OTHER")), NOT_DECLARED),
        (
            Bundle(secrets=(replace(KEY, key="TOKEN"), replace(TOKEN, key="KEY"))),  # swapped
            DOES_NOT_OPEN,
        ),
        (with_one(replace(KEY, key="TOKEN")), DOES_NOT_OPEN),
        (with_one(replace(TOKEN, name="time")), SEALED_FOR_ANOTHER),
        (with_one(replace(TOKEN, capability_id="8899aabbccddeeff")), SEALED_FOR_ANOTHER),
        (with_one(replace(TOKEN, version=2)), DOES_NOT_OPEN),
        (with_one(replace(TOKEN, version=4)), DOES_NOT_OPEN),
        (with_one(replace(TOKEN, version=-3)), DOES_NOT_OPEN),
        (with_one(replace(TOKEN, expires_at=EARLIER)), DOES_NOT_OPEN),
        (with_one(replace(TOKEN, expires_at=LATER)), f"the secret TOKEN {ANOTHER_BOOT}"),
        (with_one(replace(TOKEN, expires_boot_s=1059)), DOES_NOT_OPEN),
        (with_one(replace(TOKEN, expires_boot_s=1061)), f"the secret TOKEN {ANOTHER_BOOT}"),
        (with_one(replace(TOKEN, expires_boot_s=1000)), "the secret TOKEN has expired"),
        # As an earlier version of mcpwrap wrote it.
        (
            encode(BUNDLE).replace('"expires_boot_s":1060,', ""),
            "the bundle is malformed or cut off",
        ),
        (
            with_one(replace(TOKEN, expires_at="2025-01-02T03:05:05Z")),
            DOES_NOT_OPEN,
        ),  # the same time
        (
            with_one(replace(TOKEN, expires_at="2025-01-02T03:04:05+00:00")),
            "the secret TOKEN has expired",
        ),
        (
            with_one(replace(TOKEN, expires_at="2025-01-02T03:05:05")),
            "the secret TOKEN has no valid expiry",
        ),
        (
            with_one(replace(TOKEN, ciphertext="")),
            "the secret TOKEN cannot be unsealed: it is cut off",
        ),
        (with_one(replace(TOKEN, ciphertext=KEY.ciphertext)), DOES_NOT_OPEN),
        (
            with_one(replace(TOKEN, ciphertext=TOKEN.ciphertext.upper())),
            "the secret TOKEN cannot be unsealed: it is not hexadecimal",
        ),
    ],
)
def test_a_bundle_has_all_secrets_as_root_sealed_them(
    sealed: Bundle | str | bytes, why: str
) -> None:
    with pytest.raises(CapabilityError) as caught:
        opened(sealed=sealed)
    assert str(caught.value) == why


@pytest.mark.parametrize("keys", [(), ("KEY",), ("KEY", "TOKEN", "MORE"), ("KEY", "OTHER")])
def test_a_bundle_has_the_secrets_that_are_declared_and_no_others(keys: tuple[str, ...]) -> None:
    with pytest.raises(CapabilityError, match=NOT_DECLARED):
        opened(keys=keys)


def test_a_bundle_of_another_start_or_server_opens_nothing() -> None:
    others = [
        mint("time", START, RANDOM, NOW),
        mint("git", OTHER_START, RANDOM, NOW),
        mint("git", START, Randomness("8899aabbccddeeff", RANDOM.session_key), NOW),
        mint("git", START, Randomness(RANDOM.capability_id, bytes(KEY_BYTES)), NOW),
        mint("git", START, RANDOM, set_wall(-SECOND)),
        mint("git", START, RANDOM, boot_later(-1)),
    ]
    for other in others:
        with pytest.raises(CapabilityError):
            opened(sealed=bundle(other, SECRETS, NONCES, NOW))


def test_an_old_bundle_is_not_made_new_by_its_version() -> None:
    newer = with_one(replace(TOKEN, version=5))
    with pytest.raises(CapabilityError, match=DOES_NOT_OPEN):
        opened(sealed=newer, held={"TOKEN": Secret("x", 4)})


changes: st.SearchStrategy[Mapping[str, str | int]] = (
    st.dictionaries(
        st.sampled_from(["name", "key", "capability_id", "expires_at"]), values, min_size=1
    )
    | st.builds(dict, version=st.integers())
    | st.builds(dict, ciphertext=values | st.binary().map(bytes.hex))
)


@given(st.text("äöü€😀", min_size=3), changes)
def test_no_reason_reveals_the_value(value: str, change: Mapping[str, str | int]) -> None:
    [sealed] = bundle(MINTED, {"TOKEN": Secret(value, 3)}, NONCES[:1], NOW).secrets
    changed = replace(sealed, **change)
    assume(changed != sealed)
    with pytest.raises(CapabilityError) as caught:
        opened(sealed=Bundle(secrets=(changed,)), keys=("TOKEN",))
    assert value not in told(caught.value)
    assert MINTED.session_key not in told(caught.value)


@given(st.binary() | st.text().map(str.encode))
def test_no_bytes_break_a_decoder(untrusted: bytes) -> None:
    with pytest.raises(CapabilityError):
        accept(untrusted, name="git", invocation_id=START, now=NOW)
    with pytest.raises(CapabilityError):
        open_bundle(untrusted, MINTED, keys=("KEY",), held={}, now=NOW)
