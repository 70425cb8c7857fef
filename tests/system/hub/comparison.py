"""Comparison of a hub's member with the same server used directly, by the official clients."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from tests.system.bed.machine import BED_AT, CLIENT, GUEST, Machine
from tests.system.guest import tours

Json = dict[str, Any]
Calls = Mapping[str, list[Json]]
PYTHON, TYPESCRIPT = "Python", "TypeScript"
LEGACY, MODERN, AUTO = "legacy", "2026-07-28", "auto"
# Members of a result, or of a tool, that its era alone decides: clients drop those of another.
OF_ERA = {"resultType", "ttlMs", "cacheScope", "ttl_ms", "cache_scope", "result_type", "execution"}
PLACE = re.compile(r"(\b[0-9]+/)?s-[0-9a-f]{16}")  # of a session
NODE_FILE = "/opt/mcp/npm/calls.mjs"  # beside node_modules, where it finds the client


def bring(machine: Machine) -> None:
    """Put the TypeScript client where it finds its library."""
    machine.write(NODE_FILE, (GUEST / "hub/calls.mjs").read_text())


def used(
    machine: Machine,
    client: str,
    mode: str,
    server: str,
    calls: Calls,
    *,
    prefix: str = "",
    uris: str = "",
) -> Json:
    """Use all that a server offers; of a hub, what has names and URIs of one member.

    Returns the definitions and the outcomes, without random values and what its era decides.
    """
    given = {"command": ["mcpwrap-connect", server], "mode": mode, "calls": calls}
    given |= {"prefix": prefix, "uris": uris}
    if client == PYTHON:
        program = ["env", f"PYTHONPATH={BED_AT}", CLIENT, "-Bm", "tests.system.guest.hub.calls"]
    else:
        program = ["node", NODE_FILE]
    done = machine.as_user("alice", shlex.join([*program, json.dumps(given)]))
    found: Json = tours.settled(json.loads(PLACE.sub("PLACE", done.out.splitlines()[-1])))
    # Without empty ones: a hub has those of all its members.
    lists = {what: _each_of_no_era(each) for what, each in found["lists"].items() if each}
    return {**lists, **_each_of_no_era(found["outcomes"])}


def _each_of_no_era(values: Json) -> Json:
    return {name: _of_no_era(value) for name, value in values.items()}


def _of_no_era(outcome: Any) -> Any:
    if not isinstance(outcome, dict):
        return outcome
    return {key: value for key, value in outcome.items() if key not in OF_ERA}


def assert_same(by_hub: Json, directly: Json) -> None:
    """Compare step by step, so that a difference is shown alone."""
    assert by_hub.keys() == directly.keys(), sorted(by_hub.keys() ^ directly.keys())
    for step, outcome in directly.items():
        assert by_hub[step] == outcome, f"{step}: {by_hub[step]!r} is not {outcome!r}"


def failed(found: Json) -> list[str]:
    """Return the steps whose outcome is an error."""
    return [
        step
        for step, outcome in found.items()
        if isinstance(outcome, dict) and (outcome.get("error") or outcome.get("isError"))
    ]
