"""Odd files of agents, as alice has them: the content of each, and the result of `wrap`."""

import json
from dataclasses import dataclass

from tests.system.wrap.file_entries import OURS, RAW, STUB, ours, raw, text
from tests.system.wrap.people import HOME

WINDSURF = f"{HOME}/.codeium/windsurf/mcp_config.json"


@dataclass(frozen=True, kw_only=True)
class Refused:
    """File of Windsurf of which nothing is wrapped, and the one message about it."""

    about: str
    content: bytes = RAW.encode()
    then: str = ""  # commands on the file $F, as root
    said: str


def _left(why: str) -> str:
    return f"left as it is: probe (Windsurf, {WINDSURF}): {why}"


def _unread(why: str) -> str:
    return f"left as it is: {WINDSURF}: {why}"


REFUSED = (
    Refused(
        about="broken JSON",
        content=RAW.encode()[:60],
        said=_unread("4:26: not JSON: Unterminated string starting at"),
    ),
    Refused(
        about="a key twice in one object",
        content=text(raw("probe"), raw("other"), raw("probe")).encode(),
        said=_unread("6:5: 'probe' appears twice in one object"),
    ),
    Refused(about="empty", content=b"", said=_unread("1:1: not JSON: Expecting value")),
    Refused(
        about="UTF-16, as Windows has it",
        content=RAW.encode("utf-16"),
        said=_unread("1:1: not UTF-8"),
    ),
    Refused(
        about="over 16 MiB",
        content=text(raw("probe"), besides=f'"typed": "{"x" * 2**24}"').encode(),
        said=_unread("over 16 MiB"),
    ),
    Refused(
        about="a link",
        then='mv "$F" ~alice/dotfile; ln -s ~alice/dotfile "$F"; chown -h alice: "$F"',
        said=_unread(f"is a symbolic link to '{HOME}/dotfile', which is not followed"),
    ),
    Refused(
        about="a link to nothing",
        then='ln -sf nowhere "$F"; chown -h alice: "$F"',
        said=_unread("is a symbolic link to 'nowhere', which is not followed"),
    ),
    Refused(
        about="two names",
        then='ln "$F" ~alice/dotfile',
        said=_left(
            "has 2 names (hard links), which would become two files; nothing was changed "
            "[E-AGENT-FILE-HARD-LINK]"
        ),
    ),
    Refused(
        about="read-only",
        then='chmod 0440 "$F"',
        said=_left("is read-only; nothing was changed [E-AGENT-FILE-READ-ONLY]"),
    ),
    Refused(
        about="in a folder that is read-only",
        then='chmod 0550 "$(dirname "$F")"',
        said=_left("its folder is not writable; nothing was changed [E-AGENT-FILE-WRITE]"),
    ),
    Refused(
        about="unreadable", then='chmod 0 "$F"', said=_unread("cannot be read: Permission denied")
    ),
    Refused(
        about="root's",
        then='chown root: "$F"; chmod 0644 "$F"',
        said=_left("belongs to root; nothing was changed [E-AGENT-FILE-OWNER]"),
    ),
    Refused(
        about="somebody else's",
        then='chown nobody: "$F"; chmod 0666 "$F"',
        said=_unread("belongs to nobody"),
    ),
    Refused(
        about="a pipe",
        then='rm "$F"; mkfifo -m 0600 "$F"; chown alice: "$F"',
        said=_unread("is not a plain file"),
    ),
    Refused(
        about="half ours, of a server that nobody has",
        content=text(f'"probe": {{"command": "{STUB}", "args": ["gone"], "env": {{}}}}').encode(),
        said=_left("no server 'gone' was applied"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """File that is wrapped, and its content afterwards."""

    about: str
    file: str
    before: bytes
    after: bytes
    said: str = "1 server is wrapped"


def _windows(content: str) -> bytes:
    return content.replace("\n", "\r\n").encode()


PLAIN = Wrapped(
    about="plain",
    file=f"{HOME}/.cursor/mcp.json",
    before=RAW.encode(),
    after=OURS.encode(),
)
_LINES = [f"what was typed before: line {number:6}" for number in range(10**7 // 40)]
_TYPED = f'"typed": {json.dumps(_LINES, indent=1)}'
_LONG = "x" * 80
_NAMES = {
    "My Server!": "my-server",
    "Größe": "groe",
    "9": "mcp-9",
    "../../etc/passwd": "etc-passwd",
    "a\n\x1b[31m": "a-31m",
    "": "server",
    _LONG: _LONG[:26],
}
_CODEX = '# mine\n[mcp_servers.probe]\ncommand = {}\nargs = ["{}"] # one\n\n[tui]\ntheme = "dark"\n'
_CLAUDE = """{{
  "mcpServers": {{{}}},
  "projects": {{"/p": {{"mcpServers": {{{}}}, "n": 1}}}}
}}"""
_HALF = ours("half", "probe").replace('"timeout"', '"env": {"OLD": "x"}, "timeout"')
ODD = (
    Wrapped(
        about="Windows line ends",
        file=f"{HOME}/.kiro/settings/mcp.json",
        before=_windows(RAW),
        after=_windows(OURS),
    ),
    Wrapped(
        about="Windows line ends, in TOML",
        file=f"{HOME}/.codex/config.toml",
        before=_windows(_CODEX.format('"python3"', "/opt/probe.py")),
        after=_windows(_CODEX.format(f'"{STUB}"', "probe")),
    ),
    Wrapped(
        about="a byte order mark",
        file=f"{HOME}/.config/Claude/claude_desktop_config.json",
        before=RAW.encode("utf-8-sig"),
        after=OURS.encode("utf-8-sig"),
    ),
    Wrapped(
        about="10 MB",
        file=f"{HOME}/.gemini/settings.json",
        before=text(raw("probe"), besides=_TYPED).encode(),
        after=text(ours("probe", "probe"), besides=_TYPED).encode(),
    ),
    Wrapped(
        about="one name in two scopes",
        file=f"{HOME}/.claude.json",
        before=_CLAUDE.format(raw("probe"), raw("probe", "of the project")).encode(),
        after=_CLAUDE.format(ours("probe", "probe"), ours("probe", "probe-2")).encode(),
        said="2 servers are wrapped",
    ),
    Wrapped(
        about="names that are no accounts'",
        file=f"{HOME}/.qwen/settings.json",
        before=text(*(raw(name, name) for name in _NAMES)).encode(),
        after=text(*(ours(name, server) for name, server in _NAMES.items())).encode(),
        said="7 servers are wrapped",
    ),
    Wrapped(
        about="half ours",
        file=f"{HOME}/.gemini/config/mcp_config.json",
        before=text(ours("whole", "probe"), _HALF, raw("raw")).encode(),
        after=text(ours("whole", "probe"), ours("half", "probe"), ours("raw", "probe")).encode(),
        said="2 servers are wrapped",
    ),
)
SERVERS = {"probe", "probe-2", *_NAMES.values()}
