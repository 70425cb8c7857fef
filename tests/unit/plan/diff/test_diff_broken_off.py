"""Interrupted `apply`, after any step: the state is safe, and the next run completes it."""

from collections.abc import Iterable
from functools import cache
from itertools import product

import pytest

from mcpwrap.core.names import account_of, egress_address
from mcpwrap.core.wire.execution import worker_file
from mcpwrap.core.wire.listener_file import decode
from mcpwrap.core.wire.server_files import encode
from mcpwrap.plan import paths, steps
from mcpwrap.plan.desired import Desired
from tests.unit.plan.configs import (
    CACHE,
    CHANGED,
    FIRST_OF_TWO,
    NOTHING,
    OTHER_OPENED,
    PYTHON,
    SECOND_OF_TWO,
    STATE,
    from_each,
    to_each,
)
from tests.unit.plan.machine import (
    SQUIDS,
    Machine,
    after,
    applied,
    plan,
    plan_with_purge,
    stages,
    wanted,
)

MINDS = (NOTHING, CHANGED, SECOND_OF_TWO, CACHE, OTHER_OPENED)
WAYS_OUT = {paths.proxy_unit(instance): paths.proxy(instance) for instance in SQUIDS}
WAYS_OUT |= {paths.FRONT_UNIT: paths.FRONT, paths.WEBHOOK_UNIT: paths.WEBHOOK}
WAYS_OUT |= {paths.WORKER_UNIT: paths.WORKER}
ONE_SLOT = f"{PYTHON}[mcp_servers.py.mcpwrap]\nruns = {{ at_once = 1 }}\n"
OTHER = "[mcp_servers.py2]\npython = '/usr/bin/python3'\n"


@cache
def broken_off(before: str, text: str) -> list[Machine]:
    """Return the machine as it is after each number of steps from `before` to `text`."""
    machine = applied(before)
    return [left.copy() for left in stages(machine, plan(text, machine.seen_by_root()))]


def allowed(elements: Iterable[tuple[str, str]]) -> set[tuple[int, str]]:
    """Return which account reaches which address."""
    sets = {"egress_addr", "direct4", "direct6", "listener_clients"}
    pairs = [text.split(" . ") for name, text in elements if name in sets]
    return {(int(uid), address) for uid, address, *_ in pairs}


def expect_ways_out(machine: Machine, want: Desired) -> None:
    """Expect that Squid and the front serve what they should; their files alone do not prove it."""
    served = {instance: text for instance, text in want.proxies.items() if text}
    assert machine.squids == {i: (text, machine.authorities_in(text)) for i, text in served.items()}
    assert machine.front == want.front


def expect_nothing_left(machine: Machine, want: Desired) -> None:
    """Expect that no other account has an address, a certificate, a cache or a resolver."""
    assert machine.elements == want.elements
    assert machine.authorities.keys() == want.authorities
    assert machine.caches <= want.uid_by_name.keys()
    assert machine.open_listeners.keys() == want.listeners.keys()
    for template in (paths.listener, paths.listener_drop_in):
        assert paths.names_in(machine.files, template) == want.listeners.keys()
    assert machine.open_jobs.keys() == want.job_files.keys()
    assert paths.names_in(machine.files, paths.job_drop_in) == want.job_files.keys()
    assert machine.accounts == want.uid_by_account()
    assert machine.files.get(paths.WORKER, "") == want.worker
    drop_ins = {paths.WORKER_SOCKET_DROP_IN, paths.WORKER_SERVICE_DROP_IN}
    assert drop_ins & machine.files.keys() == want.worker_drop_ins.keys()
    listening = ("listens", *want.worker_drop_ins.values()) if want.worker else ()
    assert machine.worker == listening
    wanted_files = {path for files in want.server_files.values() for path in files}
    resolv_confs = {path for path in machine.files if path.startswith(paths.RESOLV_CONFS)}
    assert resolv_confs <= wanted_files
    for unit, file in WAYS_OUT.items():
        assert (file in machine.files) == (unit in machine.serving())


def expect_safe(machine: Machine) -> None:
    wrapped = {int(element) for name, element in machine.elements if name == "wrapped"}
    assert set(machine.accounts.values()) <= wrapped
    for uid, address in allowed(machine.elements):
        if address.startswith("127.78."):
            assert uid not in wrapped
            continue
        assert uid in wrapped  # else the rule that admits it is never evaluated
        assert address == egress_address(uid) or not address.startswith("127.77.")
    for name in {*machine.admissions().by_server, *machine.running}:
        assert machine.accounts[account_of(name)] in wrapped
        assert {paths.spec(name), paths.drop_in(name), paths.sysusers(name)} <= machine.files.keys()
        assert name in machine.listening
    for instance in machine.open_jobs:  # a run has an account of its own, and no network
        pool, _, number = instance.rpartition("-")
        assert machine.accounts[account_of(f"{pool}/{number}")] in wrapped
    clients = {int(element) for name, element in machine.elements if name == "worker_clients"}
    assert clients <= wrapped
    for instance in machine.open_listeners:  # an existing file means that it is in effect
        listener = decode(machine.files[paths.listener(instance)].encode())
        address = f"ListenStream={listener.address}:52100\n"
        assert instance == f"{listener.server}.{listener.uid}"
        assert machine.files[paths.listener_drop_in(instance)].endswith(address)
        assert ("listener_clients", f"{listener.uid} . {listener.address}") in machine.elements


