"""What a hostile server tries, from inside its sandbox, and what is seen of it from outside."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mcpwrap.core.names import egress_address
from tests.system.bed import internet_map as world
from tests.system.bed.installed import installed_machine
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import PROBE

_PROBE = 'command = "/usr/bin/python3"\nargs = ["/opt/probe.py"]'
# Two allowlists; one server without the front, one that is looked into, one without any.
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

# Before the code of every attack. OWN is the address that Squid knows the server by.
TOOLS = r"""
import errno, os, re, select, socket, ssl, struct, subprocess, time
OWN = re.search(r"//([0-9.]+):|$", os.environ.get("HTTPS_PROXY", ""))[1]

def name_of(error):
    if isinstance(error, ssl.SSLError): return error.reason or type(error).__name__
    return errno.errorcode.get(error.errno, type(error).__name__)

def read(s, wait_s):
    # Until the other side ends, or says nothing for so long.
    s.settimeout(wait_s)
    got = b""
    try:
        while chunk := s.recv(65536): got += chunk
    except TimeoutError: pass
    return got

def tcp(address, port, data=b"attack", wait_s=3):
    try:
        with socket.create_connection((address, port), wait_s) as s: s.sendall(data)
        return "connected"
    except OSError as error: return name_of(error)

def udp(address, port, data=b"attack", protocol=0):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM, protocol) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.sendto(data, (address, port))
        return "sent"
    except OSError as error: return name_of(error)

def first_line(s):
    got = b""
    while b"\n" not in got and (chunk := s.recv(65536)): got += chunk
    return got.decode("latin1").split("\r\n")[0]

def say(data, then=b"", to=None):
    # Returns the first line of what Squid says; `then` is sent after it.
    try:
        with socket.create_connection((to or OWN, 3128), 3) as s:
            s.sendall(data)
            line = first_line(s)
            if then: s.sendall(then); read(s, 0.5)
            return line
    except OSError as error: return name_of(error)

def connect(target, to=None):
    line = say(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode("latin1"), to=to)
    return line.split()[1] if line.startswith("HTTP/") else line

def tls(raw, name):
    # Whatever certificate comes: an attacker does not mind.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(raw, server_hostname=name)

def inside(target, name, data, to=None, wait_s=0):
    # Within TLS with this name, within a tunnel to that host: the first line of the answer.
    try:
        with socket.create_connection((to or OWN, 3128), 3) as raw:
            raw.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
            if " 200 " not in (line := first_line(raw)): return line
            with tls(raw, name) as s:
                s.sendall(data)
                line = first_line(s)
                if wait_s: read(s, wait_s)
                return line
    except OSError as error: return name_of(error)

GET = b"GET /v1/x HTTP/1.1\r\nHost: api.good.test\r\nConnection: close\r\n\r\n"
"""


@dataclass(frozen=True)
class Seen:
    """What came to the internet, apart from Squid's own way to its resolver."""

    connections: list[tuple[str, int]]
    names: set[str]
    packets: set[tuple[str, str, int]]
    requests: list[tuple[str, str, str]]  # method, path, host

    def is_nothing(self) -> bool:
        """Say whether no byte and no name left the machine."""
        return not (self.connections or self.names or self.packets or self.requests)


@dataclass(frozen=True)
class Battlefield:
    """A machine with the servers above, and an internet that answers at every address."""

    machine: Machine
    internet: Internet

    def as_server(self, name: str, code: str) -> Any:
        """Run Python as a server; what it leaves in `result` is returned."""
        with self.machine.session(name) as session:
            return session.evaluate(TOOLS + code)

    @staticmethod
    def tools() -> str:
        """Return what the code of every attack begins with."""
        return TOOLS

    def as_account(self, user: str, code: str) -> Any:
        """Run the same outside of any sandbox."""
        script = f"{TOOLS}{code}\nimport json; print(json.dumps(result))"
        if user.startswith("mcpw"):  # no login, and no home
            self.machine.write("/opt/attack.py", script)
            run = f"setpriv --reuid {user} --regid {user} --clear-groups python3 /opt/attack.py"
            return self.machine.probe(
                f"import subprocess; print(subprocess.check_output({run.split()!r}, text=True))"
            )
        return self.machine.probe(script, user=user)

    def run(self, who: str, code: str) -> Any:
        """Run it as a server, or as an account that has no such name."""
        return (self.as_server if who in NAMES else self.as_account)(who, code)

    def address_of(self, name: str) -> str:
        """Return the egress address of a server."""
        return egress_address(self.machine.uid_of(f"mcpw-{name}"))

    def seen(self) -> Seen:
        """Return what came since last asked, and forget it."""
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

    @contextmanager
    def edited(self, file: str, edits: list[tuple[str, str]], reload: str) -> Iterator[None]:
        """Take something out of a file of ours, for the time of the block."""
        text = edited = self.machine.read(file)
        for old, new in edits:
            assert old in edited, f"{file} does not have {old!r}"
            edited = edited.replace(old, new)
        self.machine.write(file, edited)
        try:
            self.machine.as_root(reload)
            yield
        finally:
            self.machine.write(file, text)
            self.machine.as_root(reload)


