"""`WWW-Authenticate`: parsed, malformed or not; as an error for the agent, without an address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.http.www_authenticate import Challenge, read, without_addresses


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
def test_a_header_is_parsed(header: str, challenge: Challenge) -> None:
    assert read([header]) == challenge


def test_the_first_of_several_headers_counts() -> None:
    assert read(["Basic x", 'Bearer scope="a"', 'Bearer scope="b", error=c']) == Challenge(
        scope="a", error="c"
    )


@given(st.lists(st.text(st.sampled_from('Bearer ,="\\scope\té')), max_size=3))
def test_no_header_makes_the_parser_fail(headers: list[str]) -> None:
    read(headers)


EVIL = 'resource_metadata="https://evil.example/x"'


@pytest.mark.parametrize(
    ("challenge", "told"),
    [
        ("Bearer", "Bearer"),
        ('Bearer realm="x"', 'Bearer realm="x"'),
        (f'Bearer error="invalid_token", {EVIL}, scope="a b"',
         'Bearer error="invalid_token", scope="a b"'),
        (f"Bearer {EVIL}", "Bearer"),
        ('Bearer Resource_Metadata = "https://evil.example", Error = x', "Bearer Error=x"),
        ("Bearer resource_metadata=https:evil.example", "Bearer"),
        (f'Bearer a="\\", {EVIL}, error="x"', 'Bearer error="x"'),
        (f'Bearer realm="{EVIL[:-1]}', "Bearer"),
        ('Bearer realm="resource_metadata=https://evil.example"', "Bearer"),
        ('Bearer error_description="a=b", error=x', "Bearer error=x"),
        ('Bearer realm="not ended, error=x', "Bearer error=x"),
        (f'Basic realm="x", Bearer {EVIL}', 'Basic realm="x"'),
        ("Bearer authorization_uri=x, as_uri=y, registration_endpoint=z", "Bearer"),
        ("Negotiate YWJj==", "Negotiate"),
        ("", ""),
        ('"https://evil.example"', ""),
        (" Bearer", ""),
        ("Bearer\r\nSet-Cookie: a=b", ""),
        ("Bearer \u00e9", ""),
        ("Bearer " + "x" * 4096, ""),
    ],
)  # fmt: skip
def test_an_agent_receives_the_error_and_no_address(challenge: str, told: str) -> None:
    assert without_addresses(challenge) == told
