"""More servers than one Squid can listen for: several instances, each undisturbed by the others."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mcpwrap.plan.egress.squid_conf import MAX_LISTENERS
from tests.shared import pace
from tests.system.bed import installed
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import Session
from tests.system.support.egress_recovery import await_that
from tests.system.support.egress_sessions import finished, play
from tests.system.support.servers import a_server
from tests.system.support.tiers import only_in_test_all

# Here 2 and the next stand for 128 and the next: each server is an account, two units and a link,
# and the machine of a test should not need a minute for them.
LIMIT_FILE = "/usr/lib/mcpwrap/mcpwrap/plan/egress/squid_conf.py"
LIMIT = f"MAX_LISTENERS = {MAX_LISTENERS}"
HOSTS = {"a": "api.good.test", "b": "other.test", "c": "api.good.test", "d": "other.test"}
OPENED = "intercept = true\n"
FIRST, SECOND = "mcpwrap-squid-proxy@1", "mcpwrap-squid-proxy@2"
STREAMED = 60


@contextmanager
def booted(suite: str) -> Iterator[Connected]:
    """Boot a machine on which three servers need two instances."""
    with installed.booted(suite, Profile.BPF) as machine:
        machine.add_person("alice", groups="mcpwrap")
        text = machine.read(LIMIT_FILE)
        assert text.count(LIMIT) == 1
        machine.write(LIMIT_FILE, text.replace(LIMIT, "MAX_LISTENERS = 2"))
        with Internet(machine) as internet:
            machine.configure(config("a", "b", "c"))
            machine.apply()
            yield Connected(machine, internet)


STAGE = booted


def config(*names: str, opened: tuple[str, ...] = ()) -> str:
    return "".join(
        a_server(name, f'egress = ["{HOSTS[name]}"]\n' + (OPENED if name in opened else ""))
        for name in names
    )


def expect_its_host_alone(session: Session, name: str) -> None:
    other = {"api.good.test": "other.test", "other.test": "api.good.test"}[HOSTS[name]]
    assert play(session, f"status(host='{HOSTS[name]}')") == 200
    assert play(session, f"status(host='{other}')") == "CONNECT 403"


def pid(machine: Machine, unit: str) -> str:
    return machine.show(unit, "MainPID")["MainPID"]


def instances(machine: Machine) -> str:
    return machine.look(
        "systemctl list-units --plain --no-legend --state=active 'mcpwrap-squid-*' | cut -d' ' -f1"
    )


def test_each_server_reaches_its_own_host_by_its_own_instance(machine: Machine) -> None:
    for name in ("a", "b", "c"):
        with machine.session(name) as session:
            expect_its_host_alone(session, name)
    for name, number in (("b", 1), ("c", 2)):  # Squid writes a line after its answer
        log = f"/var/log/mcpwrap/proxy/access-{number}.jsonl"
        await_that(machine, f"""grep -q '"server":"{name}"' {log}""")
    assert "api.good.test:443" in machine.as_root("mcpwrap egress c").out
    assert "nothing to do" in machine.apply()


def test_who_comes_to_one_instance_interrupts_nobody_of_the_other(machine: Machine) -> None:
    before = pid(machine, FIRST)
    with machine.session("a") as first, machine.session("c") as second:
        for session in (first, second):
            play(session, f"started.update(stream=Events({STREAMED}, 0.05))")
        machine.configure(config("a", "b", "c", "d"))
        done = machine.apply()
        assert "squid/proxy-2.conf" in done
        assert "squid/proxy-1.conf" not in done
        for session in (first, second):
            said = finished(session, "stream")
            assert (said["came"], said["in order"], said["error"]) == (STREAMED, True, "")
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
    files = machine.look("ls /var/lib/mcpwrap/squid /etc/systemd/system/multi-user.target.wants")
    assert "intercept" not in files
    assert "proxy-2" not in files


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(MAX_LISTENERS, marks=only_in_test_all("the next row shows the same bound")),
        MAX_LISTENERS + 1,
    ],
)
def test_an_instance_listens_for_as_many_as_we_give_it(machine: Machine, count: int) -> None:
    """And for no more, whatever its file says: Squid leaves them out without a message."""
    try:
        asked = ("proxy-9", count, MAX_LISTENERS, pace.WAIT_S)
        assert machine.call("squid_listeners", "opened", *asked) == MAX_LISTENERS
    finally:
        machine.as_root(
            "systemctl disable --now mcpwrap-squid-proxy@9; rm /var/lib/mcpwrap/squid/proxy-9.conf"
        )