@from_each
@to_each
def test_whenever_root_stops_what_stands_is_safe(before: str, text: str) -> None:
    for machine in broken_off(before, text):
        expect_safe(machine)


@from_each
@to_each
def test_whenever_root_stops_the_next_run_comes_to_the_same_end(before: str, text: str) -> None:
    complete = applied(before, text)
    for machine in broken_off(before, text):
        assert after(machine, plan(text, machine.seen_by_root())) == complete


@from_each
@to_each
def test_whenever_root_stops_the_operator_may_change_their_mind(before: str, text: str) -> None:
    for machine, then in product(broken_off(before, text), {before, *MINDS}):
        end = machine
        for end in stages(machine, plan(then, machine.seen_by_root())):
            expect_safe(end)
        want = wanted(then, end.seen_by_root())
        names = want.uid_by_name.keys()
        assert plan(then, end.seen_by_root()) == []
        assert end.listening == end.running.keys() == end.admissions().by_server.keys() == names
        assert end.running == {name: end.current_files(name) for name in names}
        assert end.open_listeners == {i: end.files_of_listener(i) for i in want.listeners}
        expect_ways_out(end, want)
        assert end.webhook == want.webhook
        expect_nothing_left(end, want)


@from_each
@to_each
def test_what_is_allowed_no_more_ends_before_anything_new_begins(before: str, text: str) -> None:
    machine = applied(before)
    want = wanted(text, machine.seen_by_root())
    todo = plan(text, machine.seen_by_root())
    opened = steps.MakeAccounts | steps.LoadProxy | steps.LoadFront | steps.StartSockets
    opened |= steps.StartListeners
    for step in todo:
        if isinstance(step, opened | steps.RestartServers | steps.RemoveAccount):
            assert allowed(machine.elements) <= allowed(want.elements)
            assert want.elements <= machine.elements
        machine.carry_out(step)


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (PYTHON, ONE_SLOT),
        (ONE_SLOT, PYTHON),
        (f"{PYTHON}{OTHER}", PYTHON),
        (f"{PYTHON}{OTHER}", f"{ONE_SLOT}{OTHER}"),
    ],
    ids=["fewer-slots", "more-slots", "server-removed", "fewer-slots-of-one"],
)
def test_a_slot_is_removed_when_the_worker_has_forgotten_it(before: str, text: str) -> None:
    want = wanted(text, applied(before).seen_by_root())
    complete = applied(before, text)
    for machine in broken_off(before, text):
        expect_safe(machine)
        known = slots_known_to_the_worker(machine)
        assert machine.worker
        assert known <= machine.open_jobs.keys() | want.job_files.keys()
        todo = plan(text, machine.seen_by_root())
        assert after(machine, todo) == complete
    assert slots_known_to_the_worker(complete) == want.job_files.keys()


def slots_known_to_the_worker(machine: Machine) -> set[str]:
    pools = worker_file.decode(machine.files[paths.WORKER].encode()).pools
    return {f"{pool}-{n}" for pool, its in pools.items() for n in range(its.limits.at_once)}


@from_each
@to_each
def test_nobody_approves_their_own_unless_both_configurations_say_so(
    before: str, text: str
) -> None:
    then, now = (wanted(t, applied(before).seen_by_root()).admissions for t in (before, text))
    *stopped, complete = broken_off(before, text)
    for machine in stopped[1:]:
        may = machine.admissions().same_uid_approves
        assert may <= (then.same_uid_approves or machine.files[paths.ACCESS_LIST] == encode(now))
    assert complete.admissions().same_uid_approves == now.same_uid_approves


@from_each
@to_each
def test_no_server_starts_before_squid_serves_its_allowlist_and_no_other(
    before: str, text: str
) -> None:
    machine = applied(before)
    want = wanted(text, machine.seen_by_root())
    todo = plan(text, machine.seen_by_root())
    for index, step in enumerate(todo):
        lets_in = isinstance(step, steps.WriteFile) and step.path == paths.ACCESS_LIST and index > 3
        if lets_in or isinstance(step, steps.StartSockets | steps.RestartServers):
            expect_ways_out(machine, want)
        machine.carry_out(step)
    expect_ways_out(machine, want)
    expect_nothing_left(machine, want)


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (STATE, NOTHING),
        (STATE, SECOND_OF_TWO),
        (FIRST_OF_TWO, NOTHING),
        (FIRST_OF_TWO, SECOND_OF_TWO),
    ],
    ids=["only", "other", "first", "first-for-second"],
)
def test_whenever_a_purge_stops_nobody_can_inherit_what_is_left(before: str, text: str) -> None:
    machine = applied(before)
    todo = plan_with_purge(text, machine.seen_by_root())
    for left in stages(machine, todo):
        expect_safe(left)
        registered = wanted(text, left.seen_by_root()).registry.by_name  # by the next run
        uid_by_name = {name: allocation.uid for name, allocation in registered.items()}
        owners = {name: uid or uid_by_name.get(name) for name, uid in left.uid_by_state.items()}
        assert owners.items() <= uid_by_name.items()
    names = wanted(text, machine.seen_by_root()).uid_by_name
    assert set(after(machine, todo).uid_by_state) <= names.keys()
