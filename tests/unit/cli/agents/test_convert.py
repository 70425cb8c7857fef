"""`mcpwrap convert --wsl`: entries of an agent that Windows runs, beside WSL2."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.main import cli
from mcpwrap.errors import UsageError

CONFIG = """
[mcp_servers.git]
command = "/usr/bin/git-server"
inherits = ["TZ"]
[mcp_servers.git.mcpwrap]
agents = ["alice"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    return path


def converted(file: Path, *more: str) -> Result:
    argv = ["convert", str(file), "--client", "claude-desktop", *more]
    return CliRunner().invoke(cli, argv, standalone_mode=False)


@pytest.mark.parametrize(
    ("more", "entry"),
    [
        ((), {"command": "/usr/bin/mcpwrap-connect", "args": ["git"]}),
        (("--wsl",), {"command": "wsl.exe", "args": ["-e", "/usr/bin/mcpwrap-connect", "git"]}),
    ],
)
def test_an_agent_of_windows_starts_the_stub_by_wsl(
    file: Path, more: tuple[str, ...], entry: dict[str, object]
) -> None:
    result = converted(file, *more)
    assert json.loads(result.stdout) == {"mcpServers": {"git": entry}}
    assert ("passes on TZ only if WSLENV there names them" in result.stderr) == bool(more)


def test_it_reaches_no_listener(file: Path) -> None:
    error = converted(file, "--wsl", "--http").exception
    assert isinstance(error, UsageError)
    assert error.code == "E-USAGE-EXCLUSIVE-OPTIONS"
