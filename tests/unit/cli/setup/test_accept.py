"""`mcpwrap accept`: root's program gets its arguments, and no relative path."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpwrap.cli.main import cli
from mcpwrap.cli.setup import accept

DIGEST = "0" * 64


@pytest.mark.parametrize(
    ("file", "given"), [("/srv/p.toml", "/srv/p.toml"), ("p.toml", "HERE/p.toml"), ("", "HERE")]
)
@pytest.mark.parametrize("by", ["", "alice"])
def test_it_becomes_roots_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, given: str, by: str
) -> None:
    became: list[tuple[str, ...]] = []
    monkeypatch.setattr(accept, "become_root_program", lambda *a: became.append(a))
    monkeypatch.chdir(tmp_path)
    CliRunner(env={"SUDO_USER": by or None}).invoke(cli, ["accept", DIGEST, file])
    assert became == [("accept", DIGEST, given.replace("HERE", str(tmp_path)), by)]


def test_its_help_says_how() -> None:
    said = CliRunner().invoke(cli, ["accept", "--help"]).output
    assert "Usage: cli accept [OPTIONS] SHA256 FILE" in said
    assert "--by" not in said
