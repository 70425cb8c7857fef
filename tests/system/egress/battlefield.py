"""Machine for attacks by a hostile server in its sandbox, observed from the internet."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from mcpwrap.core.names import egress_address
from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed import internet_map as world
from tests.system.bed.internet import TOP, Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session
from tests.system.guest import arrivals, attacks

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

_PROBE = 'command = "/usr/bin/python3"\nargs = ["/opt/probe.py"]'
# Two allowlists; one server without the front, one with `intercept`, one without any.
SERVERS = f"""
[mcp_servers.a]
{_PROBE}
[mcp_servers.a.mcpwrap]
egress = [
    "api.good.test", "a.cdn.test", "*.sub.good.test",
    "internal.test", "multi.test", "rebind.test", "ula.test", "host.good.test",
]
[mcp_servers.b]
{_PROBE}
[mcp_servers.b.mcpwrap]
egress = ["other.test"]
transparent = false
[mcp_servers.look]
{_PROBE}
[mcp_servers.look.mcpwrap]
egress = ["api.good.test", "a.cdn.test"]
intercept = true
requests = ["GET,HEAD api.good.test/v1/*", "POST api.good.test/v1/post"]
[mcp_servers.direct]
{_PROBE}
[mcp_servers.direct.mcpwrap]
direct = ["10.0.0.5:5432", "10.0.0.5:9"]
[mcp_servers.none]
{_PROBE}
"""
RULES = "/usr/lib/mcpwrap/nftables/mcpwrap.nft"
RELOAD = "systemctl reload mcpwrap-nft"
NAMES = ("a", "b", "look", "direct", "none")
UNREACHABLE = ("EHOSTUNREACH", "EACCES")  # of the families of addresses


@dataclass(frozen=True)
class Seen:
    """Traffic that reached the internet, apart from Squid's own queries to its resolver."""

    connections: list[tuple[str, int]]
    names: set[str]
    packets: set[tuple[str, str, int]]
    requests: list[tuple[str, str, str]]  # method, path, host

    def hosts(self) -> set[str]:
        """Return the names of all connections, by any of their addresses.

        Squid takes the other address family if the first does not answer in a quarter of a second.
        """
        return {world.NAME_BY_ADDRESS.get(address, address) for address, _ in self.connections}

    def is_nothing(self) -> bool:
        """Return whether no byte and no name left the machine."""
        return not (self.connections or self.names or self.packets or self.requests)


