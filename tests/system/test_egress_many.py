"""More servers than one Squid can listen for: several instances, of which each is left alone."""

from collections.abc import Iterator

import pytest

from mcpwrap.plan.squid import MAX_LISTENERS
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session
from tests.system.outgoing import a_server
from tests.system.survival import play

# What is true of 128 and the next is here true of 2 and the next: each server is an account, two
# units and a link, and the machine of a test should not need a minute for them.
FEW = ("plan/squid", f"MAX_LISTENERS = {MAX_LISTENERS}", "MAX_LISTENERS = 2")
HOSTS = {"a": "api.good.test", "b": "other.test", "c": "api.good.test", "d": "other.test"}
OPENED = "intercept = true\n"
CONNECTED = (Profile.BPF, "")
FIRST, SECOND = "mcpwrap-squid-proxy@1", "mcpwrap-squid-proxy@2"
# As many as there may be, in an instance of its own.
FULL = """
import json, sys, time
sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
from mcpwrap.as_root import proxy
from mcpwrap.config.model import Destination
from mcpwrap.linux import listening
from mcpwrap.plan import squid
hosts = (Destination("api.good.test", 443, with_subdomains=False),)
found = [
    squid.Listener(name=f"n{n}", address=f"127.77.70.{n}", hosts=hosts) for n in range(COUNT)
]
proxy.load("proxy-9", squid.spliced("proxy-9", found, None))
wanted = {each.address for each in found}
give_up_at = time.monotonic() + 10
while len(wanted & listening.inodes(3128).keys()) < MAX and time.monotonic() < give_up_at: pass
# It opens all in one go: what is not there now will not come.
print(json.dumps(len(wanted & listening.inodes(3128).keys())))
"""


def config(*names: str, opened: tuple[str, ...] = ()) -> str:
    return "".join(
        a_server(name, f'egress = ["{HOSTS[name]}"]\n' + (OPENED if name in opened else ""))
        for name in names
    )


@pytest.fixture(scope="module", autouse=True)
def three(connected: tuple[Machine, Internet]) -> Iterator[None]:
    """Have three servers need two instances."""
    machine, _ = connected
    with machine.patched(*FEW):
        machine.configure(config("a", "b", "c"))
        machine.apply()
        yield


def expect_its_host_alone(session: Session, name: str) -> None:
    other = {"api.good.test": "other.test", "other.test": "api.good.test"}[HOSTS[name]]
    assert play(session, f"status(host='{HOSTS[name]}')") == 200
    assert play(session, f"status(host='{other}')") == "CONNECT 403"


def pid(machine: Machine, unit: str) -> str:
    return machine.show(unit, "MainPID")["MainPID"]


def instances(machine: Machine) -> str:
    return machine.as_root(
        "systemctl list-units --plain --no-legend --state=active 'mcpwrap-squid-*' | cut -d' ' -f1"
    ).out


def test_each_server_reaches_its_own_host_by_its_own_instance(machine: Machine) -> None:
    for name in ("a", "b", "c"):
        with machine.session(name) as session:
            expect_its_host_alone(session, name)
    assert '"server":"b"' in machine.read("/var/log/mcpwrap/proxy/access-1.jsonl")
    assert '"server":"c"' in machine.read("/var/log/mcpwrap/proxy/access-2.jsonl")
    assert "api.good.test:443" in machine.as_root("mcpwrap egress c").out
    assert "nothing to do" in machine.apply()


def test_who_comes_to_one_instance_interrupts_nobody_of_the_other(machine: Machine) -> None:
    before = pid(machine, FIRST)
    with machine.session("a") as first, machine.session("c") as second:
        for session in (first, second):
            play(session, "started.update(stream=Events(60, 0.05))")
        machine.configure(config("a", "b", "c", "d"))
        done = machine.apply()
        assert "squid/proxy-2.conf" in done
        assert "squid/proxy-1.conf" not in done
        for session in (first, second):
            play(session, "started['stream'].thread.join(15)")
            said = play(session, "started['stream'].said()")
            assert isinstance(said, dict)
            assert (said["came"], said["in order"], said["error"]) == (60, True, "")
    with machine.session("d") as session:
        expect_its_host_alone(session, "d")
    assert pid(machine, FIRST) == before


def test_who_leaves_makes_room_and_moves_nobody(machine: Machine) -> None:
    before = pid(machine, SECOND)
    machine.configure(config("b", "c"))
    machine.apply()
    assert pid(machine, SECOND) == before  # although one would do
    machine.configure(config("a", "b", "c"))
    assert "squid/proxy-2.conf" not in machine.apply()
    with machine.session("a") as session:
        expect_its_host_alone(session, "a")


def test_a_server_whose_tls_is_opened_from_now_on_changes_instances(machine: Machine) -> None:
    machine.configure(config("a", "b", "c", opened=("a", "c")))
    machine.apply()
    assert instances(machine).split() == ["mcpwrap-squid-intercept@1.service", f"{FIRST}.service"]
    for name in ("a", "b", "c"):
        with machine.session(name) as session:
            expect_its_host_alone(session, name)
    machine.configure(config("a", "b"))
    machine.apply()
    assert instances(machine).split() == [f"{FIRST}.service"]
    files = machine.as_root("ls /var/lib/mcpwrap/squid /etc/systemd/system/multi-user.target.wants")
    assert "intercept" not in files.out
    assert "proxy-2" not in files.out


@pytest.mark.parametrize("count", [MAX_LISTENERS, MAX_LISTENERS + 1])
def test_an_instance_listens_for_as_many_as_we_give_it(machine: Machine, count: int) -> None:
    """And for no more, whatever its file says: it leaves them out without a word."""
    try:
        values = f"COUNT, MAX = {count}, {MAX_LISTENERS}"
        assert machine.probe(f"{values}\n{FULL}") == MAX_LISTENERS
    finally:
        machine.as_root(
            "systemctl disable --now mcpwrap-squid-proxy@9; rm /var/lib/mcpwrap/squid/proxy-9.conf"
        )
