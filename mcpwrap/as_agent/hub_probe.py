"""Attempt of `mcpwrap doctor` in a session of a hub: its members, and the models of agents here.

The agents are those with a file of their own in the account's home, or of root's in /etc. The names
of tools are those for a hub that the agent's file lists under the hub's own name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from mcpwrap.config.agent_files.known_agents import AGENTS
from mcpwrap.core.doctor import Check, good, warned
from mcpwrap.core.hub.agent_profiles import AGENT_PROFILES, AgentProfile, why_refused
from mcpwrap.core.protocol.json_value import Json
from mcpwrap.core.text.sanitise import one_line

_SHOWN_NAMES = 3
_MAX_CHARS = 2000
_OF = re.compile(r"\bfrom ([0-9]{1,4})/([0-9]{1,4}) servers")  # of `mcpwrap_status`
_SHORTER = "give its member a shorter `namespace`, or the hub a shorter name"
_FEWER = "hide tools with a policy of its members, or make two hubs"

Tool = Mapping[str, Json]


def checks(hub: str, home: str, tools: object, status: str) -> Iterator[Check]:
    """Yield a check of the members, and one for each agent, by two untrusted answers of the hub."""
    yield _members(hub, status)
    items = cast(list[object], tools) if isinstance(tools, list) else []
    listed = [cast(Tool, item) for item in items if isinstance(item, dict)]
    for profile in _profiles(home):
        yield _agent(hub, profile, listed)


def _profiles(home: str) -> list[AgentProfile]:
    """Return the profiles of agents that have a file of this account or of root."""
    titles = {
        agent.title
        for agent in AGENTS
        for file in agent.files
        if file.scope != "project" and Path(file.place({"HOME": home})).exists()
    }
    return [profile for profile in AGENT_PROFILES if profile.name in titles]


def _members(hub: str, status: str) -> Check:
    """Return whether the hub knows the tools of all of its members. Each line is of one member."""
    what = f"{hub}: members"
    lines = [one_line(line) for line in status.splitlines() if line.strip()]
    found = _OF.search(lines[0]) if lines else None
    text = "; ".join(lines)[:_MAX_CHARS] or "its tool `mcpwrap_status` returned no text"
    if found and found[1] == found[2] and ";" not in lines[0]:
        return good(what, text)
    return warned(what, text, f"`mcpwrap status {hub}` shows the state of each member")


def _agent(hub: str, profile: AgentProfile, tools: Sequence[Tool]) -> Check:
    """Return what one agent's model sees of these tools, and what is over its limits."""
    taken = [tool for tool in tools if not why_refused(profile, tool)]
    refused = sum(1 for tool in tools if why_refused(profile, tool))
    prefix = profile.prefix.format(hub=hub)
    names = [f"{prefix}{tool.get('name')}" for tool in taken]
    long = [name for name in names if len(name) > profile.max_name_chars]
    text = f"{len(taken)} tools, {len(msgspec.json.encode(taken))} characters, as {prefix}NAME"
    text += "; it follows changes of the list" * profile.follows_list_changed
    if refused:
        text += f"; {refused} are left out, whose schemas its model refuses"
    what = f"{hub}: {profile.name}"
    if long:
        shown = ", ".join(one_line(name) for name in long[:_SHOWN_NAMES])
        more = f" and {len(long) - _SHOWN_NAMES} more" if len(long) > _SHOWN_NAMES else ""
        over = f"over its {profile.max_name_chars} characters: {shown}{more}"
        return warned(what, f"{text}; {over}", _SHORTER)
    if profile.max_tools and len(taken) > profile.max_tools:
        return warned(what, f"{text}; over its {profile.max_tools} tools", _FEWER)
    return good(what, text)
