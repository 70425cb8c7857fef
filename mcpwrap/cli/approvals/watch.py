"""`mcpwrap approvals watch`: print each pending request as it comes. Reads only."""

from typing import NoReturn

import click
import msgspec

from mcpwrap.cli.approvals.text import agent, cell, expiry, moment, pause, tool_of
from mcpwrap.cli.approvals.user_option import user_option
from mcpwrap.cli.common.output import ascii_json
from mcpwrap.core.text.sanitise import one_line
from mcpwrap.core.wire.approval_socket import Paused, Pending
from mcpwrap.gate_client.approvals import Listing
from mcpwrap.gate_client.user_approvals import connect
from mcpwrap.linux import tty


@click.command("watch")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@user_option
def command(*, as_json: bool) -> NoReturn:
    """Print the pending requests, then each new one, until Ctrl-C.

    \b
    Example:  mcpwrap approvals watch --json | jq -r --unbuffered '"\\(.agent): \\(.target)"'
    """
    seen: set[tuple[str, ...]] = set()
    with connect() as connection:
        listing = connection.watch()
        while True:
            for one in _unseen(listing, seen):
                tty.say(_json_of(one) if as_json else _line_of(one))
            listing = connection.next_listing()


def _unseen(listing: Listing, seen: set[tuple[str, ...]]) -> list[Pending | Paused]:
    """Return the items that the last listing did not have, and replace it by this one in `seen`."""
    coming: list[Pending | Paused] = [*listing.pending, *listing.paused]
    by_key = {_key(one): one for one in coming}
    found = [one for key, one in by_key.items() if key not in seen]
    seen.clear()
    seen.update(by_key)
    return found


def _key(one: Pending | Paused) -> tuple[str, ...]:
    if isinstance(one, Pending):
        return (one.id,)
    return (str(one.agent_uid), one.server)


def _json_of(one: Pending | Paused) -> str:
    return ascii_json({**msgspec.to_builtins(one), "agent": agent(one.agent_uid)})


def _line_of(one: Pending | Paused) -> str:
    if isinstance(one, Paused):
        return pause(one)
    parts = [moment(one.asked_at), one.id, agent(one.agent_uid), one.server, cell(tool_of(one))]
    parts += [f"by {cell(one.rule)}" if one.rule else cell(one.message), f"expires {expiry(one)}"]
    return "  ".join(map(one_line, parts))
