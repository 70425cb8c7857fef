"""Recorded params: equal ones have equal hashes, and only the configured form is stored."""

from base64 import b64decode

import msgspec
import pytest
from nacl.exceptions import CryptoError
from nacl.public import SealedBox

from mcpwrap.core.audit import records
from mcpwrap.core.audit.params import MAX_BYTES, ParamsEncoder, StoredParams
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.wire.server_files import Keep

ROOT_KEY, OTHER_KEY = bytes(range(32)), bytes(32)
MARKER = "[redacted by audit]"
PARAMS: dict[str, Json] = {"name": "t", "arguments": {"a": [1, "ü"], "b": None}}


def keeper(keep: Keep, root_key: bytes = ROOT_KEY) -> ParamsEncoder:
    start = records.start_of(root_key, epoch=1)
    return ParamsEncoder(keep, start.digest_key, start.box)


@pytest.mark.parametrize("keep", ["hash", "sealed", "plain"])
def test_empty_params_are_not_stored(keep: Keep) -> None:
    assert keeper(keep).encode(None) == keeper(keep).encode({}) == StoredParams()


def test_equal_params_have_equal_hashes() -> None:
    kept = keeper("hash").encode(PARAMS)
    assert (len(kept.hash), kept.sealed, bytes(kept.plain)) == (32, "", b"")
    other_order: dict[str, Json] = {"arguments": {"b": None, "a": [1, "ü"]}, "name": "t"}
    assert keeper("hash").encode(other_order) == kept


@pytest.mark.parametrize(
    "params",
    [
        {"name": "t", "arguments": {"a": ["ü", 1], "b": None}},  # lists of another order differ
        {"name": "t", "arguments": {"a": [1, "ü"]}},
        {"name": "t", "arguments": {"a": [1, "u"], "b": None}},
        {"name": "t", "arguments": {"a": ["1", "ü"], "b": None}},
    ],
)
def test_other_params_have_other_hashes(params: dict[str, Json]) -> None:
    assert keeper("hash").encode(params) != keeper("hash").encode(PARAMS)


def test_a_hash_depends_on_the_machines_key() -> None:
    assert keeper("hash").encode(PARAMS) != keeper("hash", OTHER_KEY).encode(PARAMS)


def test_all_epochs_of_a_machine_hash_alike() -> None:
    assert records.start_of(ROOT_KEY, 1).digest_key == records.start_of(ROOT_KEY, 2).digest_key


def test_sealed_params_are_unsealed_by_root_alone() -> None:
    kept = keeper("sealed").encode(PARAMS)
    assert (kept.hash, bytes(kept.plain)) == ("", b"")
    sealed = b64decode(kept.sealed)
    assert SealedBox(records.box_of(ROOT_KEY)).decrypt(sealed) == (
        '{"arguments":{"a":[1,"ü"],"b":null},"name":"t"}'.encode()
    )
    with pytest.raises(CryptoError):
        SealedBox(records.box_of(OTHER_KEY)).decrypt(sealed)
    with pytest.raises(CryptoError):
        SealedBox(records.box_of(ROOT_KEY)).decrypt(sealed[:-1] + bytes([sealed[-1] ^ 1]))
    assert kept != keeper("sealed").encode(PARAMS)  # so guesses cannot be compared with it


# Each row: a secret, and a similar text that is not a secret and stays.
FORMS = [
    ('{"password":"x"}', '{"passage":"x"}'),
    ('{"DB_PASSWORD":"x"}', '{"DB_HOST":"x"}'),
    ('{"apiKey":"x"}', '{"key":"x"}'),
    ('{"Authorization":"x"}', '{"author":"x"}'),
    ('{"token":{"deep":1}}', '{"tokens":{"deep":1}}'),  # a count of a language model's tokens
    ('{"refresh_token":"x"}', '{"token_count":3}'),
    ('[{"client_secret":"x"}]', '[{"client":"x"}]'),
    ('"sk-abcdefghijklmnop1234"', '"sk-short"'),
    ('"ghp_abcdefghij0123456789"', '"ghp_"'),
    ('"AKIAIOSFODNN7EXAMPLE"', '"AKIAIOSFODNN7EXAMPL"'),
    ('"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"', '"eyJhbGciOiJIUzI1NiJ9"'),
    ('"Bearer abcdefgh1234"', '"the bearer of news"'),
    ('"postgres://me:hunter2@db/x"', '"postgres://db:5432/x"'),
    (
        '"-----BEGIN RSA PRIVATE KEY-----\\nMII\\n-----END RSA PRIVATE KEY-----"',
        '"-----BEGIN CERTIFICATE-----\\nMII\\n-----END CERTIFICATE-----"',
    ),
    ('"-----BEGIN PRIVATE KEY-----\\ncut off"', '"BEGIN PRIVATE KEY"'),
    ('"{\\"password\\":\\"x\\"}"', '"{\\"passage\\":\\"x\\"}"'),  # JSON in a text
]


@pytest.mark.parametrize(("secret", "twin"), FORMS)
def test_plain_params_are_without_what_looks_like_a_secret(secret: str, twin: str) -> None:
    def kept(text: str) -> tuple[bytes, bytes]:
        params = msgspec.json.decode(f'{{"arguments":{text}}}')
        return bytes(keeper("plain").encode(params).plain), msgspec.json.encode(params)

    after, before = kept(secret)
    assert MARKER.encode() in after
    assert after != before
    after, before = kept(twin)
    assert after == before


def test_encoding_does_not_change_the_params() -> None:
    params: dict[str, Json] = {"arguments": {"password": "x", "deep": ["Bearer abcdefgh1234"]}}
    keeper("plain").encode(params)
    assert params == {"arguments": {"password": "x", "deep": ["Bearer abcdefgh1234"]}}


@pytest.mark.parametrize("keep", ["sealed", "plain"])
def test_large_params_are_hashed(keep: Keep) -> None:
    around = len('{"text":""}')
    just: dict[str, Json] = {"text": "x" * (MAX_BYTES - around)}
    over: dict[str, Json] = {"text": "x" * (MAX_BYTES - around + 1)}
    assert keeper(keep).encode(just).hash == ""
    assert keeper(keep).encode(over) == keeper("hash").encode(over)


def test_params_that_cannot_be_searched_are_hashed() -> None:
    depth = 400  # of JSON in a string, which the message parser does not parse
    params: dict[str, Json] = {"arguments": '{"a":' * depth + "1" + "}" * depth}
    assert keeper("plain").encode(params) == keeper("hash").encode(params) != StoredParams()
