"""Options that select audit records: server, tool, decision, agent, time."""

import time
from collections.abc import Callable
from typing import Any

import click

from mcpwrap.core.audit.text_format import RecordFilter, moment
from mcpwrap.errors import UsageError
from mcpwrap.linux import accounts

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
_FILTER_OPTIONS: tuple[Option, ...] = (
    click.option("--server", default="", metavar="GLOB", help="Of these servers."),
    click.option("--tool", default="", metavar="GLOB", help="Calls of these tools."),
    click.option("--decision", default="", metavar="D", help="For example `blocked`."),
    click.option("--agent", default="", metavar="USER", help="Of this account."),
)
since: Option = click.option(
    "--since", default="", metavar="T", help="ISO 8601, or 10m, 2h, 3d ago."
)
until: Option = click.option("--until", default="", metavar="T", help="Likewise.")


def filter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options by which it says what is wanted of what comes."""
    for option in reversed(_FILTER_OPTIONS):
        function = option(function)
    return function


def filter_and_time_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these, and those for when it was."""
    return filter_options(since(until(function)))


def record_filter(filters: dict[str, str]) -> RecordFilter:
    """Return what these options came to.

    Raises:
        UsageError: something is no time, or no account.
    """
    times = {key: time_of(filters[key]) for key in ("since", "until") if filters.get(key)}
    return RecordFilter(
        server=filters["server"],
        tool=filters["tool"],
        decision=filters["decision"],
        uid=_uid(filters["agent"]),
        **times,
    )


def time_of(text: str) -> float:
    """Return the time that was typed.

    Raises:
        UsageError: it is none.
    """
    try:
        return moment(text, time.time())
    except (ValueError, OverflowError) as error:
        fix = "write 10m, 2h or 3d for so long ago, or 2026-01-31T12:00"
        raise UsageError(f"{text!a} is no time", where="mcpwrap", fix=fix) from error


def _uid(agent: str) -> int | None:
    if not agent:
        return None
    uid = int(agent) if agent.isascii() and agent.isdigit() else accounts.uid_of(agent)
    if uid is None:
        raise UsageError(f"no account {agent!a}", where="--agent", fix="name one, or its UID")
    return uid
