"""Entries of agents' files, raw and wrapped, and such files as written by hand."""

import json

STUB = "/usr/bin/mcpwrap-connect"


def quoted(name: str) -> str:
    """Return a name with as few escapes as possible."""
    return json.dumps(name, ensure_ascii=False)


def raw(name: str, *more: str) -> str:
    """Return an entry that starts the probe, with these other keys."""
    args = json.dumps(["/opt/probe.py", *more])
    return f'{quoted(name)}: {{"command": "python3", "args": {args}, "timeout": 60}}'


def ours(name: str, server: str) -> str:
    """Return its wrapped form."""
    return f'{quoted(name)}: {{"command": "{STUB}", "args": ["{server}"], "timeout": 60}}'


def text(*entries: str, besides: str = '"theme": "dark"') -> str:
    """Return a file with these entries."""
    listed = ", // one\n    ".join(entries)
    return f'{{\n  /* mine */\n  "mcpServers": {{\n    {listed},\n  }},\n  {besides}\n}}\n'


RAW, OURS = text(raw("probe")), text(ours("probe", "probe"))
