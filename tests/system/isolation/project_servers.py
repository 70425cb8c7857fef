"""Real servers that need the project of their agent, started by alice herself and wrapped."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.shared import pace
from tests.system.bed.machine import BED_AT, CLIENT, Machine
from tests.system.guest.project_calls import PROJECT

HOME, SRC = "/home/alice", "/home/alice/src"
PROJECTS = (f"{SRC}/one", f"{SRC}/two")
RAW, WRAPPED = "raw", "wrapped"
NAME = "${NAME}"
DATE = "1767225600 +0000"  # of each commit
# Repositories with a change that is not committed.
MAKE_PROJECTS = f"""
umask 022; rm -rf {SRC} {HOME}/memory.json; mkdir {SRC}; cd {SRC}
export GIT_AUTHOR_DATE="{DATE}" GIT_COMMITTER_DATE="{DATE}"
for name in one two; do
    git init -q -b main $name; cd $name; mkdir docs
    git config user.name Alice; git config user.email alice@good.test
    echo "first of $name" > notes.txt; echo "of $name" > docs/$name.md
    git add .; git commit -q -m first; echo second >> notes.txt
    %s
    cd ..
done
"""
Json = dict[str, Any]
CALLS = f"PYTHONPATH={BED_AT} {CLIENT} -m tests.system.guest.project_calls {pace.WAIT_S}"


@dataclass(frozen=True, kw_only=True)
class Server:
    """Server that needs the project, with a tour of its tools.

    The same entry is alice's own and the wrapped one, but for what `own` has in place of `env`.
    """

    command: tuple[str, ...]
    calls: Sequence[tuple[str, Json]]
    env: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    settings: str = ""  # of mcpwrap
    prepare: str = ""  # commands in each project, before
    tells: str = ""  # a text of a notification that says that it is ready
    shows: str = PROJECT  # a text of the project, in an answer; it may have its name
    makes: str = ""  # a file in the project
    volatile: tuple[str, ...] = ()  # starts of paths whose content has times or random values


def with_entries(machine: Machine, servers: dict[str, Server]) -> None:
    """Make alice, and the entries of these servers, which may see her projects."""
    machine.add_person("alice", groups="mcpwrap")
    machine.as_user("alice", f"mkdir {SRC}")
    machine.configure("".join(_entry(name, server) for name, server in servers.items()))
    machine.apply()


def _entry(name: str, server: Server) -> str:
    command, *args = server.command
    env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in server.env.items())
    return f"""
[mcp_servers.{name}]
command = "{command}"
args = {json.dumps(args)}
env = {{ {env} }}
[mcp_servers.{name}.mcpwrap]
agents = ["alice"]
projects = ["{SRC}:rw"]
{server.settings}
"""


def used(
    machine: Machine, name: str, server: Server, projects: Sequence[str] = PROJECTS
) -> dict[str, Json]:
    """Use a server raw and wrapped, each time in these projects, which are made anew before.

    Returns what came of it, by way and project.
    """
    ways = {
        RAW: {"command": server.command, "env": server.env | server.own},
        WRAPPED: {"command": ["mcpwrap-connect", name], "env": {}},
    }
    given = {
        "prepare": MAKE_PROJECTS % server.prepare,
        "projects": projects,
        "ways": ways,
        "calls": server.calls,
        "tells": server.tells,
    }
    found: dict[str, Json] = json.loads(
        machine.as_user("alice", CALLS, stdin=json.dumps(given)).out
    )
    return found


def assert_same(machine: Machine, name: str, server: Server) -> None:
    """Compare the answers in both projects, and the files that are made."""
    found = used(machine, name, server)
    ids = [machine.look(f"id -{kind} alice").strip() for kind in "ug"]
    for project in PROJECTS:
        before, after = found[RAW][project], found[WRAPPED][project]
        for own, ours in zip(before["steps"], after["steps"], strict=True):
            assert ours == own, f"wrapped: {ours}\nraw: {own}"
        failed = [step for step in before["steps"] if is_error(step)]
        assert failed == [], failed
        shown = server.shows.replace(PROJECT, project).replace(NAME, Path(project).name)
        assert shown in json.dumps(before["steps"]), shown
        changed = differing(before["files"], after["files"], server)
        assert changed == {}, changed
        assert not server.makes or server.makes in after["files"], sorted(after["files"])
        others = {path: about for path, about in after["files"].items() if about[:2] != ids}
        assert others == {}, others


def is_error(step: list[Any]) -> bool:
    """Return whether a call failed."""
    _, value = step
    return isinstance(value, dict) and ("error" in value or bool(value.get("isError")))


def differing(before: Json, after: Json, server: Server) -> Json:
    """Return the files that are not the same in two states, apart from what is volatile."""

    def of(state: Json, path: str) -> Any:
        about = state.get(path)
        volatile = (".git/index", ".git/logs/", *server.volatile)  # they have times
        return about[:-1] if about and path.startswith(volatile) else about

    both = {path: (of(before, path), of(after, path)) for path in before.keys() | after.keys()}
    return {path: pair for path, pair in both.items() if pair[0] != pair[1]}
