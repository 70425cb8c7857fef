"""Boundaries that root has widened: each is named every time."""

import pytest

from mcpwrap.plan import widened_boundaries
from tests.unit.plan.configs import GIT
from tests.unit.plan.machine import parsed

WORKS = f"{GIT}[mcp_servers.git.mcpwrap]\nagents = ['alice']\n"
BOTH = "protect = false\nprotect_instructions = false\n"


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        (GIT, []),
        (f"[approvals]\n{GIT}", []),
        (f"[approvals]\nsame_uid = false\n{GIT}", []),
        (f"[approvals]\nwebhook = 'https://hook.example'\n{GIT}", []),
        (f"[approvals]\nsame_uid = true\n{GIT}", ["WIDENED by [approvals] same_uid"]),
        (f"{GIT}inherits = ['TZ', 'LANG']", []),
        (
            f"{GIT}inherits_any = ['X']",
            ["WIDENED by [mcp_servers.git] inherits_any: its agents choose the value of X"],
        ),
        (
            f"{GIT}inherits_any = ['PROJECT', 'NIX_LD', 'PAGER']",
            ["value of PROJECT, NIX_LD, PAGER; of these NIX_LD, PAGER can decide which code runs"],
        ),
        (
            f"{WORKS}writable_command = true\n",
            ["WIDENED by [mcp_servers.git.mcpwrap] writable_command: an account that can write to"],
        ),
        (f"{WORKS}workspace = ['/a/b:rw']\n", []),
        (f"{WORKS}workspace = ['/a/b:rw']\numask = '0002'\n", []),
        (f"{WORKS}umask = '0000'\n", []),  # nothing that others reach
        (
            f"{WORKS}workspace = ['/a/b:rw']\numask = '0000'\n",
            ["WIDENED by [mcp_servers.git.mcpwrap] umask: every account of this machine"],
        ),
        (f"{WORKS}{BOTH}", []),  # nothing to write to
        (f"{WORKS}{BOTH}workspace = ['/a/b:ro']\n", []),
        (
            f"{WORKS}{BOTH}workspace = ['/a/b:rw']\n",
            [
                "WIDENED by [mcp_servers.git.mcpwrap] protect: ",
                "WIDENED by [mcp_servers.git.mcpwrap] protect_instructions: ",
            ],
        ),
    ],
)
def test_what_is_widened_is_said(text: str, fragments: list[str]) -> None:
    said = widened_boundaries.widenings_of(parsed(text))
    assert len(said) == len(fragments)
    assert all(fragment in line for fragment, line in zip(fragments, said, strict=True))
