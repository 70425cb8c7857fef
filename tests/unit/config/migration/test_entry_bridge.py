"""Bridges to a URL: one is replaced by its URL; with more options it is an ordinary program."""

import pytest

from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport
from mcpwrap.config.migration.draft import EntryContext
from mcpwrap.config.migration.entry import remote_of_bridge

AROUND = EntryContext(account="alice", home="/home/alice")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("-y", "mcp-remote", "https://x.example/mcp"), HttpTransport("https://x.example/mcp")),
        (("mcp-remote@latest", "https://x.example/sse"), HttpTransport("https://x.example/sse")),
        (
            ("mcp-remote", "https://x.example/", "--header", "Authorization: Bearer a:b"),
            HttpTransport("https://x.example/", {"Authorization": "Bearer a:b"}),
        ),
        (
            ("mcp-remote", "https://x.example/", "--transport", "sse-only"),
            HttpTransport("https://x.example/"),
        ),
        (
            ("mcp-remote", "https://x.example/", "9696", "--debug", "--host", "127.0.0.1"),
            HttpTransport("https://x.example/"),
        ),
        (
            ("mcp-remote", "https://x.example/", "--header", "Authorization:${AUTH}"),
            HttpTransport("https://x.example/", {"Authorization": "Bearer abc"}),
        ),
        (
            ("mcp-remote", "https://x.example/", "--header", "X-Key: ${input:key}"),
            HttpTransport("https://x.example/", {"X-Key": "${input:key}"}),  # it is asked for later
        ),
        (
            ("mcp-remote", "https://x.example/", "--allow-http"),
            None,
        ),  # an option that mcpwrap does not know
        (("mcp-remote",), None),
        (("other", "https://x.example/"), None),
    ],
)
def test_a_bridge_to_a_url_is_that_url(
    args: tuple[str, ...], expected: HttpTransport | None
) -> None:
    env = {"AUTH": "Bearer abc"}
    assert remote_of_bridge(StdioTransport("npx", args, env)) == expected
    assert remote_of_bridge(StdioTransport("python3", args, env)) is None
