"""Authorization response that a browser returns with."""

import pytest

from mcpwrap.core.oauth.authorization_response import MAX_CHARS, expect_own, refusal
from mcpwrap.core.oauth.errors import OAuthError

OWN = "https%3A%2F%2Fas.example"


@pytest.mark.parametrize(
    ("query", "names_itself", "why"),
    [
        ("code=a&state=b", False, None),
        (f"code=a&state=b&iss={OWN}", False, None),
        (f"code=a&state=b&iss={OWN}", True, None),
        ("code=a&state=b", True, "not from"),
        ("code=a&iss=", False, "not from"),
        ("code=a&iss=https://evil.example", False, "not from"),
        (f"code=a&iss={OWN}%2F", True, "not from"),  # an exact comparison: RFC 9207 section 2.4
        (f"iss={OWN}&iss={OWN}", True, "more than once"),
        ("code=a&code=", False, "more than once"),
        ("", False, "did not return a response"),
        ("code=a b", False, "did not return a response"),
        ("code=\u00e9", False, "did not return a response"),
        ("x" * (MAX_CHARS + 1), False, "did not return a response"),
    ],
)
def test_which_responses_are_of_the_issuer(
    *, query: str, names_itself: bool, why: str | None
) -> None:
    if why is None:
        expect_own(query, issuer="https://as.example", names_itself=names_itself)
        return
    with pytest.raises(OAuthError, match=why):
        expect_own(query, issuer="https://as.example", names_itself=names_itself)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("access_denied", "access was denied in the browser"),
        ("interaction_required", "its error is interaction_required"),
        ("\x1b[2J", "it gave no valid reason"),
        ("a" * 65, "it gave no valid reason"),
        ("", "it gave no valid reason"),
    ],
)
def test_the_meaning_of_an_error_code(error: str, words: str) -> None:
    assert refusal(error) == words
