"""Machines of this room: with agents in common use, and with alice, who has sudo."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed, package
from tests.system.bed.machine import Machine
from tests.system.support import emptied
from tests.system.wrap.people import HOME, add_alice


@contextmanager
def with_agents(suite: str) -> Iterator[Machine]:
    """Boot a machine with the agents, for one module after the other: see `anew`."""
    with installed.agents_machine(suite) as machine:
        add_alice(machine)
        yield machine


@contextmanager
def without_mcpwrap(suite: str) -> Iterator[Machine]:
    """Boot a machine with the agents, on which alice has the package and has not installed it."""
    with installed.bare_agents_machine(suite) as machine:
        add_alice(machine)
        machine.as_user("alice", "mkdir -p dist")
        shutil.copy2(package.build(suite), machine.path(f"{HOME}/dist"))
        yield machine


def anew(machine: Machine, *, groups: str = "") -> Machine:
    """Give alice an empty home and only these groups, and root no server."""
    emptied.empty(machine)
    machine.as_root(
        f"pkill -KILL -u alice; find {HOME} -mindepth 1 -delete; usermod -G '{groups}' alice;"
        f"cp -a /etc/skel/. {HOME}; chown -R alice: {HOME};"
        "rm -f /etc/npmrc /etc/pip.conf /usr/bin/notify-send"
    )
    return machine
