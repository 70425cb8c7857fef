"""Each agent that speaks HTTP has an address of its own, and nobody else connects to it.

What answers there is a program of the test in place of ours: it says what it finds, and what it can
reach as that account in that unit. So this is about root's part: rules, sockets, units, addresses.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.servers import NODE_MODULES

EVERYTHING = f"""
[mcp_servers.everything]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-everything/dist/index.js"]
[mcp_servers.everything.mcpwrap]
agents = ["alice", "@team"]
expose = "http"
"""
REMOTE = """
[mcp_servers.everything]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "TOKEN"
[mcp_servers.everything.mcpwrap]
agents = ["alice"]
"""
PLAIN = EVERYTHING.replace('expose = "http"\n', "")

# Answers each connection with what it can do, then with what it is sent.
ANSWERER = """\
#!/usr/bin/python3 -I
import errno, json, os, socket, sys, threading
def tried(action):
    try: action()
    except OSError as error: return errno.errorcode.get(error.errno, str(error))
    return "worked"
def unix(path):
    return tried(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(path))
found = {
    "argv": sys.argv[1:],
    "uid": os.getuid(),
    "told": json.load(open(os.environ["CREDENTIALS_DIRECTORY"] + "/listener")),
    "gate": unix("/run/mcpwrap/gate.sock"),
    "approve": unix("/run/mcpwrap/approve.sock"),
    "wrapper": unix("/run/mcpwrap/sock/everything.sock"),
    "out": tried(lambda: socket.create_connection(("127.78.0.1", 52100), 2)),
    "files": [tried(lambda: os.listdir(path)) for path in
              ("/var/lib/mcpwrap", "/etc/mcpwrap", "/var/log", "/home/alice")],
    "writes": [tried(lambda: open(path, "w")) for path in ("/run/lock/x", "/usr/x", "/run/x")],
}
def serve(peer):
    with peer:
        peer.sendall(json.dumps(found).encode() + b"\\n")
        while data := peer.recv(100): peer.sendall(data)
listener = socket.socket(fileno=3)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
    systemd.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
while True:
    threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.sendto(b"WATCHDOG=1", os.environ["NOTIFY_SOCKET"])
"""
# One that was taken over: for whom it asks, and what the gate says to that.
ASKER = """\
#!/usr/bin/python3 -I
import json, os, socket
def asked(server, uid):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gate:
        gate.settimeout(40)
        gate.connect("/run/mcpwrap/gate.sock")
        hello = f"mcpwrap 1\\0{server}\\0MCPWRAP_AGENT={uid}".encode()
        socket.send_fds(gate, [hello], [os.pipe()[0], os.pipe()[1]])
        return gate.recv(65536).decode()
claims = json.loads(open("/opt/claims.json").read())
listener = socket.socket(fileno=3)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
    systemd.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
peer = listener.accept()[0]
peer.sendall(json.dumps([asked(*claim) for claim in claims]).encode() + b"\\n")
peer.recv(1)
"""
# Connects, and says what it read, or how it was refused.
CALL = """
import errno, json, socket
try:
    with socket.socket() as s:
        s.settimeout({timeout_s})
        s.bind(({source!r}, 0))
        s.connect(({address!r}, {port}))
        print(json.dumps(s.makefile().readline()))
except OSError as error:
    print(json.dumps(errno.errorcode.get(error.errno, "timeout")))
"""
# Holds a connection open, and sends what it is told to.
HOLD = """
import socket, sys
s = socket.create_connection((sys.argv[1], 52100))
file = s.makefile()
file.readline()
print("held", flush=True)
for line in sys.stdin:
    try:
        s.sendall(line.encode())
        print("answered" if file.readline() else "ended", flush=True)
    except OSError as error: print("ended", flush=True)
