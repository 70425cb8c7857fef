"""Desktop notifications: a name cannot add markup, an escape sequence or a line."""

import html
import re

import msgspec
import pytest

from mcpwrap.core.notify.desktop import approval_notification, drift_notification
from mcpwrap.core.notify.drift import DriftItem
from mcpwrap.core.wire.approval_socket import Pending

ONE = Pending(
    id="k3b7", digest="", size=0, agent_uid=1000, server="sqlite", session="", method="tools/call",
    target="write_query", rule="", message="", asked_at=0.0, expires_at=0.0, times=1, waiting=1,
    may="proof",
)  # fmt: skip
NOTIFY_SENDS = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)


def as_notify_send_reads(body: str) -> str:
    """Return a body as notify-send sends it: after g_strcompress of GLib."""
    named = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}

    def read(found: re.Match[str]) -> str:
        text = found[1]
        return chr(int(text, 8)) if text[0] in "01234567" else named.get(text, text)

    return NOTIFY_SENDS.sub(read, body)


def test_one_request_is_named_with_a_link_to_it() -> None:
    assert approval_notification([ONE], 1, "alice") == (
        "mcpwrap: a request waits for approval",
        (
            "sqlite: write_query\nrequested by an agent of alice\nmcpwrap approvals show k3b7\n"
            "where mcpwrap-web.socket is on: http://127.0.0.1:52080/approval/k3b7"
        ),
    )


def test_held_definitions_are_named_with_the_command_that_shows_them() -> None:
    held = msgspec.structs.replace(ONE, server="github", method="pins", target="1 new, 2 changed")
    assert approval_notification([held], 1, "alice") == (
        "mcpwrap: tools of a server are held back",
        (
            "github: 1 new, 2 changed\nmcpwrap tools diff github shows it\n"
            "where mcpwrap-web.socket is on: http://127.0.0.1:52080/approval/k3b7"
        ),
    )


def test_several_are_one_notification() -> None:
    assert approval_notification([ONE] * 3, 5, "alice") == (
        "mcpwrap",
        (
            "5 requests wait for approval\nmcpwrap approvals\n"
            "where mcpwrap-web.socket is on: http://127.0.0.1:52080/"
        ),
    )


@pytest.mark.parametrize(
    ("hostile", "seen"),
    [
        ("<a href='http://evil.test'>approve</a>", "<a href='http://evil.test'>approve</a>"),
        ("<img src=x>", "<img src=x>"),
        ("&lt;b&gt;", "&lt;b&gt;"),
        (r"\074b\076", r"\074b\076"),  # notify-send would turn it into a tag
        (r"\033]0;x\007", r"\033]0;x\007"),
        (r"a\nApproved", r"a\nApproved"),  # and this into a line
        ("a\nApproved\r\n\tb", "a Approved b"),
        ("a\u2028b", "a b"),
        ("ab\u202edc", r"ab\u202edc"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\u200bb", r"a\u200bb"),
        ("--urgency=critical", "--urgency=critical"),
        ("x" * 500, "x" * 80 + "…"),
        ("\\" * 3, "\\" * 3),
    ],
)
def test_a_hostile_name_is_text(hostile: str, seen: str) -> None:
    pending = msgspec.structs.replace(ONE, target=hostile)
    body = as_notify_send_reads(approval_notification([pending], 1, "alice").body)
    assert len(body.split("\n")) == 4
    assert "<" not in body
    assert html.unescape(body.split("\n")[0]) == f"sqlite: {seen}"


RAW = DriftItem(("claude-code",), "/home/alice/.claude.json", "raw", ("mcpServers", "git"))
UNREAD = DriftItem(("zed", "cursor"), "/home/alice/.zed", "not read")
NOT_READ = "/home/alice/.zed (zed, cursor): not read"
MORE = "mcpwrap clients lists them, and why"


def named(name: str) -> DriftItem:
    return DriftItem(("codex",), "/f", "drifted", ("mcp_servers", name))


@pytest.mark.parametrize(
    ("new", "summary", "lines"),
    [
        ([RAW], "a server is not wrapped", ["git (claude-code): raw"]),
        (
            [RAW, named("x"), UNREAD],
            "2 servers are not wrapped",
            [
                "git (claude-code): raw",
                "x (codex): drifted",
                "/home/alice/.zed (zed, cursor): not read",
            ],
        ),
        ([UNREAD], "an agent's file was not read", [NOT_READ]),
        (
            [named(f"n{n}") for n in range(8)],
            "8 servers are not wrapped",
            [*(f"n{n} (codex): drifted" for n in range(5)), "and 3 more"],
        ),
        ([named("<b>\n--x")], "a server is not wrapped", ["&lt;b&gt; --x (codex): drifted"]),
    ],
)
def test_servers_that_are_not_wrapped_are_named(
    new: list[DriftItem], summary: str, lines: list[str]
) -> None:
    assert drift_notification(new) == (f"mcpwrap: {summary}", "\n".join([*lines, MORE]))
