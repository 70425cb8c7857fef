"""Params of recorded requests: plain, sealed to root's key, or only a hash."""

from base64 import b64decode
from enum import Enum

import msgspec
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from mcpwrap.core.audit.reader import UNREADABLE
from mcpwrap.core.audit.records import Keys, Record, box_of
from mcpwrap.core.protocol.json_value import Json

Params = dict[str, Json]
Box = SealedBox[PrivateKey]


class UnreadableParams(Enum):
    """Reason for which the params of a request are not known."""

    HASHED = "hashed"
    SEALED = "sealed"  # and the caller has no key
    BROKEN = "broken"  # they do not open, or are no params


def box(keys: Keys) -> Box:
    """Return what opens sealed params."""
    return SealedBox(box_of(keys.root_key))


def params_of(record: Record, opens: Box | None) -> Params | UnreadableParams:
    """Return the params of a request, or why there are none."""
    if bytes(record.plain):
        return _decoded(bytes(record.plain))
    if not record.sealed:
        return UnreadableParams.HASHED
    if opens is None:
        return UnreadableParams.SEALED
    try:
        return _decoded(opens.decrypt(b64decode(record.sealed, validate=True)))
    except (CryptoError, ValueError):  # binascii.Error is a ValueError
        return UnreadableParams.BROKEN


def _decoded(text: bytes) -> Params | UnreadableParams:
    try:
        return msgspec.json.decode(text, type=dict)
    except UNREADABLE:
        return UnreadableParams.BROKEN
