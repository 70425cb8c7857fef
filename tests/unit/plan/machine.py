"""Machine in memory: the effect of each step, and agents that connect as soon as they may."""

import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import assert_never

import msgspec

from mcpwrap.config.model import Config, Destination
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core.distribution import OsRelease, distribution_of
from mcpwrap.core.names import EGRESS_PORT, account_of, name_of
from mcpwrap.core.wire import server_files as specs
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.core.wire.sni_front_file import decode_front
from mcpwrap.core.wire.webhook_file import decode as decode_webhook
from mcpwrap.plan import http_listeners, paths, registry, run_slots, steps
from mcpwrap.plan.desired import Desired, Ids, desired
from mcpwrap.plan.diff.diff import RetirementPolicy, diff
from mcpwrap.plan.egress import nft_elements, squid_conf
from mcpwrap.plan.egress.server_egress import MachineSoftware, PackageSource
from mcpwrap.plan.observed import Applied, Observed
from mcpwrap.plan.steps import Step

IDS = Ids(
    {"alice": 1000, "bob": 1001},
    {"mcpwrap": 990},
    {"mcpwrap": frozenset({0, 1000, 1002})},  # root has joined it, and is not an agent
)
SOURCES = {
    "npm": PackageSource(
        (Destination("npm.example", 443, with_subdomains=False),),
        {"npm_config_registry": "https://npm.example/"},
    ),
    "pypi": PackageSource((Destination("pypi.example", 8443, with_subdomains=False),)),
}
DEBIAN = distribution_of(OsRelease(id="debian"))
SOFTWARE = MachineSoftware(SOURCES, DEBIAN)
SQUIDS = ("proxy-1", "intercept-1")


