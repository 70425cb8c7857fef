"""`mcpwrap audit prune` as typed, on the audit of a small, honest gate."""

import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpwrap.cli.audit import prune, source
from mcpwrap.cli.audit.command import command
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.machine.logs import audit_keys
from tests.unit.core.audits import T0, Gate, keys, put

NOW = T0 + 100.5
Removed = list[tuple[tuple[str, ...], str]]


@pytest.fixture
def removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Removed:
    """Return the calls of root's program; one session has ended, one is open."""
    gate = Gate({})
    over, goes_on = gate.open(), gate.open()
    gate.record(over, times=2)
    gate.record(goes_on)
    gate.close(over)
    gate.heads(goes_on)
    gate.anchor()
    put(tmp_path, gate.files)
    monkeypatch.setattr(source, "SYSTEM", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setattr(audit_keys, "of_system", keys)
    monkeypatch.setattr(audit_keys, "anchors", lambda: gate.anchors)
    asked: Removed = []
    monkeypatch.setattr(prune, "run", lambda *argv, stdin: asked.append((argv, stdin)))
    return asked


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["prune", *arguments], standalone_mode=False)


def test_what_is_old_is_left_to_roots_program(removed: Removed) -> None:
    found = run("--keep", "30s")
    assert found.return_value == 0
    assert found.stdout == (
        "removed 1 file, 0.0 MB, of sessions that ended before 2026-11-18T11:07:50+00:00\n"
    )
    program = ("/usr/libexec/mcpwrap/mcpwrap-audit", "remove", str(int(T0) + 70))
    assert removed == [(program, "00000001/1-1.jsonl")]


def test_a_dry_run_says_the_same_and_does_nothing(removed: Removed, tmp_path: Path) -> None:
    assert run("--keep", "30s", "--dry-run").stdout.startswith("would remove 1 file, 0.0 MB,")
    told = json.JSONDecoder().decode(run("--keep", "30s", "--dry-run", "--json").stdout)
    assert told == {
        "before": int(T0) + 70,
        "is_removed": False,
        "bytes": (tmp_path / "00000001/1-1.jsonl").stat().st_size,
        "files": ["00000001/1-1.jsonl"],
    }
    assert removed == []


@pytest.mark.parametrize("keep", ["1h", "90d", "999999w"])
def test_where_nothing_is_old_root_is_not_asked(removed: Removed, keep: str) -> None:
    assert run("--keep", keep).stdout.startswith("nothing to remove: no session ended before ")
    assert removed == []


def test_of_an_audit_that_was_changed_all_stays(removed: Removed, tmp_path: Path) -> None:
    path = tmp_path / "00000001/2-1.jsonl"
    path.write_bytes(path.read_bytes().replace(b"read_query", b"READ_QUERY"))
    found = run("--keep", "30s")
    assert isinstance(found.exception, McpwrapError)
    assert found.exception.exit_code == 1
    assert "the audit was changed: 1 finding; nothing was removed" in str(found.exception)
    assert removed == []


@pytest.mark.parametrize("keep", ["90", "d", "-1d", "2026-01-31", "1.5d", ""])
def test_a_span_names_its_unit(removed: Removed, keep: str) -> None:
    found = run(f"--keep={keep}")
    assert isinstance(found.exception, UsageError)
    assert "is not a time span" in str(found.exception)
    assert removed == []


def test_it_needs_root(removed: Removed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in str(run("--keep", "30s").exception)
    assert removed == []
