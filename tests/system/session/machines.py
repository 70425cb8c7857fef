"""Machines of the session stories, and the checks that a session has ended."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import BED_AT, Machine
from tests.system.bed.nspawn import Profile
from tests.system.support.servers import PROBE_SERVER, a_server
from tests.system.support.tiers import only_in_test_all

PYTHON = "/usr/bin/python3"
ECHO = f'command = "{PYTHON}"\nargs = ["{BED_AT}/tests/system/guest/echo_server.py"]'
# A real Debian has cgroup v2, and with it `cgroup.kill`.
PROFILES = [
    pytest.param(Profile.V1, marks=only_in_test_all("every Debian boots with v2; v1 is an option")),
    Profile.BPF,
]
STUBS = "'^/usr/bin/python3 -ISE .*mcpwrap-connect'"

# Servers with small limits; one that ends soon when it is idle; one that two accounts share; three
# that send back their input, by the gate, without it, and with a redactor.
BOUNDED = (
    a_server(
        "greedy", 'limits = { memory = "160M", tasks = 20, sessions = 4 }\nidle_exit = "never"'
    )
    + a_server(
        "keeper",
        'agents = ["alice"]\nstate = true\ncache = true\n'
        'limits = { state = "16M", cache = "32M" }\nidle_exit = "never"',
    )
    + a_server("swift", 'relay = "direct"\nidle_exit = "1s"')
    + a_server("few", 'agents = ["alice", "bob"]\nlimits = { sessions = 4 }')
    + f"""
[mcp_servers.brief]
command = "/usr/bin/false"
[mcp_servers.echo]
{ECHO}
[mcp_servers.echo.mcpwrap]
limits = {{ sessions = 17 }}  # one is kept for another account of the group
idle_exit = "never"
[mcp_servers.straight]
{ECHO}
[mcp_servers.straight.mcpwrap]
relay = "direct"
limits = {{ sessions = 17 }}
idle_exit = "never"
[mcp_servers.sealed]
{ECHO}
env = {{ TOKEN = "${{TOKEN}}" }}
[mcp_servers.sealed.mcpwrap]
agents = ["alice"]
idle_exit = "never"
"""
)
# Like the probe, but it has a secret and does not end when its agent leaves.
STUBBORN = f"""
[mcp_servers.stubborn]
command = "{PYTHON}"
args = ["-c", "exec(open('/opt/probe.py').read()); import time; time.sleep(1000)"]
env = {{ TOKEN = "${{TOKEN}}" }}
[mcp_servers.stubborn.mcpwrap]
agents = ["alice", "bob"]
shared = true
limits = {{ sessions = 8 }}
[mcp_servers.cat]
command = "/usr/bin/cat"
"""
# Those that get the agent's own descriptors, one of them behind a redactor.
STRAIGHT = (
    a_server("straight", 'relay = "direct"')
    + f"""
[mcp_servers.hidden]
command = "{PYTHON}"
args = ["/opt/probe.py"]
env = {{ TOKEN = "${{TOKEN}}" }}
[mcp_servers.hidden.mcpwrap]
agents = ["alice"]
relay = "direct"
"""
)


@contextmanager
def bounded(suite: str) -> Iterator[Machine]:
    """Boot a machine on which memory and tasks are limited, for a whole wrapper."""
    with installed.booted(suite) as machine:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        machine.configure(BOUNDED)
        machine.as_root("mcpwrap policy default disable limits")  # stories call in a loop
        machine.apply()
        machine.as_root("mcpwrap secret set sealed TOKEN", stdin="a-canary-value")
        yield machine


@contextmanager
def of_profile(suite: str, profile: Profile) -> Iterator[Machine]:
    """Boot a machine of this profile with the probe, a server that ignores its end, and cat.

    The profile decides how a session's processes are ended.
    """
    with installed.booted(suite, profile) as machine:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        machine.configure(PROBE_SERVER + STUBBORN + STRAIGHT)
        machine.apply()
        for name in ("stubborn", "hidden"):
            machine.as_root(f"mcpwrap secret set {name} TOKEN", stdin="a-canary-value")
        yield machine


def stub_of(machine: Machine) -> int:
    """Return the process of the stub that alice's agent started last."""
    return int(machine.look(f"pgrep -n -u alice -f {STUBS}"))


def await_status(machine: Machine, name: str, text: str) -> None:
    """Wait until systemd has this in the status of a wrapper."""
    show = f"systemctl show -P StatusText mcpwrap@{name}.service"
    machine.look(f"until {show} | grep -qF '{text}'; do :; done")


def await_no_place(machine: Machine, name: str) -> None:
    """Wait until no session's folders are left in the wrapper's own view of the machine."""
    supervisor = machine.show(f"mcpwrap@{name}.service", "MainPID")["MainPID"]
    places = f"/proc/{supervisor}/root/run/mcpwrap/rt/{name}/*/*/*"
    machine.look(f"while ls -d {places} >/dev/null 2>&1; do :; done")


def tried_until_held_back(machine: Machine, name: str, connect: str, why: str) -> list[str]:
    """Request a server that cannot be started until the gate no longer tries; return the errors.

    Each contains `why`, and the last is the one with which the gate refuses the server.
    """
    errors, starts = [""], 0
    while "next try in" not in errors[-1]:  # on a busy host a retry may come when the wait is over
        starts = starts_of(machine, name)
        errors.append(machine.as_user("alice", connect, status=70).err)
        assert why in errors[-1]
        assert len(errors) < 20
    assert starts_of(machine, name) == starts  # the last try was answered without a start
    return errors[1:]


def starts_of(machine: Machine, name: str) -> int:
    """Return how often systemd has started a wrapper in this boot."""
    entries = machine.journal(f"UNIT=mcpwrap@{name}.service")
    return sum(str(entry["MESSAGE"]).startswith("Starting ") for entry in entries)
