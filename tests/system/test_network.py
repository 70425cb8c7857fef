"""A wrapper reaches no address. Asserted at the listener, while the same probe as root arrives."""

import json
from typing import Any

import pytest

from tests.system.bed.machine import CommandFailedError, Machine

# Listens on everything there is, waits for one packet a probe says it has sent, reports who came.
LISTENER = """
import json, socket, sys, threading
seen = []
def tcp(family, address):
    s = socket.create_server((address, 4000), family=family)
    s.settimeout(15)
    def serve():
        while True:
            try: peer, _ = s.accept()
            except OSError: return
            seen.append(["tcp", address, peer.recv(64).decode()])
            peer.close()
    return serve
def udp(family, address):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.bind((address, 4000))
    s.settimeout(15)
    def serve():
        while True:
            try: data, _ = s.recvfrom(64)
            except OSError: return
            seen.append(["udp", address, data.decode()])
    return serve
def icmp(family, protocol, name):
    s = socket.socket(family, socket.SOCK_RAW, protocol)
    s.settimeout(15)
    def serve():
        while True:
            try: data, _ = s.recvfrom(256)
            except OSError: return
            # Echo requests alone: our refusals quote what they refuse.
            kind = data[20] if family == socket.AF_INET else data[0]
            for who in (b"root", b"wrapper") if kind in (8, 128) else ():
                if b"probe-" + who in data: seen.append(["icmp", name, who.decode()])
    return serve
servers = [icmp(socket.AF_INET, 1, "127.0.0.1"), icmp(socket.AF_INET6, 58, "::1")]
for transport in (tcp, udp):
    servers += [transport(socket.AF_INET, address) for address in ("127.0.0.1", "10.9.8.7")]
    servers += [transport(socket.AF_INET6, address) for address in ("::1", "fd00::7")]
for serve in servers: threading.Thread(target=serve, daemon=True).start()
print("listening", flush=True)
sys.stdin.readline()
print(json.dumps(sorted(map(list, {tuple(x) for x in seen}))), flush=True)
"""

# Sends its name to every address by every protocol, and says how each attempt went.
SENDER = """
import errno, json, socket, struct, sys
who = sys.argv[1].encode()
said = {}
def attempt(name, family, kind, protocol, address, payload, port=4000):
    s = socket.socket(family, kind, protocol)
    s.settimeout(2)
    try:
        s.connect((address, port))
        s.send(payload)
        said[name] = "sent"
    except OSError as error:
        said[name] = errno.errorcode.get(error.errno, "timeout")
    s.close()
echo4 = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + b"probe-" + who
echo6 = struct.pack("!BBHHH", 128, 0, 0, 1, 1) + b"probe-" + who
for a in ("127.0.0.1", "10.9.8.7"):
    attempt("tcp " + a, socket.AF_INET, socket.SOCK_STREAM, 0, a, who)
    attempt("udp " + a, socket.AF_INET, socket.SOCK_DGRAM, 0, a, who)
for a in ("::1", "fd00::7"):
    attempt("tcp " + a, socket.AF_INET6, socket.SOCK_STREAM, 0, a, who)
    attempt("udp " + a, socket.AF_INET6, socket.SOCK_DGRAM, 0, a, who)
attempt("tcp mapped", socket.AF_INET6, socket.SOCK_STREAM, 0, "::ffff:127.0.0.1", who)
attempt("icmp 127.0.0.1", socket.AF_INET, socket.SOCK_DGRAM, 1, "127.0.0.1", echo4, 0)
attempt("icmp ::1", socket.AF_INET6, socket.SOCK_DGRAM, 58, "::1", echo6, 0)
attempt("mptcp 127.0.0.1", socket.AF_INET, socket.SOCK_STREAM, 262, "127.0.0.1", who)
print(json.dumps(said))
"""
EVERYWHERE = {
    (protocol, address)
    for protocol in ("tcp", "udp")
    for address in ("127.0.0.1", "::1", "10.9.8.7", "fd00::7")
} | {("icmp", "127.0.0.1"), ("icmp", "::1")}


def arrivals(machine: Machine, *senders: str) -> tuple[set[tuple[str, ...]], dict[str, Any]]:
    """Let each account send to every listener; return who arrived where, and what each was told."""
    machine.write("/opt/listener.py", LISTENER)
    machine.write("/opt/sender.py", SENDER)
    machine.as_root(
        "ip link set lo up; ip addr replace 10.9.8.7/32 dev lo;"
        "ip -6 addr replace fd00::7/128 dev lo nodad;"
        "sysctl -qw net.ipv4.ping_group_range='0 2147483647'"
    )
    told = {}
    with machine.session("", user="root", command="exec python3 /opt/listener.py") as listener:
        assert listener.read_line() == "listening"
        for account in senders:
            who = "root" if account == "root" else "wrapper"
            run = f"setpriv --reuid {account} --regid {account} --clear-groups"
            told[account] = json.loads(machine.as_root(f"{run} python3 /opt/sender.py {who}").out)
        listener.send({})
        came = json.loads(listener.read_line())
    return {tuple(entry) for entry in came}, told


