"""Redaction of URIs, and detection of those that parsers read differently."""

import pytest

from mcpwrap.core.text.uris import bare, is_normal


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


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/hosts",
        "file:///srv/caf\u00e9/x%20y.txt",
        "https://a.test:8443/b/c?token=a%2Fb..#x",
        "https://a.test/",
        "http://127.0.0.1:8080/x",
        "http://localhost/x",
        "http://[::1]/x",
        "http://1.2.3.4a/x",
        "memo://insights",
        "urn:uuid:f81d4fae",
        "demo://resource/static/document/a.md",
        "custom:///a/..b/c.",
        "test://static/{id}",
    ],
)
def test_a_uri_that_all_read_alike(uri: str) -> None:
    assert is_normal(uri)


@pytest.mark.parametrize(
    "uri",
    [
        " file:///etc/shadow",
        "file:///etc/shadow ",
        "file:/etc/shadow",
        "file:etc/shadow",
        "FILE:///etc/shadow",
        "file:\\\\\\etc\\shadow",
        "file:////etc/shadow",
        "file://localhost/etc/shadow",
        "file:///srv/../etc/shadow",
        "file:///srv/%2e%2E/etc/shadow",
        "file:///%65tc/shadow",
        "file:///srv/.",
        "file:///srv//secret/x",
        "file:///srv/..%2F..%2fetc/passwd",
        "file:///srv/a%5Cb",
        "file:///srv/a%00",
        "file:///srv/a?x",
        "file:///srv/a#x",
        "file:///srv\t",
        "https://A.test/",
        "https://a.test",
        "https://a.test:443/",
        "http://a.test:/",
        "https:///a.test/",
        "http://127.1/x",
        "http://0x7f.0.0.1/x",
        "http://127.0.0.01/x",
        "http://2130706433/x",
        "http://0x/x",
        "http://a.test./x",
        "http://a.test:080/x",
        "http://[0:0:0:0:0:0:0:1]/x",
        "http://bob@a.test/x",
        "http://a.test:80@evil.test/x",
        "http://a.test#/x",
        "https://\uff41.test/",
        "memo://a/../b",
        "/etc/shadow",
        "",
    ],
)
def test_a_uri_that_some_read_as_another(uri: str) -> None:
    assert not is_normal(uri)
