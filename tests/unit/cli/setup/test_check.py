"""`mcpwrap check`: errors of a configuration, or its servers."""

from pathlib import Path

import pytest

from mcpwrap.cli.setup.check import command
from mcpwrap.config.model import ConfigError

SERVERS = "[mcp_servers.git]\ncommand = '/bin/true'\n[mcp_servers.tools.members.git]\n"


def test_a_hub_is_shown_with_its_members(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(SERVERS)
    assert command.main([str(file)], standalone_mode=False) == 0
    assert capsys.readouterr().out == "no errors; servers: git, tools (git)\n"


def test_a_hub_without_its_member_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(SERVERS.replace("mcp_servers.git]", "mcp_servers.other]", 1))
    with pytest.raises(ConfigError) as caught:
        command.main([str(file)], standalone_mode=False)
    [found] = caught.value.problems
    assert (found.table, found.code) == ("[mcp_servers.tools.members.git]", "E-HUB-MEMBER-UNKNOWN")
