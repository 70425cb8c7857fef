"""Step of `mcpwrap init` that tests the machine."""

from pathlib import Path

import msgspec
import pytest

from mcpwrap.cli.setup.init import machine_steps
from mcpwrap.cli.setup.init.guide import Guide
from mcpwrap.core.doctor import Check, failed, good, unknown, warned
from mcpwrap.machine import observer


@pytest.mark.parametrize(
    ("checks", "status", "state", "why"),
    [
        ([good("a", "b"), warned("c", "d", "e")], 0, "done", "1 good, 1 warning"),
        ([failed("c", "d", "e")], 1, "failed", "1 failed"),
        ("", 2, "failed", "it gave no result"),
        ("Traceback", 2, "failed", "it gave no result"),
        ("[{}]", 0, "failed", "it gave no result"),
    ],
)
def test_the_doctors_checks_are_counted(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    checks: list[Check] | str,
    status: int,
    state: str,
    why: str,
) -> None:
    text = checks if isinstance(checks, str) else msgspec.json.encode(checks).decode()
    program = tmp_path / "mcpwrap"
    printed = f"echo '{text}' | tr -d '\\n'"
    program.write_text(f'#!/bin/sh\n[ -n "$OF_CALLER" ] || {printed}\nexit {status}\n')
    monkeypatch.setenv("OF_CALLER", "x")
    program.chmod(0o755)
    monkeypatch.setattr(machine_steps, "MCPWRAP", str(program))
    monkeypatch.setattr(observer, "has_configuration", lambda: True)
    guide = Guide(is_agreed=True, is_json=True)
    guide.end("group", "already", "", "")
    guide.end("agents", "failed", "", "root has not accepted them")
    machine_steps.doctor(guide)
    assert guide.results[-1].state == "skipped"  # nothing was changed
    guide.end("group", "done", "", "")
    machine_steps.doctor(guide)
    assert (guide.results[-1].state, guide.results[-1].why) == (state, why)


def test_of_a_broken_server_the_failure_is_printed_once() -> None:
    checks = [
        good("git: program", "x"),
        failed("git: a session of alice", "TOKEN is not set", "set it"),
        *[unknown(f"git: read {path}", "it does not run", "again") for path in "abc"],
        unknown("web: read a", "it does not run", "again"),
    ]
    shown = [check.what for check in machine_steps.shown(checks)]
    assert shown == ["git: a session of alice", "web: read a"]
