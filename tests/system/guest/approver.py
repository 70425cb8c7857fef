"""Steps of an approver, or of an account that tries to approve. Runs inside the machine.

A plan is a JSON list of steps, each a name and its values; the results are printed as a list. The
argument is one plan. Without an argument, each line of the input is an object with a plan, and each
line of the output an object with its results, so that one process serves many steps. It uses the
installed client of the approval socket, so that attacks can send requests that no command would.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from mcpwrap.core.wire.approval_socket import Channel, DecideRequest, Pending, Proof, Scope, Verdict
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.approvals import ApprovalConnection


def await_pending(count: int = 1, times: int = 1) -> list[Pending]:
    """Wait for this many pending approvals, the first of them requested this often; return them."""
    with ApprovalConnection() as door:
        listing = door.watch()
        while len(listing.pending) < count or listing.pending[0].times < times:
            listing = door.next_listing()
        return list(listing.pending)


def await_none() -> list[Pending]:
    """Wait until no approval is pending."""
    with ApprovalConnection() as door:
        listing = door.watch()
        while listing.pending:
            listing = door.next_listing()
        return []


def await_pins(server: str, target: str = "") -> Pending:
    """Wait until the definitions of a server wait for a person; return the question on them.

    `target` is how what it asks about begins.
    """
    with ApprovalConnection() as door:
        listing = door.watch()
        while True:
            for one in listing.pending:
                is_it = (one.method, one.server) == ("pins", server)
                if is_it and one.target.startswith(target):
                    return one
            listing = door.next_listing()


def listed() -> Any:
    """Return the pending approvals, and the paused accounts."""
    with ApprovalConnection() as door:
        return msgspec.to_builtins(door.listing())


def shown(question: str) -> Any:
    """Return a pending approval in full."""
    with ApprovalConnection() as door:
        return msgspec.to_builtins(door.show(question))


def saved_rules() -> Any:
    """Return the approvals that were saved as rules."""
    with ApprovalConnection() as door:
        return msgspec.to_builtins(door.saved_rules())


def decide(*, verdict: str, **more: Any) -> str:
    """Answer; return the gate's response, or the reason of its refusal."""
    for name, kind in (("scope", Scope), ("channel", Channel), ("proof", Proof)):
        if name in more:
            more[name] = kind(more[name])
    for name in ("password", "reason"):
        if name in more:
            more[name] = more[name].encode()
    try:
        with ApprovalConnection() as door:
            return door.decide(DecideRequest(verdict=Verdict(verdict), **more)).text
    except McpwrapError as error:
        return f"refused: {getattr(error, 'reason', error)}"


def answer_next(verdict: str, *, target: str = "", asked: int = 1, **more: Any) -> str:
    """Wait for the next pending approval, read it, and answer it."""
    with ApprovalConnection() as door:
        listing = door.watch()
        while True:
            fits = [p for p in listing.pending if p.target == target or not target]
            if fits and fits[0].times >= asked:
                break
            listing = door.next_listing()
    digest = shown(fits[0].id)["digest"]
    return decide(id=fits[0].id, digest=digest, verdict=verdict, **more)


STEPS: dict[str, Callable[..., Any]] = {
    step.__name__: step
    for step in (
        await_pending,
        await_none,
        await_pins,
        listed,
        shown,
        saved_rules,
        decide,
        answer_next,
    )
}


def taken(plan: list[tuple[str, dict[str, Any]]]) -> Any:
    """Take the steps of a plan; return their results."""
    return msgspec.to_builtins([STEPS[name](**values) for name, values in plan])


def serve() -> None:
    """Take the steps of each line of the input."""
    for line in sys.stdin:
        try:
            told = {"results": taken(json.loads(line)["plan"])}
        except Exception as error:  # noqa: BLE001 - the story that asked for it fails with it
            told = {"failed": repr(error)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(taken(json.loads(sys.argv[1]))))
    else:
        serve()
