"""What the program that reads a proposal tells root's."""

import msgspec

MAX_ANSWER_BYTES = 256 * 1024  # what is shown, as JSON, has twice its length at the most
TIMEOUT_S = 10.0


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Either the text of each server, by its name, or what is wrong with the proposal."""

    text_by_name: dict[str, str] = {}
    wrong: str = ""


def encode(reading: Reading) -> bytes:
    """Return it as bytes."""
    return msgspec.json.encode(reading)


def decode(untrusted: bytes) -> Reading:
    """Return what was encoded.

    Raises:
        ValueError: it is none.
    """
    return msgspec.json.decode(untrusted, type=Reading)
