"""Exit status of `doctor`, and options that do not go together."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpwrap.cli.main import cli
from mcpwrap.cli.operate import doctor
from mcpwrap.errors import EXIT_FAILED, EXIT_OK, EXIT_UNKNOWN, UsageError


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (["good", "warning"], EXIT_OK),
        (["good", "unknown"], EXIT_UNKNOWN),
        (["unknown", "failed"], EXIT_FAILED),
    ],
)
def test_the_exit_status_says_which(found: list[str], status: int) -> None:
    assert doctor.status_of(found) == status


@pytest.mark.parametrize(
    "options",
    [
        ["--report", "--user"],
        ["--report", "--json"],
        ["--report", "x", "--json"],
        ["--names"],
        ["--names", "--json"],
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str]) -> None:
    error = CliRunner().invoke(cli, ["doctor", *options], standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.code == "E-USAGE-EXCLUSIVE-OPTIONS"


def test_a_report_replaces_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("file", "link"):
        file = tmp_path / name
        file.symlink_to("elsewhere") if name == "link" else file.write_text("mine")
        argv = ["doctor", "--report", str(file)]
        error = CliRunner().invoke(cli, argv, standalone_mode=False).exception
        assert isinstance(error, UsageError)
        assert error.code == "E-REPORT-EXISTS"
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()