"""
SQUAT = """
import socket
server = socket.create_server(("0.0.0.0", 52100))
print("up", flush=True)
server.accept()[0].sendall(b"evil\\n")
print("called", flush=True)
"""


def call(
    machine: Machine,
    account: str,
    address: str,
    *,
    port: int = 52100,
    source: str = "0.0.0.0",
    timeout_s: int = 3,
) -> Any:
    """Connect as this account, and return the line it was sent, or how it was refused."""
    script = CALL.format(address=address, port=port, source=source, timeout_s=timeout_s)
    machine.write("/opt/call.py", script)
    run = f"setpriv --reuid {account} --regid $(id -g {account}) --clear-groups"
    return json.loads(machine.as_root(f"{run} python3 /opt/call.py").out)


def told(machine: Machine, account: str, address: str) -> dict[str, Any]:
    """Connect as this account, and return what it was told."""
    line = call(machine, account, address)
    assert line.startswith("{"), line
    found: dict[str, Any] = json.loads(line)
    return found


def urls(machine: Machine) -> dict[str, str]:
    """Return the address of each agent, by name, as anybody is shown it."""
    [server] = json.loads(machine.as_user("alice", "mcpwrap status --json").out)
    assert all(each["is_open"] for each in server["http"])
    found = {each["agent"]: each["url"] for each in server["http"]}
    return {name: re.fullmatch(r"http://(.*):52100/", url)[1] for name, url in found.items()}  # type: ignore[index]


@pytest.fixture
def machine(boot: Callable[..., Machine]) -> Machine:
    found = boot()
    found.as_root("groupadd team; groupadd mates")
    found.add_person("bob", groups="team,mcpwrap")
    found.as_root("useradd -m -g team carol")
    found.add_person("mallory")
    found.write("/usr/lib/mcpwrap/mcpwrap-http", ANSWERER, mode=0o755)
    found.write("/opt/hold.py", HOLD)
    found.write("/opt/squat.py", SQUAT)
    found.configure(EVERYTHING)
    found.apply()
    return found


def test_each_agent_alone_reaches_its_listener(machine: Machine) -> None:
    found = urls(machine)
    assert found.keys() == {"alice", "bob", "carol"}  # listed, joined, and its own group
    text = machine.as_user("alice", "mcpwrap status").out
    assert f"http://{found['alice']}:52100/" in text
    nft = machine.as_root("nft -n list set inet mcpwrap heard").out
    for name, address in found.items():
        assert f"{machine.uid_of(name)} . {address}" in nft
    accounts = ["alice", "bob", "carol", "mallory", "root", "mcpw-everything", "mcpwrap-gate"]
    accounts += ["mcpwrap-http", "mcpwrap-web", "mcpwrap-proxy", "nobody"]
    for name, address in found.items():
        for account in accounts:
            if account == name:
                assert told(machine, account, address)["told"]["uid"] == machine.uid_of(name)
            else:
                assert call(machine, account, address) == "ECONNREFUSED", (account, name)
    alice = found["alice"]
    assert call(machine, "alice", alice, port=52101) == "ECONNREFUSED"
    assert call(machine, "alice", alice, source=found["bob"]) == "ECONNREFUSED"
    assert machine.apply() == "nothing to do\n"


def test_what_answers_has_no_network_and_one_door(machine: Machine) -> None:
    address = urls(machine)["alice"]
    found = told(machine, "alice", address)
    uid = machine.uid_of("alice")
    assert found["told"] == {
        "server": "everything",
        "uid": uid,
        "address": address,
        "is_remote": False,
    }
    assert found["argv"] == [f"everything.{uid}"]
    assert found["uid"] == machine.uid_of("mcpwrap-http")
    assert found["gate"] == "worked"
    assert {found["approve"], found["wrapper"]} <= {"EACCES", "EPERM", "ENOENT"}
    assert found["out"] != "worked"
    assert "worked" not in found["files"] + found["writes"]


def test_a_listener_that_was_taken_over_asks_for_its_own_agent_alone(machine: Machine) -> None:
    """All have one account, so the gate looks which of them it is."""
    address, alice, bob = urls(machine)["alice"], machine.uid_of("alice"), machine.uid_of("bob")
    machine.configure(EVERYTHING + EVERYTHING.replace("everything]", "other]", 1).replace(
        "everything.mcpwrap", "other.mcpwrap"
    ))  # fmt: skip
    machine.apply()
    machine.write("/usr/lib/mcpwrap/mcpwrap-http", ASKER, mode=0o755)
    claims = [("everything", alice), ("everything", bob), ("other", alice), ("other", bob)]
    machine.write("/opt/claims.json", json.dumps(claims))
    machine.as_root(f"systemctl restart mcpwrap-http@everything.{alice}.service")
    machine.announce("only the listener of an agent")
    found = json.loads(call(machine, "alice", address, timeout_s=60))
    assert found[0] == "S"
    assert all("only the listener of an agent may ask for one" in said for said in found[1:])


def test_nobody_else_answers_where_an_agent_calls(machine: Machine) -> None:
    address, uid = urls(machine)["alice"], machine.uid_of("alice")
    with pytest.raises(CommandFailedError, match="Address already in use"):
        machine.as_user("mallory", "python3 /opt/squat.py")
    machine.as_root(f"systemctl stop mcpwrap-http@everything.{uid}.socket")
    for other in ("bob", "carol"):
        machine.as_root(f"systemctl stop mcpwrap-http@everything.{machine.uid_of(other)}.socket")
    assert call(machine, "alice", address) == "ECONNREFUSED"
    command = "exec python3 /opt/squat.py"
    with machine.session("", user="mallory", command=command) as squatter:
        assert squatter.read_line() == "up"
        assert call(machine, "alice", address) == "timeout"
        # The twin: it does answer elsewhere.
        assert call(machine, "alice", "127.0.0.1") == "evil\n"
        assert squatter.read_line() == "called"
    assert "listen at" in machine.apply()
    told(machine, "alice", address)


def test_who_leaves_is_heard_no_more_and_others_go_on(machine: Machine) -> None:
    before = urls(machine)
    holds = {
        name: machine.session("", user=name, command=f"exec python3 /opt/hold.py {address}")
        for name, address in before.items()
    }
    for hold in holds.values():
        assert hold.read_line() == "held"
    machine.as_root("gpasswd -d bob team; gpasswd -a mallory team")
    plan = machine.as_user("alice", "mcpwrap plan", status=10).out
    assert f"close the listener everything.{machine.uid_of('bob')}; its sessions end" in plan
    assert "restart everything" not in plan
    machine.apply()
    after = urls(machine)
    assert after.keys() == {"alice", "carol", "mallory"}
    assert {name: after[name] for name in ("alice", "carol")} == {
        name: before[name] for name in ("alice", "carol")
    }
    assert after["mallory"] not in before.values()  # bob's is kept for bob
    for name, hold in holds.items():
        hold.send({})
        assert hold.read_line() == ("ended" if name == "bob" else "answered")
        hold.close()
    assert call(machine, "bob", before["bob"]) == "ECONNREFUSED"
    told(machine, "mallory", after["mallory"])
    machine.as_root("gpasswd -a bob team")
    machine.apply()
    assert urls(machine)["bob"] == before["bob"]
    machine.configure(PLAIN)
    machine.apply()
    left = "ls /var/lib/mcpwrap/http /etc/systemd/system | grep -F -e http@ -e json || true"
    assert machine.as_root(left).out == ""
    assert "mcpwrap-http@" not in machine.as_root("systemctl list-units --all").out
    assert "elements" not in machine.as_root("nft list set inet mcpwrap heard").out
    machine.configure(EVERYTHING)
    machine.apply()
    assert urls(machine) == {**before, **after}


def test_a_connection_ends_with_the_rule_that_allowed_it(machine: Machine) -> None:
    address, uid = urls(machine)["alice"], machine.uid_of("alice")
    hold = machine.session("", user="alice", command=f"exec python3 /opt/hold.py {address}")
    assert hold.read_line() == "held"
    with machine.unwatched():
        machine.as_root(f"nft delete element inet mcpwrap heard '{{ {uid} . {address} }}'")
        hold.send({})
        assert hold.read_line() == "ended"
    hold.close()
    told(machine, "alice", address)


def test_without_its_rule_nobody_listens(machine: Machine) -> None:
    address, uid = urls(machine)["alice"], machine.uid_of("alice")
    unit = f"mcpwrap-http@everything.{uid}.socket"
    machine.announce(re.escape(unit))
    with machine.unwatched():
        machine.as_root(f"systemctl stop {unit}")
        machine.as_root(f"nft delete element inet mcpwrap heard '{{ {uid} . {address} }}'")
        machine.as_root(f"systemctl start {unit}", status=1)
    machine.as_root(f"systemctl reset-failed {unit}; systemctl start {unit}")
    told(machine, "alice", address)


def test_listeners_come_back_with_the_rules_and_after_a_boot(machine: Machine) -> None:
    address = urls(machine)["alice"]
    machine.as_root("systemctl stop mcpwrap-nft")
    assert call(machine, "alice", address) == "ECONNREFUSED"
    machine.as_root("systemctl start mcpwrap-nft")
    told(machine, "alice", address)
    machine.reboot()
    told(machine, "alice", address)
    assert machine.apply() == "nothing to do\n"


def test_a_server_that_is_a_url_has_a_listener_and_a_way_out(machine: Machine) -> None:
    before = urls(machine)
    machine.configure(REMOTE)
    machine.announce("everything")  # its secret was not set
    assert "does not start before `sudo mcpwrap secret set everything TOKEN`" in machine.apply()
    found = urls(machine)
    assert found == {"alice": before["alice"]}
    assert told(machine, "alice", found["alice"])["told"]["is_remote"] is True
    uid = machine.uid_of("mcpw-everything")
    assert f"{uid} . 127.77." in machine.as_root("nft -n list set inet mcpwrap own").out
    squid = machine.read("/var/lib/mcpwrap/squid/proxy-1.conf").replace("\\", "")
    assert "mcp.example.com" in squid
    spec = json.loads(machine.read("/var/lib/mcpwrap/servers/everything.json"))
    assert spec["command"] == "/usr/lib/mcpwrap/mcpwrap-remote"
    assert spec["remote"]["headers"]["Authorization"] == ["Bearer ", {"secret": "TOKEN"}]
    assert machine.apply().startswith("nothing to do\n")


def test_a_purge_leaves_nothing(machine: Machine) -> None:
    machine.as_root("DEBIAN_FRONTEND=noninteractive apt-get purge -y mcpwrap")
    left = "find /etc /run /var/lib -name '*mcpwrap-http*' -o -path '*mcpwrap*everything.*'"
    assert machine.as_root(left).out == ""
    machine.as_root("getent passwd mcpwrap-http", status=2)
    assert "mcpwrap" not in machine.as_root("nft list ruleset").out
