"""Requests to the worker by HTTP, past the Python server."""

import json
from typing import Any

from tests.system.bed.machine import Machine

URL = "http://127.79.0.1:52200/execute"
# The first rule that keeps an account from the worker's port; the others are for other packets.
_REFUSED = "ip daddr 127.79.0.1 tcp flags"


def token_of(machine: Machine) -> str:
    """Return the token by which the Python server calls the worker, as root can read it."""
    with machine.session("python") as session:
        session.initialize()
        read = "tr '\\0' '\\n' </proc/$(pgrep -u mcpw-python -f mcpwrap-python)/environ"
        return machine.look(f"{read} | sed -n 's/^WORKER_RPC_TOKEN=//p'").strip()


def executed(machine: Machine, account: str, token: str) -> tuple[str, Any]:
    """Request a run as this account; return the status, and the reply. 000 is no connection."""
    body = json.dumps({"code": "print(1)", "timeout": 5})
    request = f"-H 'Authorization: Bearer {token}' -d '{body}' {URL}"
    curl = f"curl -s -m 20 -w '\\n%{{http_code}}' {request}"
    called = machine.as_root(f"setpriv --reuid={account} --clear-groups {curl} || true").out
    reply, _, status = called.rpartition("\n")
    return status, json.loads(reply) if reply else None


def open_port(machine: Machine) -> None:
    """Delete the packet rule that refuses connections to the worker, until it is restored."""
    chain = machine.look("nft -a list table inet mcpwrap")
    (rule,) = [line for line in chain.splitlines() if _REFUSED in line]
    handle = rule.rpartition(" handle ")[2]
    name = next(
        line.split()[1]
        for line in reversed(chain[: chain.index(rule)].splitlines())
        if line.strip().startswith("chain ")
    )
    machine.as_root(f"nft delete rule inet mcpwrap {name} handle {handle}")
