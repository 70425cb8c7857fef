"""The packet rules are taken away, and nothing opens: they come back, or everything stops.

On machines where IPAddressDeny= acts beside them.
"""

import pytest

from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.survival import (
    EVERYWHERE,
    LIST_RULES,
    LISTEN,
    OUTSIDE,
    PUT_BACK,
    RULES,
    SERVERS,
    Journal,
    changed,
    own_address,
    play,
    rules,
)

# Runs COMMAND, which changes the rules, and looks after changes until they are as BEFORE. How long
# that took is by the last change before, and not by the look, which takes its time.
TAMPER = """
import json, queue, subprocess, threading, time
changes = queue.SimpleQueue()
def look(): return subprocess.run(["sh", "-c", LIST_RULES], capture_output=True, text=True).stdout
def read(pipe):
    for line in pipe: changes.put(time.monotonic())
with subprocess.Popen(["nft", "monitor"], stdout=subprocess.PIPE) as monitor:
    threading.Thread(target=read, args=(monitor.stdout,), daemon=True).start()
    try:
        subprocess.run(["sh", "-c", COMMAND], check=True, timeout=30)
        changed_s = last_s = time.monotonic()
        while look() != BEFORE:
            last_s = changes.get(timeout=10)
            while not changes.empty(): last_s = changes.get()
        took_s = max(0, last_s - changed_s)
    except queue.Empty: took_s = None
    finally: monitor.kill()
print(json.dumps(took_s))
"""
REACH = """
import json, socket
found = []
for address, port in json.loads("{targets}"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        if s.connect_ex((address, port)) == 0: found.append([address, port])
print(json.dumps(found))
"""


CONNECTED = (Profile.BPF, SERVERS)


def test_without_packet_rules_a_wrapper_reaches_its_own_address_alone(
    machine: Machine, internet: Internet
) -> None:
    """By IPAddressDeny= alone: nothing else is left, and nobody puts the rules back."""
    neighbour = own_address(machine, "neighbour")
    targets = [
        [neighbour, 3128], [neighbour, 443], ["203.0.113.20", 443], ["198.51.100.10", 80],
        ["10.0.0.5", 443], ["169.254.169.254", 80], ["198.51.100.53", 53], ["127.0.0.1", 4000],
        ["192.0.2.2", 4000], ["::1", 4000], ["2001:db8:2::10", 443],
    ]  # fmt: skip
    serve = LISTEN.format(where=EVERYWHERE)
    with (
        machine.session("", user="root", command=f'exec python3 -c "{serve}"') as listener,
        machine.session("probe") as session,
    ):
        assert listener.read_line() == "up"
        assert play(session, "status()") == 200
        machine.as_root("systemctl stop mcpwrap-watch; nft flush ruleset")
        assert machine.as_root("nft list ruleset").out == ""
        internet.forget()
        assert play(session, f"reached({targets})") == []
        assert internet.packets() == []
        assert play(session, "status()") == 200  # the twin: its own address, and Squid behind it
        assert play(session, "status(host='other.test')") == "CONNECT 403"
        # The twin: they do answer, to this account too, where the rules alone would bind it. The
        # front answers nobody who is not called by a server's address.
        machine.as_root(f"systemctl start mcpwrap-address@{neighbour}")
        script = REACH.replace("{targets}", str(targets).replace("'", '\\"'))
        came = machine.as_root(OUTSIDE.format("mcpw-probe", script)).out
        assert came == str(targets).replace("'", '"') + "\n"
        listener.send({})
        machine.as_root("systemctl start mcpwrap-watch")
        assert "@wrapped" in rules(machine)
        assert machine.as_root(OUTSIDE.format("mcpw-probe", script)).out == "[]\n"
        assert play(session, "status()") == 200


