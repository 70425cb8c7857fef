"""Reasons for a missing response of a remote server."""

import pytest

from mcpwrap.core.http import upstream_errors


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "is not valid yet"),
        (18, "is self-signed, and not issued by an authority that this machine trusts"),
        (62, "is for another name"),
        (1, "cannot be verified (OpenSSL 1)"),
    ],
)
def test_the_error_of_a_certificate(code: int, words: str) -> None:
    told = str(upstream_errors.bad_certificate(code))
    assert told == f"The remote server's certificate {words} [E-REMOTE-CERTIFICATE]"


@pytest.mark.parametrize(
    ("status", "words"),
    [(101, "sends no message (HTTP 101 Switching Protocols)"), (0, "sends no message (HTTP 0)")],
)
def test_a_status_that_is_not_an_error(status: int, words: str) -> None:
    told = str(upstream_errors.refused(status))
    assert told == f"The remote server {words} [E-REMOTE-STATUS]"
