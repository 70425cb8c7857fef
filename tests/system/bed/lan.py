"""Network of machines: a switch in a network namespace. RUNS AS ROOT on the test host."""

import subprocess
from types import TracebackType

from tests.system.bed import netns
from tests.system.bed.machine import Machine

END_S = 10
DEVICE = "eth1"  # eth0 is the cable of `internet.py`
MACHINE_LINKS = f"""
link set lo up
link set {DEVICE} up
address add {{address}} dev {DEVICE}
"""


class Lan:
    """Switch, and the cables to its machines. A context manager."""

    def __init__(self) -> None:
        hold = "echo; exec cat"  # the namespace ends with this process
        self._process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout
        self._process.stdout.readline()
        self._port_by_machine: dict[Machine, str] = {}
        self._ports = 0
        netns.ip(self._process.pid, "link add switch type bridge\nlink set switch up\n")

    def __enter__(self) -> "Lan":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def plug(self, machine: Machine, address: str) -> None:
        """Lay the cable of a machine. Another boot of it removes the cable: call this again."""
        self._ports += 1
        port, switch = f"port{self._ports}", self._process.pid
        netns.lay_cable((port, switch), (DEVICE, machine.leader))
        netns.ip(switch, f"link set {port} master switch\nlink set {port} up\n")
        self._port_by_machine[machine] = port
        netns.ip(machine.leader, MACHINE_LINKS.format(address=f"{address}/24"))

    def lose_power(self, machine: Machine) -> None:
        """Kill a machine as a power failure does: no packet leaves it any more.

        Its cable is cut first: its processes do not end at once, and while PID 1 has gone and
        others are there, they would send what no machine sends.
        """
        netns.ip(self._process.pid, f"link delete {self._port_by_machine.pop(machine)}\n")
        machine.lose_power()
