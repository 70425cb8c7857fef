"""Password hashes of approvers: `/var/lib/mcpwrap/approvers.json`, written by root for the gate."""

import msgspec


class Approver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One account, and the hash of its password as `nacl.pwhash.str` returns it (Argon2id)."""

    uid: int
    hash: str


class Approvers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of the file; without it no account has a password."""

    by_user: dict[str, Approver] = {}


def encode(approvers: Approvers) -> str:
    """Return the text of the file."""
    return msgspec.json.format(msgspec.json.encode(approvers), indent=1).decode() + "\n"


def decode(text: bytes) -> Approvers:
    """Parse the file.

    Raises:
        msgspec.MsgspecError: the content is not valid.
    """
    return msgspec.json.decode(text, type=Approvers)
