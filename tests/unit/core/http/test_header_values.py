"""Values in MCP's HTTP headers: plain, or in base64."""

import pytest

from mcpwrap.core.http import header_values


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("us-west1", "us-west1"),
        ("a b", "a b"),
        ("", ""),
        (" a", "=?base64?IGE=?="),
        ("a ", "=?base64?YSA=?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("\u00e9", "=?base64?w6k=?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),  # or it would be taken for "a"
        ("=?base64?", "=?base64?"),
    ],
)
def test_what_a_header_cannot_hold_is_in_base64(value: str, encoded: str) -> None:
    assert header_values.encoded(value) == encoded
