"""Answer of the unprivileged program that parses a proposal, to root's program."""

import msgspec

MAX_ANSWER_BYTES = 256 * 1024  # what is shown, as JSON, has twice its length at the most
TIMEOUT_S = 10.0


class ProposalAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text of each server, by its name, or else the error in the proposal."""

    text_by_name: dict[str, str] = {}
    wrong: str = ""


def encode(reading: ProposalAnswer) -> bytes:
    """Return it as bytes."""
    return msgspec.json.encode(reading)


def decode(untrusted: bytes) -> ProposalAnswer:
    """Return what was encoded.

    Raises:
        ValueError: it is none.
    """
    return msgspec.json.decode(untrusted, type=ProposalAnswer)
