"""Recorded params: read back from plain, from sealed, or not at all."""

import msgspec
import pytest

from mcpwrap.core.audit.params import UnreadableParams, params_of
from tests.unit.core.audit_records import OPENS, record, sealed


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({}, UnreadableParams.HASHED),
        ({"hash": "00"}, UnreadableParams.HASHED),
        ({"sealed": sealed(b'{"name":"t"}')}, {"name": "t"}),
        ({"sealed": sealed(b'{"name":"t"}', bytes(32))}, UnreadableParams.BROKEN),
        ({"sealed": sealed(b"[]")}, UnreadableParams.BROKEN),
        ({"sealed": sealed(b'{"a":' + b"[" * 9000)}, UnreadableParams.BROKEN),
        ({"sealed": "AAAA"}, UnreadableParams.BROKEN),
        ({"sealed": "no Base64"}, UnreadableParams.BROKEN),
        ({"sealed": "\u2028"}, UnreadableParams.BROKEN),
    ],
)
def test_params_are_read(fields: dict[str, object], known: object) -> None:
    assert params_of(record(**fields), OPENS) == known


def test_sealed_params_need_the_key() -> None:
    assert params_of(record(sealed=sealed(b"{}")), None) is UnreadableParams.SEALED


def test_plain_params_need_no_key() -> None:
    plain = msgspec.structs.replace(record(), plain=msgspec.Raw(b'{"x":1}'))
    assert params_of(plain, None) == {"x": 1}