@pytest.mark.parametrize("account", ["mcpw-probe", "mcpw-everything", "mcpwrap-gate"])
def test_no_packet_of_a_wrapper_arrives_anywhere(machine: Machine, account: str) -> None:
    came, told = arrivals(machine, "root", account)
    assert {entry[:2] for entry in came if entry[2] == "root"} == EVERYWHERE  # the probes work
    assert {entry for entry in came if entry[2] != "root"} == set()
    refused = {name: answer for name, answer in told[account].items() if "tcp" in name}
    assert set(refused.values()) == {"ECONNREFUSED"}  # at once, and not by a time-out


def test_the_rule_is_what_refuses(machine: Machine) -> None:
    file = "/usr/lib/mcpwrap/nftables/mcpwrap.nft"
    rules = machine.read(file)
    rule = "meta skuid @wrapped goto wrapper"
    assert rule in rules
    machine.write(file, rules.replace(rule, ""))
    machine.as_root("systemctl reload mcpwrap-nft")
    came, _ = arrivals(machine, "mcpw-probe")
    assert {entry[:2] for entry in came} == EVERYWHERE
    machine.write(file, rules)
    machine.as_root("systemctl reload mcpwrap-nft")
    came, _ = arrivals(machine, "mcpw-probe")
    assert came == set()


def test_a_person_made_after_apply_has_their_network(machine: Machine) -> None:
    """useradd takes the next UID after the largest: one right behind a wrapper's."""
    uid = machine.add_person("zed")
    assert (
        uid
        == max(machine.uid_of(f"mcpw-{n}") for n in ("everything", "memory", "time", "probe")) + 1
    )
    came, _ = arrivals(machine, "zed")
    assert {entry[:2] for entry in came} == EVERYWHERE


def test_a_server_has_no_network_at_all(machine: Machine) -> None:
    """Beside the packet rules: the service has no interface that it could send by."""
    with machine.session("probe") as session:
        links = session.evaluate("import socket; result = [n for _, n in socket.if_nameindex()]")
        assert links == ["lo"]
        code = "import socket; socket.create_connection(('10.9.8.7', 4000), 2)"
        assert session.evaluate(code) == "OSError 101"  # ENETUNREACH
    assert "10.9.8.7" in machine.as_root("ip addr show lo").out  # the twin: it exists outside


def test_without_the_rules_no_wrapper_starts(machine: Machine) -> None:
    machine.announce("mcpwrap-check@probe|Dependency failed|mcpwrap@probe")
    with machine.unwatched():
        machine.as_root("systemctl stop 'mcpwrap@probe.service'; nft delete table inet mcpwrap")
        with pytest.raises(CommandFailedError, match="dependency job"):
            machine.as_root("systemctl start mcpwrap@probe")
        refused = machine.as_user("alice", "mcpwrap-connect probe </dev/null", status=70)
        assert "does not start" in refused.err
        machine.apply()
    machine.as_root("systemctl start mcpwrap@probe")  # the twin
    machine.as_user("alice", "mcpwrap-connect probe </dev/null")


def test_without_its_own_element_a_wrapper_does_not_start(machine: Machine) -> None:
    """The table is there, and someone has taken one account out of its set."""
    machine.announce("mcpwrap-check@probe|Dependency failed|mcpwrap@probe")
    with machine.unwatched():
        machine.as_root("systemctl stop 'mcpwrap@probe.service'")
        machine.as_root("nft delete element inet mcpwrap wrapped { mcpw-probe }")
        with pytest.raises(CommandFailedError, match="dependency job"):
            machine.as_root("systemctl start mcpwrap@probe")
        machine.as_root("systemctl start mcpwrap@time")  # the twin: the others are as they were
        assert "load the packet rules" in machine.apply()
    machine.as_root("systemctl start mcpwrap@probe")


def test_stopping_the_rules_unit_opens_nothing(machine: Machine) -> None:
    machine.as_root("systemctl stop mcpwrap-nft")
    came, _ = arrivals(machine, "mcpw-probe")
    assert came == set()
    machine.as_root("systemctl start mcpwrap-nft")
    assert "nothing to do" in machine.apply()


def test_a_mistake_in_the_rules_leaves_the_old_ones(machine: Machine) -> None:
    before = machine.as_root("nft list table inet mcpwrap").out
    rules = machine.read("/usr/lib/mcpwrap/nftables/mcpwrap.nft")
    machine.write("/usr/lib/mcpwrap/nftables/mcpwrap.nft", rules + "\nno such word\n")
    machine.announce("mcpwrap-nft")
    machine.as_root("systemctl reload mcpwrap-nft", status=1)
    assert machine.as_root("nft list table inet mcpwrap").out == before
    machine.write("/usr/lib/mcpwrap/nftables/mcpwrap.nft", rules)
    machine.as_root("systemctl reload mcpwrap-nft")