TAMPERING = {
    "Debian's own firewall comes up": "systemctl enable --now nftables",
    "Debian's own firewall is restarted": "systemctl restart nftables",
    "everything is flushed": "nft flush ruleset",
    "our table is deleted": "nft delete table inet mcpwrap",
    "a chain is emptied": "nft flush chain inet mcpwrap refuse",
    "the rule for wrappers is deleted": "nft delete rule inet mcpwrap output handle "
    "$(nft -a list chain inet mcpwrap output | sed -n 's/.*@wrapped.* # handle //p')",
    "a rule comes before ours": "nft insert rule inet mcpwrap wrapper accept",
    "an account is no longer wrapped": "nft delete element inet mcpwrap wrapped '{{ {uid} }}'",
    "a server has lost its address": "nft delete element inet mcpwrap own '{{ {uid} . {own} }}'",
    "a server has its neighbour's": "nft add element inet mcpwrap own '{{ {uid} . {other} }}'",
    "Squid may go to another port": "nft add element inet mcpwrap ports '{{ 25 }}'",
    "a range is no longer private": "nft delete element inet mcpwrap private4 '{{ 10.0.0.0/8 }}'",
    "Squid may ask nobody": "nft flush set inet mcpwrap resolvers4",
    "Squid may ask somebody else": "nft add element inet mcpwrap resolvers4 '{{ 203.0.113.66 }}'",
}


@pytest.mark.parametrize("command", TAMPERING.values(), ids=TAMPERING.keys())
def test_what_somebody_changed_is_back_within_a_second(machine: Machine, command: str) -> None:
    values = {
        "uid": machine.uid_of("mcpw-probe"),
        "own": own_address(machine, "probe"),
        "other": own_address(machine, "neighbour"),
    }
    before = rules(machine)
    assert "@wrapped" in before
    command = command.format(**values) if "{{" in command else command
    script = f"BEFORE, COMMAND, LIST_RULES = {(before, command, LIST_RULES)!r}\n{TAMPER}"
    took_s = machine.probe(script)
    print(f"{command}: back after {took_s} s")
    assert took_s is not None
    assert took_s < 1.0
    if "nftables" in command:  # the twin: Debian's own is there, too
        assert "table inet filter" in machine.as_root("nft list tables").out


def test_a_stream_goes_on_while_the_rules_are_flushed(machine: Machine) -> None:
    with machine.session("probe") as session, machine.session("look") as looking:
        for one in (session, looking):
            play(one, "started.update(stream=Events(40, 0.05))")
        for _ in range(3):
            journal = Journal(machine)
            machine.as_root("nft flush ruleset")
            journal.await_line(PUT_BACK)
        for one in (session, looking):
            play(one, "started['stream'].thread.join(15)")
            said = play(one, "started['stream'].said()")
            assert isinstance(said, dict)
            assert (said["came"], said["in order"], said["error"]) == (40, True, "")


def test_rules_that_cannot_be_put_back_stop_everybody(machine: Machine) -> None:
    machine.announce("mcpwrap-(watch|check@|nft|squid-|front)|mcpwrap@|Dependency failed")
    with machine.session("probe") as session, machine.session("look") as looking:
        assert [play(one, "status()") for one in (session, looking)] == [200, 200]
        with changed(machine, RULES, "no such word\n"):
            journal = Journal(machine)
            machine.as_root("nft flush ruleset")
            journal.await_line("mcpwrap-watch.service: .*gone and cannot be loaded")
            for session_that_ends in (session, looking):
                assert session_that_ends.process.wait(15) != 0  # although nobody closed it
                session_that_ends.close()
            journal.await_line("mcpwrap-nft.service: Stopped")  # the last: the others require it
            refused = machine.as_user("alice", "mcpwrap-connect probe </dev/null", status=70)
            assert "does not start" in refused.err
            units = machine.as_root(
                "systemctl list-units --plain --no-legend --state=active"
                " 'mcpwrap@*.service' 'mcpwrap-squid-*' mcpwrap-front.service"
            ).out
            assert units == ""
        # The watch looks again by itself; nobody else does anything.
        machine.await_admission("probe")
    with machine.session("probe") as session, machine.session("look") as looking:
        assert [play(one, "status()") for one in (session, looking)] == [200, 200]
        assert play(session, "ask_directly()") == 200
    assert "nothing to do" in machine.apply()


# ------------------------------------------------------------------ Squid and the front


def test_everything_is_there_again_after_a_reboot(machine: Machine, internet: Internet) -> None:
    before = rules(machine)
    machine.reboot()
    internet.plug()
    assert rules(machine) == before
    with machine.session("probe") as session, machine.session("look") as looking:
        assert [play(one, "status()") for one in (session, looking)] == [200, 200]
        assert play(session, "status(host='other.test')") == "CONNECT 403"
        assert play(session, "ask_directly()") == 200
        journal = Journal(machine)
        machine.as_root("nft flush ruleset")
        journal.await_line(PUT_BACK)
    assert "nothing to do" in machine.apply()
