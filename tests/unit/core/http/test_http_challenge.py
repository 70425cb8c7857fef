"""`WWW-Authenticate` of a remote server, as an error for the agent without an address."""

import pytest

from mcpwrap.core.http.www_authenticate import without_addresses

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
def test_an_agent_is_told_what_is_wrong_and_no_address(challenge: str, told: str) -> None:
    assert without_addresses(challenge) == told
