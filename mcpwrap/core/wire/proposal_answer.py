"""Answer of the unprivileged program that parses a proposal, to root's program."""

import msgspec

MAX_ANSWER_BYTES = 256 * 1024  # the shown text, as JSON, is at most twice as long
TIMEOUT_S = 10.0


class ProposalAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text of each server, by its name, or else the error in the proposal."""

    text_by_name: dict[str, str] = {}
    wrong: str = ""


def encode(reading: ProposalAnswer) -> bytes:
    """Return the bytes of an answer."""
    return msgspec.json.encode(reading)


def decode(untrusted: bytes) -> ProposalAnswer:
    """Parse an answer.

    Raises:
        ValueError: it is malformed.
    """
    return msgspec.json.decode(untrusted, type=ProposalAnswer)