@dataclass
class Machine:
    """Files, accounts, systemd and the kernel, as far as steps change them."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    accounts: dict[str, int] = field(default_factory=dict)
    listening: set[str] = field(default_factory=set)
    enabled: set[str] = field(default_factory=set)  # for which systemd listens after a reboot
    open_listeners: dict[str, tuple[str, ...]] = field(default_factory=dict)  # with files read
    open_jobs: dict[str, str] = field(default_factory=dict)  # run slots, with their drop-ins
    worker: tuple[str, ...] = ()  # the drop-ins that the listening worker has read
    elements: set[tuple[str, str]] = field(default_factory=set)
    authorities: dict[str, int] = field(default_factory=dict)  # by which of all that were made
    made: int = 0
    # what Squid and the front have read, which is not always what is in their files
    squids: dict[str, tuple[str, dict[str, int]]] = field(default_factory=dict)
    front: str = ""
    webhook: str = ""
    caches: set[str] = field(default_factory=set)
    uid_by_state: dict[str, int] = field(default_factory=dict)
    running: dict[str, tuple[str, ...]] = field(default_factory=dict)  # with the files they read
    has_stale_units: bool = False
    kept_secrets: set[str] = field(default_factory=set)
    leftovers: set[str] = field(default_factory=set)

    def copy(self) -> "Machine":
        return Machine(**{f.name: copy(getattr(self, f.name)) for f in fields(self)})

    def seen_by_root(self) -> Observed:
        return Observed(
            files=dict(self.files),
            links=dict(self.links),
            uid_by_account=dict(self.accounts),
            listening=frozenset(self.listening & self.enabled),
            loaded_units=frozenset(self.listening | self.running.keys()),
            open_listeners=frozenset(self.open_listeners),
            loaded_listeners=frozenset(self.open_listeners),
            open_jobs=frozenset(self.open_jobs),
            loaded_jobs=frozenset(self.open_jobs),
            has_stale_units=self.has_stale_units,
            elements=frozenset(self.elements),
            authorities=frozenset(self.authorities),
            serving=frozenset(self.serving()),
            caches=frozenset(self.caches),
            applied=msgspec.json.decode(self.files.get(paths.APPLIED, "{}"), type=Applied),
            states=frozenset(self.uid_by_state),
            kept_secrets=frozenset(self.kept_secrets),
            leftovers=frozenset(self.leftovers),
            shut_states=frozenset(n for n, uid in self.uid_by_state.items() if uid == 0),
        )

    def seen_by_anybody(self) -> Observed:
        return replace(self.seen_by_root(), elements=None)

    def carry_out(self, step: Step) -> None:  # noqa: C901, PLR0912, PLR0915 - one case a step
        match step:
            case steps.WriteFile(path, text):
                assert path not in self.files_of_open_listeners()  # they would not read it
                assert path not in self.files_of_open_jobs()
                self.files[path] = text
                self.has_stale_units |= path.startswith(paths.UNITS)
            case steps.RemoveFile(path):
                assert path not in self.files_of_open_listeners() | self.files_of_open_jobs()
                assert path != paths.WORKER or not self.worker
                assert path != paths.WEBHOOK or not self.webhook
                assert path not in {paths.proxy(i) for i in self.squids}
                self.files.pop(path, None)
                self.links.pop(path, None)
            case steps.RemoveLeftover(path):
                self.leftovers.discard(path)
            case steps.RemoveTree(path):
                self._remove_tree(path)
            case steps.ShutTree(path):
                self.uid_by_state[path.removeprefix(f"{paths.STATES}/")] = 0
            case steps.ForgetSecrets(name):
                self.kept_secrets.discard(name)
            case steps.MakeLink(path, target):
                self.links[path] = target
            case steps.MakeAccounts(accounts):
                for account, uid in accounts:
                    file = self.files[paths.sysusers(name_of(account).partition("/")[0])]
                    assert f"g {account} {uid}\nu {account} {uid}:{uid} " in file
                    self.accounts[account] = uid
            case steps.RemoveAccount(account):
                assert name_of(account) not in self.running  # userdel(8): busy
                assert name_of(account).replace("/", "-") not in self.open_jobs
                del self.accounts[account]
            case steps.LoadRules(elements, _):
                assert self.files[paths.ELEMENTS] == nft_elements.text(elements)
                self.elements = set(elements)
            case steps.MakeAuthority(name):
                self.made += 1
                self.authorities[name] = self.made
            case steps.LoadProxy(instance, text):
                others = {p for i in self.squids if i != instance for p in self.ports_of(i)}
                assert squid_conf.ports(text).isdisjoint(others)  # bind(2): address already in use
                self.files[paths.proxy(instance)] = text
                self.squids[instance] = text, self.authorities_in(text)
            case steps.LoadFront():
                self.front = self.files[paths.FRONT]
                decode_front(self.front.encode())
            case steps.LoadWebhook():
                self.webhook = self.files[paths.WEBHOOK]
                decode_webhook(self.webhook.encode())
            case steps.StopUnit(unit):
                if unit == paths.WEBHOOK_UNIT:
                    self.webhook = ""
                if unit == paths.WORKER_UNIT:
                    self.worker = ()
                if unit == paths.FRONT_UNIT:
                    self.front = ""
                self.squids = {i: s for i, s in self.squids.items() if paths.proxy_unit(i) != unit}
            case steps.ReloadUnits():
                self.has_stale_units = False
            case steps.StopServers(names):
                for name in names:
                    self.enabled.discard(name)
                    self.listening.discard(name)
                    self.running.pop(name, None)
            case steps.RestartServers(names):
                for name in names:
                    if self.running.pop(name, None):
                        self._start(name)
            case steps.EnableSockets(names):
                assert {paths.spec(name) for name in names} <= self.files.keys()
                self.enabled |= {*names}
            case steps.StartSockets(names):
                assert {*names} <= self.enabled
                assert not self.has_stale_units
                self.listening |= {*names}
            case steps.StopListeners(instances):
                for instance in instances:
                    self.open_listeners.pop(instance, None)
            case steps.StartListeners(found):
                assert not self.has_stale_units
                for instance, listener in found:
                    self._start_listener(instance, listener)
            case steps.StopJobs(instances):
                for instance in instances:
                    self.open_jobs.pop(instance, None)
            case steps.StartJobs(instances):
                for instance in instances:
                    self._start_job(instance)
            case steps.LoadWorker():
                assert not self.has_stale_units
                assert paths.WORKER in self.files
                self.worker = ("listens", *self._worker_drop_ins())
            case _:
                assert_never(step)

    def files_of_listener(self, instance: str) -> tuple[str, ...]:
        """Return the files that PID 1 and the listener read at their start."""
        return self.files[paths.listener(instance)], self.files[paths.listener_drop_in(instance)]

    def files_of_open_listeners(self) -> set[str]:
        templates = (paths.listener, paths.listener_drop_in)
        return {template(instance) for template in templates for instance in self.open_listeners}

    def files_of_open_jobs(self) -> set[str]:
        return {paths.job_drop_in(instance) for instance in self.open_jobs}

    def _start_job(self, instance: str) -> None:
        pool, _, number = instance.rpartition("-")
        uid = self.accounts[account_of(f"{pool}/{number}")]
        assert not self.has_stale_units
        assert ("wrapped", str(uid)) in self.elements
        self.open_jobs[instance] = self.files[paths.job_drop_in(instance)]

    def _worker_drop_ins(self) -> list[str]:
        drop_ins = (paths.WORKER_SOCKET_DROP_IN, paths.WORKER_SERVICE_DROP_IN)
        return [self.files[path] for path in drop_ins if path in self.files]

    def broken_off_in(self, step: steps.LoadProxy) -> "Machine":
        """Return the machine when the file is written, and Squid has not read it."""
        left = self.copy()
        left.files[paths.proxy(step.instance)] = step.text
        return left

    def serving(self) -> set[str]:
        others = {paths.FRONT_UNIT: self.front, paths.WEBHOOK_UNIT: self.webhook}
        others[paths.WORKER_UNIT] = "".join(self.worker)
        serving = {unit for unit, read in others.items() if read}
        return {paths.proxy_unit(i) for i in self.squids} | serving

    def ports_of(self, instance: str) -> frozenset[str]:
        return (
            squid_conf.ports(self.squids[instance][0]) if instance in self.squids else frozenset()
        )

    def authorities_in(self, text: str) -> dict[str, int]:
        """Return the authorities whose files a configuration or unit names; all must be there."""
        names = re.findall(rf"{paths.CAS}/([^/]+)/", text)
        return {name: self.authorities[name] for name in names}

    def let_agents_come(self) -> None:
        """Start every server that the gate would start."""
        for name in self.admissions().by_server:
            if name in self.listening and name not in self.running:
                self._start(name)

    def admissions(self) -> specs.AccessList:
        return specs.decode_access_list(self.files.get(paths.ACCESS_LIST, "{}"))

    def current_files(self, name: str) -> tuple[str, ...]:
        """Return all that a server sees of root's files, as it is now."""
        unit = self.files[paths.drop_in(name)]
        bound = [path for path in self.files if f"={path}:" in unit]
        assert (paths.RESOLV_CONFS in unit) == bool(
            bound
        )  # a unit whose path is missing does not start
        seen = [paths.spec(name), paths.drop_in(name), *bound]
        return *(self.files[path] for path in seen), str(self.authorities_in(unit))

    def _start_listener(self, instance: str, listener: Listener) -> None:
        assert ("listener_clients", f"{listener.uid} . {listener.address}") in self.elements
        assert listener.uid in self.admissions().by_server[listener.server].http_uids
        assert listener.server in self.listening
        self.open_listeners[instance] = self.files_of_listener(instance)

    def _start(self, name: str) -> None:
        assert not self.has_stale_units
        self.running[name] = self.current_files(name)
        unit = self.files[paths.drop_in(name)]
        if "StateDirectory=" in unit:
            self.uid_by_state[name] = self.accounts[account_of(name)]
        if "CacheDirectory=" in unit:
            self.caches.add(name)
        for units_of_way_out in re.findall("Wants=(.*)", unit):
            assert set(units_of_way_out.split()) <= self.serving()
            [address] = re.findall(r"IPAddressAllow=(127\.77\S+)", unit)
            assert any(f"{address}:{EGRESS_PORT}" in self.ports_of(i) for i in self.squids)

    def _remove_tree(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        match folder:
            case paths.STATES:
                del self.uid_by_state[name]
            case paths.CACHES:
                self.caches.remove(name)
            case paths.CAS:
                assert not any(f"{path}/" in text for text in self.files.values())
                del self.authorities[name]
            case _:
                raise AssertionError(path)


@cache
def parsed(text: str) -> Config:
    return parse([SourceFile("config.toml", text.encode())])


def wanted(text: str, have: Observed, ids: Ids = IDS) -> Desired:
    known = {name_of(account): uid for account, uid in have.uid_by_account.items()}
    text_before = have.files.get(paths.REGISTRY)
    before = registry.decode(text_before) if text_before else registry.Registry()
    config = parsed(text)
    before = http_listeners.adopted(registry.adopt(before, known), have.files)
    names = [*config.servers, *run_slots.names(config)]
    allocated = registry.allocate(names, before, frozenset())
    return desired(config, allocated, ids, SOFTWARE, {})


def plan(text: str, have: Observed) -> list[Step]:
    return diff(wanted(text, have), have)


def plan_with_purge(text: str, have: Observed) -> list[Step]:
    return diff(wanted(text, have), have, RetirementPolicy.PURGE)


def stages(machine: Machine, todo: list[Step]) -> Iterator[Machine]:
    """Yield the machine before these steps, in and after each of them, with agents that connect.

    It is the same object each time: a caller that keeps a stage must copy it.
    """
    machine = machine.copy()
    yield machine
    for step in todo:
        if isinstance(step, steps.LoadProxy):
            yield machine.broken_off_in(step)
        for part in parts(step):
            machine.carry_out(part)
            machine.let_agents_come()
            yield machine


def parts(step: Step) -> list[Step]:
    """Return one step for each element of a batch: it may be interrupted between any two."""
    match step:
        case steps.MakeAccounts(accounts):
            return [steps.MakeAccounts((each,)) for each in accounts]
        case steps.StartListeners(found):
            return [steps.StartListeners((each,)) for each in found]
        case (
            steps.StopListeners(instances) | steps.StopJobs(instances) | steps.StartJobs(instances)
        ):
            return [type(step)((each,)) for each in instances]
        case (
            steps.StopServers(names)
            | steps.RestartServers(names)
            | steps.EnableSockets(names)
            | steps.StartSockets(names)
        ):
            return [type(step)((name,)) for name in names]
        case _:
            return [step]


def after(machine: Machine, todo: list[Step]) -> Machine:
    """Return the machine after these steps."""
    *_, end = stages(machine, todo)
    return end


def applied(*texts: str) -> Machine:
    """Return a machine to which these configurations were applied, one after the other."""
    machine = Machine()
    for text in texts:
        machine = after(machine, plan(text, machine.seen_by_root()))
    return machine
