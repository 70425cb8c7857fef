"""needrestart after an update of a library that gate and wrappers have open."""

from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.machine import Machine
from tests.system.beside import neighbours
from tests.system.beside.neighbours import has_egress, main_pids
from tests.system.support.tiers import on_release, only_in_test_all

STAGE = neighbours.booted
pytestmark = [
    on_release("trixie"),
    only_in_test_all("installs needrestart; the upgrade of the package itself is in make test"),
]
CONF = "/etc/needrestart/conf.d/mcpwrap.conf"
# Of the gate and the wrapper, and not of the stub: that is in the session of a person.
LIBRARY = "$(readlink -f /usr/lib/x86_64-linux-gnu/libffi.so.8)"
UPDATE = f"cp -a {LIBRARY} {LIBRARY}.new && mv {LIBRARY}.new {LIBRARY}"
UNATTENDED = "DEBIAN_FRONTEND=noninteractive needrestart -r a"
HELD = {"mcpwrap-gate.service", "mcpwrap@probe.service"}


def outdated(machine: Machine) -> set[str]:
    """Return our units that have the old library open, and are in use by sessions."""
    shown = machine.as_root("needrestart -b").out.splitlines()
    return {line.removeprefix("NEEDRESTART-SVC: ") for line in shown} & HELD


def test_needrestart_leaves_open_sessions_alone(machine: Machine) -> None:
    installed.add_neighbour(machine, "needrestart")
    with machine.session("probe") as session:
        assert has_egress(session)
        pids = main_pids(machine)
        machine.as_root(UPDATE)
        assert outdated(machine) == HELD
        deferred = machine.as_root(UNATTENDED).out.partition("being deferred:")[2]
        assert all(unit in deferred for unit in HELD)
        assert has_egress(session)
        assert main_pids(machine) == pids
        # The twin: without our file it restarts them, and the session ends.
        machine.announce("mcpwrap-(gate|watch|front|squid-.*)|mcpwrap@")
        machine.as_root(f"mv {CONF} /root/; {UNATTENDED}; mv /root/mcpwrap.conf {CONF}")
        assert session.process.wait(pace.WAIT_S) != 0
        session.close()
    machine.await_admission("probe")
    with machine.session("probe") as session:
        assert has_egress(session)
    assert outdated(machine) == set()
