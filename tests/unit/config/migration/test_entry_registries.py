"""Programs that download from an unknown registry: not proposed, as root would refuse all."""

import pytest

from mcpwrap.config.agent_files.transport import StdioTransport
from mcpwrap.config.migration.draft import EntryContext, MigrationError, ResolvedCommand
from mcpwrap.config.migration.entry import expect_registries
from mcpwrap.config.migration.stdio_server import draft
from tests.unit.plan.machine import DEBIAN

AROUND = EntryContext(account="alice", home="/home/alice", program=ResolvedCommand("/usr/bin/x"))


@pytest.mark.parametrize(("command", "how"), [("npx", "npm config get"), ("uvx", "python3-pip")])
def test_where_packages_come_from(command: str, how: str) -> None:
    server = draft("s", StdioTransport(command), AROUND).server
    expect_registries(server, {"npm", "pypi"}, DEBIAN)
    with pytest.raises(MigrationError, match=how):
        expect_registries(server, (), DEBIAN)


def test_what_downloads_nothing_needs_none() -> None:
    expect_registries(draft("s", StdioTransport("x"), AROUND).server, (), DEBIAN)
