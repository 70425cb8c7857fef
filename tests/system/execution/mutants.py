"""Run slots without one of their mechanisms, for the time of a block."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.system.bed.machine import Machine
from tests.system.support.python_servers import LIMITED

UNIT = "mcpwrap-job@.service"
_OVERRIDE = f"/etc/systemd/system/{UNIT}"
_DROP_INS = tuple(
    f"/etc/systemd/system/mcpwrap-job@{server}-{number}.service.d/10-mcpwrap.conf"
    for server in ("python", LIMITED)
    for number in range(2)
)
_INSTALLED = "/usr/lib/mcpwrap/mcpwrap"
Patch = tuple[str, str, str]  # of a module: the text that is replaced, and the text instead


@contextmanager
def without(machine: Machine, *starts: str) -> Iterator[None]:
    """Remove the lines with one of these prefixes from the unit of runs, and from its drop-ins."""
    unit = machine.read(f"/usr/lib/systemd/system/{UNIT}")
    drop_ins = {path: machine.read(path) for path in _DROP_INS}
    lines = "\n".join((unit, *drop_ins.values())).splitlines()
    assert [start for start in starts if not any(line.startswith(start) for line in lines)] == []
    try:
        for path, text in {_OVERRIDE: unit, **drop_ins}.items():
            kept = [line for line in text.splitlines() if not line.startswith(starts)]
            machine.write(path, "\n".join(kept) + "\n")
        renew_slots(machine)
        yield
    finally:
        for path, text in drop_ins.items():
            machine.write(path, text)
        machine.as_root(f"rm {_OVERRIDE}")
        renew_slots(machine)


@contextmanager
def having(machine: Machine, *lines: str) -> Iterator[None]:
    """Add lines to the unit of runs."""
    drop_in = f"/run/systemd/system/{UNIT}.d/99-mutant.conf"
    machine.write(drop_in, "\n".join(("[Service]", *lines)) + "\n")
    renew_slots(machine)
    try:
        yield
    finally:
        machine.as_root(f"rm {drop_in}")
        renew_slots(machine)


@contextmanager
def patched(machine: Machine, *patches: Patch) -> Iterator[None]:
    """Replace pieces of the code that is installed, of the worker or of run slots."""
    with ExitStack() as stack:
        stack.callback(renew_slots, machine)
        for module, piece, instead in patches:
            file = f"{_INSTALLED}/{module}.py"
            text = machine.read(file)
            assert text.count(piece) == 1, f"{module} has it {text.count(piece)} times: {piece}"
            stack.callback(machine.replace, file, text)
            machine.replace(file, text.replace(piece, instead))
        renew_slots(machine)
        yield


def renew_slots(machine: Machine) -> None:
    """End the supervisors and the worker that wait: the next ones have the units as they are."""
    stop = "systemctl stop mcpwrap-worker.service 'mcpwrap-job@*.service'"
    machine.as_root(f"systemctl daemon-reload; {stop}")
