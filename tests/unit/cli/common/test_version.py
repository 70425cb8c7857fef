"""`mcpwrap --version`: package, commit and Python; a tree has no package."""

import platform
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpwrap import __version__
from mcpwrap.cli.common import version
from mcpwrap.cli.main import cli

PYTHON = platform.python_version()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (None, f"from source, Python {PYTHON}"),
        (
            '{"package": "deb 0.2.0~dev0+deb13", "commit": "8734ae83"}\n',
            f"deb 0.2.0~dev0+deb13, commit 8734ae83, Python {PYTHON}",
        ),
    ],
)
def test_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, named: str
) -> None:
    file = tmp_path / "build.json"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(version, "_BUILD_FILE", file)
    result = CliRunner().invoke(cli, ["--version"], standalone_mode=False)
    assert (result.exit_code, result.stdout) == (0, f"mcpwrap {__version__} ({named})\n")
