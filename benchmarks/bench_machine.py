"""A booted machine with the package, our programs and servers. RUNS AS ROOT on the host."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import gate_rules
from tests.system.bed import installed, package, roots
from tests.system.bed.machine import BED_AT, Machine
from tests.system.bed.nspawn import Container, Profile, remove_abandoned

SUITE = "bookworm"
HERE = Path(__file__).parent
INSIDE = "/opt/bench"
PROGRAMS = ("echo", "relay", "load", "starts")
ECHO = f"{INSIDE}/echo"
AGENT, OTHER = "alice", "bench"  # whom agents are, and whom sudo and systemd-run change to
SUDOERS = f"""\
{AGENT} ALL=({OTHER}) NOPASSWD: {ECHO}
{AGENT} ALL=(root) NOPASSWD: /usr/bin/systemd-run
"""
CONFIG_REFUSED = 2  # exit status of `mcpwrap apply`; nothing was changed
SERVERS = ("warm", "cold", "gated", "idle", *gate_rules.SERVERS)
SECRET_SERVER, DIRECT_SERVER, RUN_SERVER = "sealed", "direct", "runs"
HUB, HUB_MEMBER, BIG_HUB = "hub", "hubmember", "bighub"
BIG_MEMBERS, BIG_TOOLS = 10, 30  # of the hub whose list is measured, and of each of them
MEMBER_TOOLS = 12  # of guest/hub/member.py itself
PINNED_SERVER, UNPINNED_SERVER, PINNED_TOOLS = "pinned", "unpinned", 300
PROJECT_SERVER, PROJECT = "project", f"/home/{AGENT}/src/a"
_SCHEMA = {
    "type": "object",
    "properties": {f"p{n}": {"type": "string", "description": "y" * 60} for n in range(4)},
}
PYTHON_SERVER = f"""
[mcp_servers.{RUN_SERVER}]
python = "/usr/bin/python3"
[mcp_servers.{RUN_SERVER}.mcpwrap]
agents = ["{AGENT}"]
"""


class BenchRoot(roots.Layer):
    """Layer of the test bed's root for benchmarks; its recipe is `root.sh` in this folder."""

    @property
    def recipe(self) -> Path:
        """The script `root.sh`."""
        return HERE / "root.sh"

    @property
    def inputs(self) -> list[Path]:
        """What it installs from PyPI."""
        own = [HERE / "peers.pypi.txt", HERE / "http_peers.pypi.txt"]
        return [*own, roots.RECIPES / "servers.uv.txt"]


@dataclass(frozen=True)
class Prepared:
    """Machine to measure on, and facts about the servers that its mcpwrap version can have."""

    machine: Machine
    has_secrets: bool
    has_direct: bool
    has_python: bool
    has_hubs: bool
    has_pins: bool
    has_projects: bool  # the version of the package has `projects`


@contextmanager
def prepared(commit: str = "") -> Iterator[Prepared]:
    """Build what is not there yet, boot, install by apt, compile, configure; remove at the end.

    The package is that of the tree, or of a commit.
    """
    roots.need_root("make bench")
    root = roots.ensure(BenchRoot(SUITE, "bench", roots.Layer(SUITE, "base")))
    deb = package.build_commit(commit, SUITE) if commit else package.build(SUITE)
    installed.MACHINES.mkdir(parents=True, exist_ok=True)
    remove_abandoned(installed.MACHINES)
    container = Container(root.lower_dirs(), installed.MACHINES, Profile.LIMITS)
    try:
        machine = Machine(SUITE, container)
        shutil.copy2(deb, machine.path("/root/mcpwrap.deb"))
        machine.as_root("apt-get install -y /root/mcpwrap.deb")
        _compile(machine)
        machine.add_person(AGENT, groups="mcpwrap")
        machine.add_person(OTHER)
        machine.write("/etc/sudoers.d/bench", SUDOERS, mode=0o440)
        machine.configure("".join(map(_server, SERVERS)))
        _add_policy_and_peers(machine)
        machine.apply()
        direct = _server(DIRECT_SERVER, ours='relay = "direct"')
        yield Prepared(
            machine,
            has_secrets=_add_secret_server(machine),
            has_direct=_may_add(machine, DIRECT_SERVER, direct),
            has_python=_may_add(machine, RUN_SERVER, PYTHON_SERVER),
            has_hubs=_may_add(machine, HUB, _hubs()),
            has_projects=_may_add(machine, PROJECT_SERVER, _in_project(machine)),
            has_pins=_may_add(machine, PINNED_SERVER, _with_and_without_pins(machine)),
        )
    finally:
        container.remove()


