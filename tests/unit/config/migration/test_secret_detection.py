"""Detection of secrets in an agent's file."""

import pytest

from mcpwrap.config.migration.secret_detection import holds_secret_url, is_secret, secret_arguments

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0abc.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("LEVEL", "info", False),
        ("LEVEL", "", False),
        ("API_KEY", "", False),  # there is nothing to keep secret
        ("PORT", "8080", False),
        ("TIMEOUT", "1.5", False),
        ("WAIT", "3000ms", False),
        ("VERSION", "v1.2.3", False),
        ("AWS_REGION", "eu-west-1", False),
        ("TZ", "Europe/Berlin", False),
        ("MAIL", "alice@example.com", False),
        ("PYTHONUNBUFFERED", "1", False),
        ("DATA", "/home/alice/data 2/notes.json", False),
        ("DATA", "~/data", False),
        ("DATA", ".", False),
        ("DATA", "./data 2", False),
        ("DATA", "..data2", True),
        ("BASE", "https://api.example.com:8443/v1", False),
        ("MONKEY", "banana", False),  # not a key, although it ends in one
        ("GITHUB_TOKEN", "x", True),
        ("token", "x", True),
        ("X-Api-Key", "short", True),
        ("X-Goog-Api-Key", "short", True),
        ("DB_PASSWORD", "hunter", True),
        ("PGPASSWORD", "hunter", True),
        ("PASS", "word", True),
        ("SENTRY_DSN", "https://example.com/7", True),
        ("KEY", "a", True),
        ("FOO", "s3cr3t", True),  # letters and digits: not a word, not a version
        ("FOO", "ghp_abcdefghijklmnop", True),
        ("FOO", "sk-abcdefghijklmnopqrst", True),
        ("FOO", JWT, True),
        ("FOO", "AKIAIOSFODNN7EXAMPLE", True),
        ("FOO", "-----BEGIN RSA PRIVATE KEY-----\nabc\n", True),
        ("FOO", "https://user:pass@example.com/", True),
        ("FOO", "https://example.com/?q=1", True),  # a query may be anything
        ("FOO", "postgresql://u:p@db/x", True),
        ("FOO", "/a/path\nand more", True),
        ("FOO", "half \ud800", True),
        ("FOO", "a" * 41, True),
        ("MYSQL_PWD", "hunter", True),
        ("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T/B/x", True),
        ("RPC", "https://mainnet.infura.io/v3/9aa3d95b3bc440fa88ea12eaa4456161", True),
        ("BASE", "https://x.example/123e4567-e89b-12d3-a456-426614174000/v1", False),
    ],
)
def test_what_is_not_evidently_plain_is_a_secret(name: str, value: str, *, expected: bool) -> None:
    assert is_secret(name, value) is expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("-y", "@modelcontextprotocol/server-everything@2026.8.31"), []),
        (("--token", "abc"), [2]),
        (("--token=abc",), [1]),
        (("--api-key", "abc", "x"), [2]),
        (("--api-key", "--verbose"), []),
        (("--key-file", "/home/alice/key.pem"), []),
        (("--token=/home/alice/token",), []),  # its path, and not its value
        (("--token",), []),
        (("ghp_abcdefghijklmnop",), [1]),
        (("postgresql://u:p@db/x",), [1]),
        (("--header", "Authorization: Bearer abcdefgh12"), [2]),
        (("API_KEY=abc", "node", "server.js"), [1]),  # of env(1)
        (("--header", "X-Api-Key: abc"), [2]),
        (("--config", '{"apiKey": "abc", "level": 1}'), [2]),
        (("https://x.example/?api_key=abc",), [1]),
        (("KEY=/home/alice/key.pem", "--url=https://x.example/"), []),
        ((), []),
    ],
)
def test_arguments_that_hold_a_secret(args: tuple[str, ...], expected: list[int]) -> None:
    assert secret_arguments(args) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/mcp", False),
        ("https://example.com/mcp?region=eu-west-1&v=2", False),
        ("https://example.com/mcp?api_key=abc", True),
        ("https://example.com/mcp?v=2&x=s3cr3t", True),
        ("https://u:p@example.com/mcp", True),
        ("https://mcp.example.com/api/mcp/s/NzNhMjY1ZTktYjQ2/mcp", True),
        ("https://xn--bcher-kva8445foa.example/a2025/servereverything", False),
    ],
)
def test_urls_that_hold_a_secret(url: str, *, expected: bool) -> None:
    assert holds_secret_url(url) is expected
