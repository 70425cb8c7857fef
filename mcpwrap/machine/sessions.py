"""Running sessions of this machine, read from the cgroups: each is a group `s-ID`.

In it is an empty group `agent-UID-TIME`; without it, the group is of a pre-forked process. A
session that a hub has opened has another, `hub-NAME`.

Every account can read the groups. They exist exactly as long as the sessions, so there is no other
list of sessions.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.linux.isolation.cgroup import TREES, Leaf
from mcpwrap.linux.systemd import systemctl
from mcpwrap.plan import paths

_GROUP = re.compile(r"s-([0-9a-f]{16})")
_AGENT = re.compile(r"agent-([0-9]{1,10})-([0-9]{1,12})")
_HUB = re.compile(r"hub-([a-z][a-z0-9_-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSession:
    """Running session. `since_s` is in seconds since the epoch."""

    id: str
    name: str
    agent_uid: int
    since_s: int
    tasks: int
    leaf: Leaf
    hub: str = ""  # by which the agent uses the server


def running(names: Iterable[str]) -> list[RunningSession]:
    """Return the sessions of these servers."""
    units = {paths.service_unit(name): name for name in names}
    shown = systemctl.properties(units, ["ControlGroup"])
    found = []
    for unit, name in sorted(units.items()):
        group = shown[unit]["ControlGroup"].lstrip("/")
        trees = [tree / group for tree in TREES if group and (tree / group).is_dir()]
        found += [session for tree in trees for session in _below(tree, name)]
    return list({session.id: session for session in found}.values())


def _below(tree: Path, name: str) -> list[RunningSession]:
    found: list[RunningSession] = []
    try:
        folders = sorted(tree.iterdir())
    except OSError:  # a server can close it to all accounts but root
        return found
    for folder in folders:
        if match := _GROUP.fullmatch(folder.name):
            leaf = Leaf(tree, folder.name)
            labels = leaf.labels()
            agents = [a for a in map(_AGENT.fullmatch, labels) if a]
            hubs = [hub[1] for hub in map(_HUB.fullmatch, labels) if hub]
            found += [
                RunningSession(
                    id=match[1],
                    name=name,
                    agent_uid=int(agent[1]),
                    since_s=int(agent[2]),
                    tasks=leaf.tasks(),
                    leaf=leaf,
                    hub="".join(hubs[:1]),
                )
                for agent in agents[:1]
            ]
    return found
