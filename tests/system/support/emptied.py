"""Machine without servers, which stories fill and which is emptied between them."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.machine import Machine

CONFIG = "/etc/mcpwrap/config.toml"
CONF_D = "/etc/mcpwrap/conf.d"


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot a machine with two people who may have servers, one who may not, and no server."""
    with installed.booted(suite) as machine:
        for name in ("alice", "bob"):
            machine.add_person(name, groups="mcpwrap")
        machine.add_person("mallory")
        yield machine


def empty(machine: Machine) -> None:
    """Remove the configuration and root's files of its servers, as before the first one."""
    found = machine.look(f"ls {CONFIG} {CONF_D}/* 2>/dev/null; true")
    if found:
        machine.as_root(f"rm -f {CONF_D}/*; : > {CONFIG}; mcpwrap apply --purge && rm {CONFIG}")
