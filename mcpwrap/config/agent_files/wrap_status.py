"""Wrap status of a server in an agent's file, by the servers that root applied, not by its form."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from mcpwrap.config.agent_files.entry_schema import STUB
from mcpwrap.config.agent_files.parsed_file import ListedServer
from mcpwrap.config.agent_files.run_line import is_run_line, parse_run_line
from mcpwrap.config.agent_files.transport import (
    HttpTransport,
    StdioTransport,
    Transport,
    UnknownTransport,
)

LINK = "/var/lib/mcpwrap/bin/mcp-wrapper-"
_STUBS = {STUB, "mcpwrap-connect"}
_OUR_URL = re.compile(r"http://127\.78\.[0-9]{1,3}\.[0-9]{1,3}:52100(?:/.*)?")

_RESTORE = "`mcpwrap unwrap` restores the entry, then wrap it again [E-WRAP-RUN-OTHER]"

WrapState = Literal["wrapped", "run", "raw", "drifted", "not understood", "off"]


@dataclass(frozen=True, slots=True)
class AppliedServers:
    """Applied servers and listeners, and another program under the stub's name in PATH."""

    inherits_by_server: Mapping[str, frozenset[str]]  # the variables that each takes from an agent
    server_by_url: Mapping[str, str] = field(default_factory=dict)  # the listeners of this account
    other_stub: str = ""  # the program in this person's PATH that hides the stub; "" if none does
    run_programs: frozenset[str] = frozenset()  # by which an entry may start `mcpwrap run`


@dataclass(frozen=True, slots=True)
class WrapStatus:
    """State of one entry. `server` is the server that it leads to, or its name for `run`, or ""."""

    state: WrapState
    server: str = ""
    why: str = ""


def wrap_status_of(listed: ListedServer, known: AppliedServers) -> WrapStatus:
    """Return the status of a listed server, which may be off."""
    return WrapStatus("off") if listed.is_off else wrap_status(listed.launch, known)


def wrap_status(launch: Transport, known: AppliedServers) -> WrapStatus:
    """Return the status of an entry. It has drifted if it seems to lead to mcpwrap and does not."""
    match launch:
        case UnknownTransport(why):
            return WrapStatus("not understood", "", why)
        case StdioTransport():
            return _of_program(launch, known)
        case HttpTransport():
            return _of_url(launch, known)
        case _:
            assert_never(launch)


def is_ours(launch: Transport) -> bool:
    """Return whether an entry leads to the stub, a listener or `run`, also if that is gone."""
    return is_run_line(launch) or wrap_status(launch, AppliedServers({})).state == "drifted"


def _of_program(launch: StdioTransport, known: AppliedServers) -> WrapStatus:
    if launch.command in _STUBS:
        if len(launch.args) != 1:
            why = "mcpwrap-connect takes one argument, the name of a server"
            return WrapStatus("drifted", "", why)
        name = launch.args[0]
    elif launch.command.startswith(LINK):
        name = launch.command.removeprefix(LINK)
        if launch.args:
            return WrapStatus("drifted", "", "the link of a server takes no arguments")
    else:
        return _of_run(launch, known) if is_run_line(launch) else WrapStatus("raw")
    if name not in known.inherits_by_server:
        return WrapStatus("drifted", "", f"no server {name!a} was applied")
    left = [f"`{key}`" for key in launch.further]
    given = (*launch.env, *launch.inherits)
    left += [key for key in given if key not in known.inherits_by_server[name]]
    if known.other_stub and "/" not in launch.command:
        return WrapStatus("drifted", name, f"starts another program, {known.other_stub!a}, by PATH")
    return _unless_left(name, left)


def _of_run(launch: StdioTransport, known: AppliedServers) -> WrapStatus:
    if launch.command not in known.run_programs:
        return WrapStatus("raw", "", f"{launch.command!a} is not this mcpwrap: {_RESTORE}")
    return WrapStatus("run", parse_run_line(launch.args).name)


def _of_url(launch: HttpTransport, known: AppliedServers) -> WrapStatus:
    name = known.server_by_url.get(launch.url.rstrip("/"))
    if name is None and _OUR_URL.fullmatch(launch.url):
        return WrapStatus("drifted", "", "no server listens there for this account")
    if name is None:
        return WrapStatus("raw")
    return _unless_left(name, [f"`{key}`" for key in launch.further] + list(launch.headers))


def _unless_left(name: str, left: list[str]) -> WrapStatus:
    if left:
        return WrapStatus("drifted", name, f"partly wrapped: it still has {', '.join(left)}")
    return WrapStatus("wrapped", name)
