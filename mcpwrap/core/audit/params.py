"""Params of recorded requests: hash, sealed to root's key, or plain; their encoder and decoder."""

from base64 import b64decode, b64encode
from enum import Enum
from hashlib import blake2b

import msgspec
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from mcpwrap.core.audit.reader import UNREADABLE
from mcpwrap.core.audit.records import NOTHING, Keys, Record, box_of
from mcpwrap.core.policy.result_rules import compiled, judge_result
from mcpwrap.core.policy.rules import ResultRule
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import encode_sorted
from mcpwrap.core.secrets.patterns import NAMES, VALUES
from mcpwrap.core.wire.server_files import Keep

Params = dict[str, Json]
Box = SealedBox[PrivateKey]
MAX_BYTES = 64 * 1024  # of params that are stored sealed or plain
_HASH_BYTES = 16
# A secret that matches neither list is stored in plain text.
_REMOVED = b"[redacted by "
_SECRETS = compiled(ResultRule(name="audit", redact_keys=NAMES, redact=VALUES))


class UnreadableParams(Enum):
    """Reason why the params of a recorded request cannot be read."""

    HASHED = "hashed"
    SEALED = "sealed"  # and the caller has no key
    BROKEN = "broken"  # cannot be unsealed or parsed


class StoredParams(msgspec.Struct, frozen=True):
    """Encoded params: one field is set, or none for a request without params."""

    hash: str = ""
    sealed: str = ""
    plain: msgspec.Raw = NOTHING


class ParamsEncoder:
    """Encoder of params in one of the three forms."""

    def __init__(self, keep: Keep, digest_key: bytes, box: bytes) -> None:
        """`digest_key` and `box` are those of `records.Start`."""
        self._keep = keep
        self._digest_key = digest_key
        self._box = SealedBox(PublicKey(box))

    def encode(self, params: dict[str, Json] | None) -> StoredParams:
        """Return the form that the audit stores. Equal params have equal hashes on this machine."""
        if not params:
            return StoredParams()
        text = encode_sorted(params)
        if self._keep == "hash" or len(text) > MAX_BYTES:
            return self._hashed(text)
        if self._keep == "sealed":
            return StoredParams(sealed=b64encode(self._box.encrypt(text)).decode())
        redacted = judge_result((_SECRETS,), params)
        if redacted.refusal is not None:  # the params cannot be searched for secrets
            return self._hashed(text)
        return StoredParams(plain=msgspec.Raw(encode_sorted(redacted.value)))

    def _hashed(self, text: bytes) -> StoredParams:
        return StoredParams(
            hash=blake2b(text, key=self._digest_key, digest_size=_HASH_BYTES).hexdigest()
        )


def has_secret(params: Params) -> bool:
    """Return whether params have what looks like a secret, or the mark of one that was removed."""
    redacted = judge_result((_SECRETS,), params)
    if redacted.refusal is not None or redacted.value != params:
        return True
    return _REMOVED in encode_sorted(params)


def unsealing_box(keys: Keys) -> Box:
    """Return the box that unseals params."""
    return SealedBox(box_of(keys.root_key))


def params_of(record: Record, opens: Box | None) -> Params | UnreadableParams:
    """Return the params of a request, or the reason why they cannot be read."""
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
