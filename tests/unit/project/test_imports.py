"""Libraries that each program loads at its start: no libsodium where no key is needed."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = runpy.run_path(str(Path(__file__).parents[3] / "packaging/stage.py"))["PROGRAMS"]
SODIUM = "nacl"
LARGE = {
    "aiohttp", "asyncio", "click", "jinja2", SODIUM, "oauthlib", "re2", "rich", "sqlglot",
    "textual", "yaml",
}  # fmt: skip
POLICIES = {"re2", "yaml"}
LOADED = {
    "mcpwrap": {"click", "rich", SODIUM} | POLICIES,
    "mcpwrap-root": {SODIUM} | POLICIES,
    "mcpwrap-mint": {SODIUM},
    "mcpwrap-audit": {SODIUM},
    # The gate judges by sqlglot, and a session's process cannot open it any more.
    "mcpwrap-gate": {SODIUM, "sqlglot"} | POLICIES,
    "mcpwrap-gate-reload": {"sqlglot"} | POLICIES,
    "mcpwrap-front": {"asyncio"},
    "mcpwrap-front-reload": {"asyncio"},
    "mcpwrap-webhook": {"aiohttp", "asyncio"},
    "mcpwrap-web": {"aiohttp", "asyncio", "jinja2"},
    "mcpwrap-http": {"aiohttp", "asyncio"},
    "mcpwrap-worker": {"aiohttp", "asyncio"},
    "mcpwrap-remote": {"asyncio"},
}


@pytest.mark.parametrize(
    ("program", "module"),
    [(path.rpartition("/")[2], module) for path, module in PROGRAMS.items()],
    ids=[path.rpartition("/")[2] for path in PROGRAMS],
)
def test_a_program_loads_what_it_needs_at_once(program: str, module: str) -> None:
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    argv = [sys.executable, "-c", code]
    found = set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split())
    assert found & LARGE == LOADED.get(program, set())
