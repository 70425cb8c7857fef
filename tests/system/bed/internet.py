"""Internet of a machine, in a network namespace beside it. RUNS AS ROOT on the test host.

Every address answers there, private ones too, so that a packet that should not have left the
machine is recorded. Nothing is made in the host's own namespace: each end of the cable is made in
its own namespace.
"""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from tests.system.bed import internet_map, netns
from tests.system.bed.machine import Machine
from tests.system.bed.origins import record
from tests.system.bed.origins.record import Call, Connection, Packet, Post, Query, Request

TOP = Path(__file__).resolve().parents[3]
END_S = 10
# Table `local` is looked up first: a destination not on the cable is this namespace's own, and
# answers.
INTERNET_LINKS = """
link set lo up
link set eth0 up
address add {gateway} dev eth0
address add {gateway_v6} dev eth0 nodad
route add 192.0.2.0/24 dev eth0 table local
route add 2001:db8:1::/64 dev eth0 table local
route add fe80::/64 dev eth0 table local
route replace local 0.0.0.0/0 dev lo
route replace local ::/0 dev lo
"""
MACHINE_LINKS = """
link set lo up
link set eth0 up
address add {machine} dev eth0
address add {machine_v6} dev eth0 nodad
route add default via {via}
route add default via {via_v6}
"""


class Internet:
    """Internet of one machine, from plugging it in to `remove`. Also a context manager.

    The machine keeps /etc/resolv.conf and the test authority after that.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._process = subprocess.Popen(
            ["unshare", "--net", sys.executable, "-m", "tests.system.bed.origins.main"],
            cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            self.ca_pem = msgspec.json.decode(self._read_line(), type=str)
            self.plug()
            machine.write("/etc/resolv.conf", f"nameserver {internet_map.RESOLVER}\n")
            machine.write("/usr/local/share/ca-certificates/bed.crt", self.ca_pem)
            machine.as_root("update-ca-certificates")
        except BaseException:
            self.remove()
            raise

    def __enter__(self) -> "Internet":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    # ------------------------------------------------------------------ actions
    @property
    def pid(self) -> int:
        """Process whose network namespace the internet is."""
        return self._process.pid

    def plug(self) -> None:
        """Lay the cable. Another boot of the machine removes it: call this again."""
        with suppress(RuntimeError):  # the end of the machine may not have removed this end yet
            self.unplug()
        netns.lay_cable(("eth0", self.pid), ("eth0", self._machine.leader))
        (gateway, gateway_v6), (address, address_v6) = internet_map.GATEWAY, internet_map.MACHINE
        netns.ip(self.pid, INTERNET_LINKS.format(gateway=gateway, gateway_v6=gateway_v6))
        via, via_v6 = gateway.partition("/")[0], gateway_v6.partition("/")[0]
        places = {"machine": address, "machine_v6": address_v6, "via": via, "via_v6": via_v6}
        netns.ip(self._machine.leader, MACHINE_LINKS.format(**places))

    def start(self, argv: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a program of the machine on this internet, outside the machine's PID namespace."""
        place = [f"--net=/proc/{self.pid}/ns/net", "--setuid=65534", "--setgid=65534"]
        enter = ["nsenter", "-t", str(self._machine.leader), "-m", "-r", "-w", *place]
        return subprocess.Popen([*enter, "--", *argv], stdin=subprocess.DEVNULL, env=env)

    def unplug(self) -> None:
        """Remove the cable, both ends at once."""
        netns.ip(self.pid, "link delete eth0")

    def remove(self) -> None:
        """Remove the internet from the host; its namespace ends with its process."""
        with suppress(RuntimeError):  # the machine may have ended, and the cable with it
            self.unplug()
        try:
            self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def forget(self) -> None:
        """Clear the records, as between two tests."""
        self._ask(record.Forget())

    def add_name(
        self, name: str, *values: str, then: tuple[str, ...] = (), ttl_s: int = 3600
    ) -> None:
        """Set the answer for a name (or `*.` and its parent): addresses, or one other name.

        `then` is the answer from the second query of each type onwards.
        """
        self._ask(record.AddName(name, values, then, ttl_s))

    def add_pointer(self, address: str, name: str) -> None:
        """Set the answer for the reverse name of an address."""
        self._ask(record.AddPointer(address, name))

    # ------------------------------------------------------------------ records
    def connections(self) -> list[Connection]:
        """Return every TCP connection that was accepted, oldest first."""
        return self._ask(record.Report()).connections

    def hosts(self) -> set[str]:
        """Return the names of all connections: the server name of TLS, or the address.

        Squid tries the other address family if the first does not answer in a quarter of a second,
        and closes the second connection without sending anything.
        """
        by_address = internet_map.NAME_BY_ADDRESS
        return {c.sni or by_address.get(c.address, c.address) for c in self.connections()}

    def requests(self) -> list[Request]:
        """Return every HTTP request, by connection."""
        return [request for connection in self.connections() for request in connection.requests]

    def posts(self) -> list[Post]:
        """Return the posts to hooks, by connection."""
        return [post for connection in self.connections() for post in connection.posts]

    def calls(self) -> list[Call]:
        """Return the requests to MCP servers of `origins/odd.py`, oldest first."""
        return self._ask(record.Report()).calls

    def left(self) -> list[str]:
        """Return the paths there whose client did not wait for the end of the response."""
        return self._ask(record.Report()).left

    def queries(self) -> list[Query]:
        """Return every DNS query."""
        return self._ask(record.Report()).queries

    def packets(self) -> list[Packet]:
        """Return the first packet of every flow that left the machine, to any destination."""
        return self._ask(record.Report()).packets

    def _ask(self, command: record.Command) -> record.Seen:
        assert self._process.stdin
        self._process.stdin.write(msgspec.json.encode(command) + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._read_line(), type=record.Seen)

    def _read_line(self) -> bytes:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise EOFError("the internet ended; what it said is on standard error")
        return line


class Connected(NamedTuple):
    """A machine, and the internet that it is plugged into."""

    machine: Machine
    internet: Internet
