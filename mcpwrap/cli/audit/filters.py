"""Options that select audit records: server, project, tool, decision, agent, time."""

import time
from collections.abc import Callable
from typing import Any

import click

from mcpwrap.core.audit.text_format import RecordFilter, moment
from mcpwrap.errors import UsageError
from mcpwrap.linux import accounts

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
_FILTER_OPTIONS: tuple[Option, ...] = (
    click.option("--server", default="", metavar="GLOB", help="Only these servers."),
    click.option(
        "--project", default="", metavar="GLOB", help="Only sessions that see these projects."
    ),
    click.option("--tool", default="", metavar="GLOB", help="Only calls of these tools."),
    click.option(
        "--decision", default="", metavar="D", help="Only this decision, such as `blocked`."
    ),
    click.option("--agent", default="", metavar="USER", help="Only this account."),
)
since: Option = click.option(
    "--since", default="", metavar="T", help="Only from this time on: ISO 8601, or 10m, 2h, 3d ago."
)
until: Option = click.option(
    "--until", default="", metavar="T", help="Only up to this time, written likewise."
)


def filter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select records, without those for times."""
    for option in reversed(_FILTER_OPTIONS):
        function = option(function)
    return function


def filter_and_time_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select records, with those for times."""
    return filter_options(since(until(function)))


def record_filter(filters: dict[str, str]) -> RecordFilter:
    """Return the filter that these options define.

    Raises:
        UsageError: a value is not a time, or not an account.
    """
    times = {key: time_of(filters[key]) for key in ("since", "until") if filters.get(key)}
    return RecordFilter(
        server=filters["server"],
        project=filters["project"],
        tool=filters["tool"],
        decision=filters["decision"],
        uid=_uid(filters["agent"]),
        **times,
    )


def time_of(text: str) -> float:
    """Return the time that a text means.

    Raises:
        UsageError: the text is not a time.
    """
    try:
        return moment(text, time.time())
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{text!a} is not a time",
            where="--since, --until",
            fix="write 10m, 2h or 3d for so long ago, or 2026-01-31T12:00",
            code="E-USAGE-TIME",
        ) from error


def _uid(agent: str) -> int | None:
    if not agent:
        return None
    uid = int(agent) if agent.isascii() and agent.isdigit() else accounts.uid_of(agent)
    if uid is None:
        raise UsageError(
            f"no account {agent!a}",
            where="--agent",
            fix="write the name of an account of this machine, or a UID",
            code="E-USAGE-NO-ACCOUNT",
        )
    return uid
