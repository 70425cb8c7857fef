"""Agent of an accepted server: the account that called sudo, and no name on the command line."""

import pytest
from click.testing import CliRunner

from mcpwrap.cli.main import cli
from mcpwrap.cli.setup import accept


def test_a_command_that_is_copied_does_not_say_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[tuple[str, ...]] = []
    monkeypatch.setattr(accept, "become_root_program", lambda *a: became.append(a))
    runner = CliRunner(env={"SUDO_USER": "alice"})
    done = runner.invoke(cli, ["accept", "--by", "mallory", "0" * 64, "/srv/p.toml"])
    assert (done.exit_code, became) == (2, [])
