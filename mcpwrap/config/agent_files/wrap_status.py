"""Wrapping state of a server in an agent's file, by what root applied, not by how it looks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from mcpwrap.config.agent_files.entry_schema import STUB
from mcpwrap.config.agent_files.parsed_file import Listed
from mcpwrap.config.agent_files.transport import HttpTransport, NotUnderstood, Stdio, Transport

LINK = "/var/lib/mcpwrap/bin/mcp-wrapper-"
_STUBS = {STUB, "mcpwrap-connect"}
_OUR_URL = re.compile(r"http://127\.78\.[0-9]{1,3}\.[0-9]{1,3}:52100(?:/.*)?")

WrapState = Literal["wrapped", "raw", "drifted", "not understood", "off"]


@dataclass(frozen=True, slots=True)
class Known:
    """Applied servers and listeners, and another program under the stub's name in PATH."""

    inherits_by_server: Mapping[str, frozenset[str]]  # the variables that each takes from an agent
    server_by_url: Mapping[str, str] = field(default_factory=dict)  # the listeners of this account
    other_stub: str = ""  # what this person's PATH has under the stub's name, if it is not the stub


@dataclass(frozen=True, slots=True)
class Standing:
    """State of one entry. `server` is the one of ours that it leads to; "" is none."""

    state: WrapState
    server: str = ""
    why: str = ""


def standing_of(listed: Listed, known: Known) -> Standing:
    """Return the state of a server, which may be off."""
    return Standing("off") if listed.is_off else standing(listed.launch, known)


def standing(launch: Transport, known: Known) -> Standing:
    """Return the state of an entry. What leads to no server of ours, and seems to, has drifted."""
    match launch:
        case NotUnderstood(why):
            return Standing("not understood", "", why)
        case Stdio():
            return _of_program(launch, known)
        case HttpTransport():
            return _of_url(launch, known)
        case _:
            assert_never(launch)


def is_ours(launch: Transport) -> bool:
    """Say whether an entry leads to the stub or a URL of ours, also of a server that is gone."""
    return standing(launch, Known({})).state == "drifted"


def _of_program(launch: Stdio, known: Known) -> Standing:
    if launch.command in _STUBS:
        if len(launch.args) != 1:
            return Standing("drifted", "", "mcpwrap-connect wants one argument, a server's name")
        name = launch.args[0]
    elif launch.command.startswith(LINK):
        name = launch.command.removeprefix(LINK)
        if launch.args:
            return Standing("drifted", "", "the link of a server takes no arguments")
    else:
        return Standing("raw")
    if name not in known.inherits_by_server:
        return Standing("drifted", "", f"no server {name!a} was applied")
    left = [f"`{key}`" for key in launch.further]
    given = (*launch.env, *launch.inherits)
    left += [key for key in given if key not in known.inherits_by_server[name]]
    if known.other_stub and "/" not in launch.command:
        return Standing("drifted", name, f"starts another program, {known.other_stub!a}, by PATH")
    return _unless_left(name, left)


def _of_url(launch: HttpTransport, known: Known) -> Standing:
    name = known.server_by_url.get(launch.url.rstrip("/"))
    if name is None and _OUR_URL.fullmatch(launch.url):
        return Standing("drifted", "", "no server listens there for this account")
    if name is None:
        return Standing("raw")
    return _unless_left(name, [f"`{key}`" for key in launch.further] + list(launch.headers))


def _unless_left(name: str, left: list[str]) -> Standing:
    if left:
        return Standing("drifted", name, f"half ours: what is left of before: {', '.join(left)}")
    return Standing("wrapped", name)