@dataclass(frozen=True)
class Battlefield:
    """A machine with the servers above, and an internet that answers at every address."""

    machine: Machine
    internet: Internet
    _sessions: dict[str, Session] = field(default_factory=dict)

    def run(
        self,
        who: str,
        attack: Callable[Arguments, Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Call a function of `guest/` as a server, or as an account that has no such name.

        All attacks of one attacker in a story are made in one session. The result was JSON.
        """
        if who not in self._sessions:
            self._sessions[who] = self.session_of(who)
        return call(self._sessions[who], attack, *args, **kwargs)

    def session_of(self, who: str) -> Session:
        """Start another session of a server, or the same program without any sandbox."""
        probe = "exec /usr/bin/python3 -B /opt/probe.py"
        if who in NAMES:
            session = self.machine.session(who)
        elif who.startswith("mcpw"):  # no login, and no home
            wear = f"exec setpriv --reuid {who} --regid {who} --clear-groups"
            session = self.machine.session("", user="root", command=f"{wear} {probe[5:]}")
        else:
            session = self.machine.session("", user=who, command=probe)
        call(session, attacks.wait_at_most, pace.WAIT_S / 2)
        return session

    def end_sessions(self) -> None:
        """End the session or program of `run`."""
        with ExitStack() as stack:
            while self._sessions:
                stack.enter_context(self._sessions.popitem()[1])

    def from_outside(
        self, attack: Callable[Arguments, Answer], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        """Call a function of `guest/` on the internet, where every address is its own."""
        assert not kwargs
        module = attack.__module__.rpartition(".")[2]
        enter = ["nsenter", f"--net=/proc/{self.internet.pid}/ns/net"]
        python = [sys.executable, "-B", "-m", "tests.system.guest.call"]
        argv = [*enter, *python, module, attack.__name__, json.dumps(args)]
        done = subprocess.run(argv, cwd=TOP, capture_output=True, text=True, check=True)
        answer: Answer = json.loads(done.stdout)
        return answer

    @property
    def has_filters(self) -> bool:
        """Whether IPAddressDeny= and SocketBindDeny= act, before and after the packet rules."""
        return self.machine.profile is Profile.BPF

    def refusals(self, told: list[str]) -> list[str]:
        """Return these answers with `refused` for each error by which a connection is refused.

        Where IPAddressDeny= acts too, the reset of the packet rules is kept from the server.
        """
        errors = {"ECONNREFUSED", *(UNREACHABLE if self.has_filters else ())}
        return ["refused" if answer in errors else answer for answer in told]

    def address_of(self, name: str) -> str:
        """Return the egress address of a server."""
        return egress_address(self.machine.uid_of(f"mcpw-{name}"))

    def seen(self) -> Seen:
        """Return the traffic since the last call, and clear it."""
        internet = self.internet
        connections = internet.connections()
        seen = Seen(
            [(c.address, c.port) for c in connections],
            {query.name for query in internet.queries()},
            {
                (packet.protocol, packet.address, packet.port)
                for packet in internet.packets()
                if packet.address != world.RESOLVER
            },
            [(r.method, r.path, r.host) for c in connections for r in c.requests],
        )
        internet.forget()
        return seen

    def await_packet(self, protocol: str) -> None:
        """Wait until a packet of this protocol has left the machine."""
        give_up_at = time.monotonic() + pace.WAIT_S
        while protocol not in {packet.protocol for packet in self.internet.packets()}:
            assert time.monotonic() < give_up_at, f"no packet of {protocol} came"

    @contextmanager
    def edited(self, file: str, edits: list[tuple[str, str]], reload: str) -> Iterator[None]:
        """Edit one of our files, for the time of the block.

        The rules are not watched meanwhile: mcpwrap-watch could otherwise load last the rules of
        that time.
        """
        text = edited = self.machine.read(file)
        for old, new in edits:
            assert old in edited, f"{file} does not have {old!r}"
            edited = edited.replace(old, new)
        with self.machine.unwatched() if file == RULES else nullcontext():
            self.machine.replace(file, edited)
            try:
                self.machine.as_root(reload)
                yield
            finally:
                self.machine.replace(file, text)
                self.machine.as_root(reload)


def reread(instance: str) -> str:
    """Return the command by which Squid reads its files again; it ends when that is done.

    Not a restart: on cgroup v1 systemd is not told that helpers have ended, and waits for 90 s.
    """
    code = f"from mcpwrap.as_root.egress import squid; squid.reread({instance!r})"
    return f'PYTHONPATH=/usr/lib/mcpwrap:/usr/lib/mcpwrap/site python3 -c "{code}"'


def quiet_s() -> float:
    """Return how long to wait for traffic that must not come."""
    return pace.promised(0.5)


def call(
    session: Session,
    attack: Callable[Arguments, Answer],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Answer:
    """Call a function of `guest/` in a session of the probe server."""
    name = attack.__name__
    code = f"from {attack.__module__} import {name}; result = {name}(*{args!r}, **{kwargs!r})"
    answer: Answer = session.evaluate(code)
    return answer


@contextmanager
def booted(suite: str, profile: Profile = Profile.LIMITS) -> Iterator[Battlefield]:
    """Boot it, and remove it from the host at the end."""
    with installed.booted(suite, profile) as machine:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("mallory")
        machine.as_root("sysctl -qw net.ipv4.ping_group_range='0 2147483647'")
        with Internet(machine) as internet:
            machine.configure(SERVERS)
            machine.as_root("mcpwrap policy default disable limits")  # stories poll by calls
            machine.apply()
            battle = Battlefield(machine, internet)
            try:
                yield battle
            finally:
                battle.end_sessions()


class Listener:
    """Listener of an account at ports of an address; `came` has the connections that arrived."""

    def __init__(
        self,
        machine: Machine,
        *,
        user: str = "root",
        address: str = "::",
        tcp: tuple[int, ...] = (),
        udp: tuple[int, ...] = (),
    ) -> None:
        name = arrivals.listen.__name__
        listen = machine.guest_command("arrivals", name, address, tcp, udp, pace.WAIT_S)
        self._session = machine.session("", user=user, command=f"exec {listen}")
        self.came: list[list[Any]] = []

    def __enter__(self) -> "Listener":
        try:
            assert self._session.read_line() == "listening"
        except BaseException:
            self._session.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._session.send({})
        self.came = json.loads(self._session.read_line())
        self._session.close()


@contextmanager
def listening(ground: Battlefield, who: str, port: int = 9999) -> Iterator[str]:
    """Have `who` listen, and send every visitor a secret; return the outcome of the start."""
    yield ground.run(who, attacks.listen, port)
    ground.run(who, attacks.stop_listening)
