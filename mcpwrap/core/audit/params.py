"""Encoder of request params for the audit: hash, sealed to root's key, or plain."""

from base64 import b64encode
from hashlib import blake2b

import msgspec
from nacl.public import PublicKey, SealedBox

from mcpwrap.core.audit.records import NOTHING
from mcpwrap.core.policy.result_rules import compiled, judge_result
from mcpwrap.core.policy.rules import ResultRule
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.protocol.strict_json import encode_sorted
from mcpwrap.core.secrets.patterns import NAMES, VALUES
from mcpwrap.core.wire.server_files import Keep

MAX_BYTES = 64 * 1024  # of params that are kept as a whole
_HASH_BYTES = 16
# Who writes a password elsewhere finds it in the audit.
_SECRETS = compiled(ResultRule(name="audit", redact_keys=NAMES, redact=VALUES))


class StoredParams(msgspec.Struct, frozen=True):
    """Encoded params: one of the fields is set, or none if there were no params."""

    hash: str = ""
    sealed: str = ""
    plain: msgspec.Raw = NOTHING


class ParamsEncoder:
    """Encoder of params in one of the three forms."""

    def __init__(self, keep: Keep, digest_key: bytes, box: bytes) -> None:
        """`digest_key` and `box` are those of `audit.Start`."""
        self._keep = keep
        self._digest_key = digest_key
        self._box = SealedBox(PublicKey(box))

    def encode(self, params: dict[str, Json] | None) -> StoredParams:
        """Return what is written down of params. Equal ones have equal hashes on this machine."""
        if not params:
            return StoredParams()
        text = encode_sorted(params)
        if self._keep == "hash" or len(text) > MAX_BYTES:
            return self._hashed(text)
        if self._keep == "sealed":
            return StoredParams(sealed=b64encode(self._box.encrypt(text)).decode())
        redacted = judge_result((_SECRETS,), params)
        if redacted.refusal is not None:  # it cannot be searched
            return self._hashed(text)
        return StoredParams(plain=msgspec.Raw(encode_sorted(redacted.value)))

    def _hashed(self, text: bytes) -> StoredParams:
        return StoredParams(
            hash=blake2b(text, key=self._digest_key, digest_size=_HASH_BYTES).hexdigest()
        )
