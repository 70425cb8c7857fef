"""Tables of commands, on terminals of several widths."""

import pytest

from mcpwrap.cli.common.output import print_table

COLUMNS = ["NAME", "SERVER", "SINCE", "PROBLEM"]
ROW = ["git", "mcpw-git", "2025-11-22T05:40:00+00:00", "a long problem: " + "x" * 60]


@pytest.mark.parametrize("width", ["20", "80", "200"])
def test_no_column_is_dropped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    print_table(COLUMNS, [ROW])
    head, row = capsys.readouterr().out.splitlines()
    assert [column for column in COLUMNS if column not in head] == []
    assert [cell for cell in ROW if cell not in row] == []