def reread(instance: str) -> str:
    """Return the command by which Squid reads its files anew; it ends when that is done.

    Not a restart: on cgroup v1 systemd is not told that helpers have ended, and waits for 90 s.
    """
    code = f"from mcpwrap.as_root import proxy; proxy.reread({instance!r})"
    return f'PYTHONPATH=/usr/lib/mcpwrap:/usr/lib/mcpwrap/site python3 -c "{code}"'


@contextmanager
def battlefield(suite: str, profile: Profile = Profile.LIMITS) -> Iterator[Battlefield]:
    """Boot it, and take it off the host at the end."""
    machine = installed_machine(suite, profile)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.add_person("mallory")
        machine.write("/opt/probe.py", PROBE)
        with Internet(machine) as internet:
            machine.configure(SERVERS)
            machine.apply()
            internet.forget()
            yield Battlefield(machine, internet)
    finally:
        machine.remove()


# Listens at every address of the machine, TCP and UDP, until told to say who came. That it is
# told counts only once nothing else waits to be read, however late this process had its turn.
_LISTENER = """
import json, select, socket, sys
came = []
def take(s):
    port = s.getsockname()[1]
    if s.type == socket.SOCK_DGRAM:
        came.append(["udp", port, s.recvfrom(64)[0].decode("latin1")])
        return
    peer, _ = s.accept()
    peer.settimeout(1)
    try: came.append(["tcp", port, peer.recv(64).decode("latin1")])
    except OSError: came.append(["tcp", port, ""])
ADDRESS, PORTS = sys.argv[1], json.loads(sys.argv[2])
heard = [
    socket.create_server((ADDRESS, port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=99)
    for port in PORTS["tcp"]
]
for port in PORTS["udp"]:
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind((ADDRESS, port))
    heard.append(s)
print("listening", flush=True)
while (ready := select.select([*heard, sys.stdin], [], [])[0]) != [sys.stdin]:
    for s in set(ready) - {sys.stdin}: take(s)
print(json.dumps(came), flush=True)
"""


class Listener:
    """Somebody who listens; `came` is what arrived there."""

    def __init__(
        self, field: Battlefield, *, user: str = "root", address: str = "::", **ports: list[int]
    ) -> None:
        field.machine.write("/opt/listener.py", _LISTENER)
        wanted = json.dumps({"tcp": [], "udp": []} | ports)
        command = f"exec python3 /opt/listener.py {address} '{wanted}'"
        self._session = field.machine.session("", user=user, command=command)
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


_LISTEN = """
with socket.socket() as s:
    s.settimeout(2.5)
    try:
        s.setsockopt(1, 2, 1); s.bind(("0.0.0.0", 9999)); s.listen()
        peer, _ = s.accept()
        peer.sendall(b"a secret"); result = "met"
    except OSError as error: result = name_of(error)
"""


@contextmanager
def meanwhile(field: Battlefield, who: str, code: str) -> Iterator[list[Any]]:
    """Let `who` run this while the block does something; its answer is in the list afterwards."""
    told: list[Any] = []
    thread = threading.Thread(target=lambda: told.append(field.run(who, code)))
    thread.start()
    try:
        yield told
    finally:
        thread.join()


def met(field: Battlefield, who: str, visit: Callable[[], Any]) -> Any:
    """Let `who` listen on port 9999; return what a visitor was told."""
    with meanwhile(field, who, _LISTEN):
        field.machine.as_root(  # until it listens, if it can
            "for i in $(seq 20); do ss -Hltn sport = 9999 | grep -q . && break; sleep 0.1; done"
        )
        return visit()
