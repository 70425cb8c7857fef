"""Entries of agents' files, and runs of `mcpwrap wrap` on them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.agents.wrap import command

STUB = "/usr/bin/mcpwrap-connect"
RAW = {"command": "sh", "args": ["-c", "true"], "env": {"API_KEY": "s3cr3t-s3cr3t", "L": "info"}}
REMOTE = {
    "type": "http",
    "url": "https://x.example/mcp",
    "headers": {"Authorization": "Bearer t0p"},
}


def run(*arguments: str, **variables: str) -> Result:
    environ = {"PATH": "/usr/bin:/bin", **variables}
    return CliRunner().invoke(command.command, arguments, standalone_mode=False, obj=environ)


def put(path: Path, **entries: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": entries}, indent=2))
    path.chmod(0o640)
    return path


def entries(path: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(path.read_text())["mcpServers"]
    return found


def change_when_agreed(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """Write to a file after the confirmation, before `wrap` rewrites it."""

    def agreed(_question: str, *, is_agreed: bool) -> bool:
        file.write_text(file.read_text() + " ")
        return is_agreed

    monkeypatch.setattr(command, "agreed", agreed)
