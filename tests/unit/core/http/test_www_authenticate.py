"""Parsing of `WWW-Authenticate`, malformed ones included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.http.www_authenticate import Challenge, read


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        ("", Challenge()),
        ("Bearer", Challenge()),
        ('Bearer scope="a b"', Challenge(scope="a b")),
        ("bearer error=invalid_token", Challenge(error="invalid_token")),
        (
            'Bearer realm="x, y=z", resource_metadata="https://a/b" , scope=a',
            Challenge(resource_metadata="https://a/b", scope="a"),
        ),
        (r'Bearer scope="a\"b\\"', Challenge(scope='a"b\\')),
        ('Basic realm="x", scope="no", Bearer scope="yes"', Challenge(scope="yes")),
        ('Bearer scope="yes", Basic realm="x", scope="no"', Challenge(scope="yes")),
        ('Negotiate, Bearer scope="yes"', Challenge(scope="yes")),
        ('Bearer scope="first", scope="second"', Challenge(scope="first")),
        ('Bearer scope="open', Challenge()),
        ('Digest scope="no"', Challenge()),
    ],
)
def test_what_a_header_says(header: str, challenge: Challenge) -> None:
    assert read([header]) == challenge


def test_the_first_of_several_headers_counts() -> None:
    assert read(["Basic x", 'Bearer scope="a"', 'Bearer scope="b", error=c']) == Challenge(
        scope="a", error="c"
    )


@given(st.lists(st.text(st.sampled_from('Bearer ,="\\scope\té')), max_size=3))
def test_nothing_that_is_said_is_too_much(headers: list[str]) -> None:
    read(headers)
