"""Official conformance suite, run as an agent against a command, and the server that it needs."""

import json
import shlex

from tests.system.bed.machine import Machine

Found = dict[str, dict[str, str]]  # by run, the status of each check by its name
SERVER = ["/usr/bin/python3", "-m", "tests.system.guest.conformance.server"]
FIXTURE = f"""
[mcp_servers.fixture]
command = "{SERVER[0]}"
args = {json.dumps(SERVER[1:])}
env = {{ PYTHONPATH = "/opt/bed" }}

# It lists other tools to a client with other capabilities, and the suite is many clients.
[mcp_servers.fixture.mcpwrap]
pins = "off"
"""
RUNS = {version: ["--requirements", version] for version in ("2025-11-25", "2026-07-28")}
POLICY = """
version: 1
default: block
rules:
  - {name: tools, tool: "*", action: allow}
  - {name: others, method: "*", action: allow}
"""
HIDING = "version: 1\nrules: [{name: hidden, tool: test_simple_text, action: hide}]\n"
SIMPLE = "tools-call-simple-text"
ONE_CALL = {version: ["--scenario", SIMPLE, "--spec-version", version] for version in RUNS}


def put_policy(machine: Machine, policy: str) -> None:
    """Put a policy in force; it must be valid."""
    machine.write("/etc/mcpwrap/policy.yaml", policy)
    machine.as_root("mcpwrap policy check && systemctl reload mcpwrap-gate")


def run_suite(
    machine: Machine, port: int, command: list[str], runs: dict[str, list[str]] = RUNS
) -> Found:
    """Run the suite as an agent that starts this command, and return its findings."""
    argv = ["env", "PYTHONPATH=/opt/bed", "python3", "-m", "tests.system.guest.conformance.suite"]
    argv += [str(port), json.dumps(runs), *command]
    found: Found = json.loads(machine.as_user("alice", shlex.join(argv)).out)
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Return the checks whose status differs."""
    return {check for check in {*before, *after} if before.get(check) != after.get(check)}
