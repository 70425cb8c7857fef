"""Reasons for a missing answer of a remote server."""

import pytest

from mcpwrap.core.http import upstream_errors


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "is not valid yet"),
        (18, "is signed by itself, and not by an authority that this machine knows"),
        (62, "is for another name"),
        (1, "does not verify (OpenSSL 1)"),
    ],
)
def test_what_is_wrong_with_a_certificate(code: int, words: str) -> None:
    told = str(upstream_errors.bad_certificate(code))
    assert told == f"The remote server's certificate {words}"


@pytest.mark.parametrize(
    ("status", "words"),
    [(101, "answers nothing (HTTP 101 Switching Protocols)"), (0, "answers nothing (HTTP 0)")],
)
def test_a_status_that_is_no_error(status: int, words: str) -> None:
    assert str(upstream_errors.refused(status)) == f"The remote server {words}"
