"""Authorization response that a browser brings back."""

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
        (f"code=a&iss={OWN}%2F", True, "not from"),  # to the letter: RFC 9207 section 2.4
        (f"iss={OWN}&iss={OWN}", True, "twice"),
        ("code=a&code=", False, "twice"),
        ("", False, "no answer"),
        ("code=a b", False, "no answer"),
        ("code=\u00e9", False, "no answer"),
        ("x" * (MAX_CHARS + 1), False, "no answer"),
    ],
)
def test_which_answers_are_of_whom_was_asked(
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
        ("interaction_required", "it says interaction_required"),
        ("\x1b[2J", "it refuses"),
        ("a" * 65, "it refuses"),
        ("", "it refuses"),
    ],
)
def test_why_it_refuses(error: str, words: str) -> None:
    assert refusal(error) == words
