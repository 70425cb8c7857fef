"""What is left of a URI when it is written down."""

import pytest

from mcpwrap.core.uris import bare


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("file:///etc/hosts", "file:///etc/hosts"),
        ("https://a.test:8443/b/c?token=SEKRIT#x", "https://a.test:8443/b/c"),
        ("postgres://bob:hunter2@db/x?token=SEKRIT", "postgres://db/x"),
        ("https://a@b:c@host/", "https://host/"),
        ("https://host#/a?b@c", "https://host"),
        ("https://host?a://b:c@d", "https://host"),
        ("https://host/a@b/c", "https://host/a@b/c"),
        ("read_query", "read_query"),
        ("a?b@c", "a?b@c"),
        ("", ""),
    ],
)
def test_neither_user_nor_query(text: str, left: str) -> None:
    assert bare(text) == left