def _add_policy_and_peers(machine: Machine) -> None:
    machine.write("/etc/mcpwrap/policy.yaml", gate_rules.policy())
    if machine.as_root("mcpwrap policy check >/dev/null 2>&1 || echo old").out:
        machine.write("/etc/mcpwrap/policy.yaml", gate_rules.policy_before_defaults())
    machine.as_root("mcpwrap policy check && systemctl reload-or-restart mcpwrap-gate")
    machine.write(f"{INSIDE}/firewall.yaml", gate_rules.FIREWALL)
    for name, command in gate_rules.PEERS.items():
        script = f"#!/bin/sh\n{command} -- {ECHO} 2>/dev/null\nexit 0\n"
        machine.write(f"{INSIDE}/{name}", script, mode=0o755)


def _compile(machine: Machine) -> None:
    for source in HERE.glob("*.[ch]"):
        machine.write(f"{INSIDE}/{source.name}", source.read_text())
    for program in PROGRAMS:
        options = f"-O2 -Wall -Wextra -pthread -o {program} {program}.c"
        machine.as_root(f"cd {INSIDE} && gcc {options}")


def _server(name: str, *, more: str = "", ours: str = "") -> str:
    """Return the echo server under this name, with more settings: its own, and those of mcpwrap."""
    return f"""
[mcp_servers.{name}]
command = "{ECHO}"
{more}
[mcp_servers.{name}.mcpwrap]
agents = ["{AGENT}"]
{ours}
"""


def _hubs() -> str:
    """Return a hub of the echo server, whose names stay as they are, and one of many members."""
    names = [f"m{number}" for number in range(BIG_MEMBERS)]
    args = ["-m", "tests.system.guest.hub.member", "m", "--tools", str(BIG_TOOLS - MEMBER_TOOLS)]
    big = "".join(
        _member(name, args) + f"[mcp_servers.{BIG_HUB}.members.{name}]\n" for name in names
    )
    ours = "".join(
        f'[mcp_servers.{name}.mcpwrap]\nagents = ["{AGENT}"]\n' for name in (HUB, BIG_HUB)
    )
    small = f'[mcp_servers.{HUB}.members.{HUB_MEMBER}]\nnamespace = ""\n'
    return _server(HUB_MEMBER) + small + big + ours


def _member(name: str, args: list[str]) -> str:
    """Return a server of the stories' program; its last table is that of its settings."""
    return f"""
[mcp_servers.{name}]
command = "/usr/bin/python3"
args = {json.dumps(args)}
env = {{ PYTHONPATH = "{BED_AT}" }}
[mcp_servers.{name}.mcpwrap]
agents = ["{AGENT}"]
"""


def _in_project(machine: Machine) -> str:
    """Return a server that sees its agent's project; make one."""
    machine.as_user(AGENT, f"mkdir -p {PROJECT} && git init -q {PROJECT}")
    above = PROJECT.rpartition("/")[0]
    return _server(PROJECT_SERVER, ours=f'projects = ["{above}:rw"]')


def _with_and_without_pins(machine: Machine) -> str:
    """Return two servers with the same tools, of about 1 KB each as those of real servers are."""
    tools = [
        {"name": f"tool-{n:03}", "description": "x" * 600, "inputSchema": _SCHEMA}
        for n in range(PINNED_TOOLS)
    ]
    lists = {"tools": tools, "prompts": [], "resources": [], "resourceTemplates": []}
    about = {"serverInfo": {"name": "bench", "version": "1"}}
    machine.write(f"{INSIDE}/tools.json", json.dumps({"about": about, **lists}))
    options = ["--definitions", f"{INSIDE}/tools.json", "--page", str(PINNED_TOOLS)]
    args = ["-m", "tests.system.guest.hub.member", "m", *options]
    return "".join(
        _member(name, args) + f'pins = "{pins}"\n'
        for name, pins in ((PINNED_SERVER, "first-use"), (UNPINNED_SERVER, "off"))
    )


def _add_secret_server(machine: Machine) -> bool:
    has_command = "mcpwrap secret --help >/dev/null 2>&1 && echo yes || echo no"
    if machine.as_root(has_command).out.strip() == "no":
        return False
    config = _server(SECRET_SERVER, more='env = { TOKEN = "${TOKEN}" }')
    machine.write(f"/etc/mcpwrap/conf.d/{SECRET_SERVER}.toml", config)
    machine.as_root(f"mcpwrap secret set {SECRET_SERVER} TOKEN", stdin="not-a-real-token")
    machine.apply()
    return True


def _may_add(machine: Machine, name: str, config: str) -> bool:
    """Add a server, unless this version refuses its settings."""
    file = f"/etc/mcpwrap/conf.d/{name}.toml"
    machine.write(file, config)
    status = int(machine.as_root("mcpwrap apply >/dev/null 2>/root/why; echo $?").out)
    if status == CONFIG_REFUSED:
        machine.as_root(f"rm {file}")
        return False
    if status:
        raise RuntimeError(f"mcpwrap apply:\n{machine.read('/root/why')}")
    return True
