"""A machine in memory: what each step does to it, and agents who come as soon as they may."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import assert_never

import msgspec

from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.core import spec as specs
from mcpwrap.core.names import ACCOUNT_PREFIX, account_of
from mcpwrap.plan import paths, registry, steps, units
from mcpwrap.plan.desired import Applied, Desired, Ids, desired
from mcpwrap.plan.diff import Observed, Retired, diff
from mcpwrap.plan.steps import Step

IDS = Ids({"alice": 1000, "bob": 1001}, {"mcpwrap": 990})


@dataclass
class Machine:
    """Files, accounts, systemd and the kernel, as far as steps change them."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    accounts: dict[str, int] = field(default_factory=dict)
    listening: set[str] = field(default_factory=set)
    refused_uids: set[int] = field(default_factory=set)
    uid_by_state: dict[str, int] = field(default_factory=dict)
    running: dict[str, tuple[str, str]] = field(default_factory=dict)  # by what they started with
    has_stale_units: bool = False

    def copy(self) -> "Machine":
        return Machine(**{f.name: copy(getattr(self, f.name)) for f in fields(self)})

    def seen_by_root(self) -> Observed:
        return Observed(
            files=dict(self.files),
            links=dict(self.links),
            uid_by_account=dict(self.accounts),
            listening=frozenset(self.listening),
            loaded_units=frozenset(self.listening | self.running.keys()),
            has_stale_units=self.has_stale_units,
            refused_uids=frozenset(self.refused_uids),
            applied=msgspec.json.decode(self.files.get(paths.APPLIED, "{}"), type=Applied),
            states=frozenset(self.uid_by_state),
            shut_states=frozenset(n for n, uid in self.uid_by_state.items() if uid == 0),
        )

    def seen_by_anybody(self) -> Observed:
        return replace(self.seen_by_root(), refused_uids=None)

    def carry_out(self, step: Step) -> None:  # noqa: C901, PLR0912, PLR0915 - one case a step
        match step:
            case steps.WriteFile(path, text):
                self.files[path] = text
                self.has_stale_units |= path.startswith(paths.UNITS)
            case steps.RemoveFile(path):
                self.files.pop(path, None)
                self.links.pop(path, None)
            case steps.RemoveTree(path):
                del self.uid_by_state[path.removeprefix(f"{paths.STATES}/")]
            case steps.ShutTree(path):
                self.uid_by_state[path.removeprefix(f"{paths.STATES}/")] = 0
            case steps.MakeLink(path, target):
                self.links[path] = target
            case steps.MakeAccount(account, uid):
                name = account.removeprefix(ACCOUNT_PREFIX)
                assert self.files[paths.sysusers(name)] == units.sysusers(name, uid)
                self.accounts[account] = uid
            case steps.RemoveAccount(account):
                assert account.removeprefix(ACCOUNT_PREFIX) not in self.running  # userdel(8): busy
                del self.accounts[account]
            case steps.LoadRules(uids):
                assert self.files[paths.WRAPPED_SET] == units.wrapped_set(uids)
                self.refused_uids = set(uids)
            case steps.ReloadUnits():
                self.has_stale_units = False
            case steps.StopServer(name):
                self.listening.discard(name)
                self.running.pop(name, None)
            case steps.RestartServer(name):
                if self.running.pop(name, None):
                    self._start(name)
            case steps.StartSocket(name):
                self.listening.add(name)
            case _:
                assert_never(step)

    def let_agents_come(self) -> None:
        """Start every server that the gate would start."""
        for name in self.admissions().by_server:
            if name in self.listening and name not in self.running:
                self._start(name)

    def admissions(self) -> specs.Admissions:
        return specs.decode_admissions(self.files.get(paths.ADMISSIONS, "{}"))

    def current_files(self, name: str) -> tuple[str, str]:
        return self.files[paths.spec(name)], self.files[paths.drop_in(name)]

    def _start(self, name: str) -> None:
        assert not self.has_stale_units
        self.running[name] = self.current_files(name)
        if "StateDirectory=" in self.files[paths.drop_in(name)]:
            self.uid_by_state[name] = self.accounts[account_of(name)]


def wanted(text: str, have: Observed) -> Desired:
    known = {a.removeprefix(ACCOUNT_PREFIX): uid for a, uid in have.uid_by_account.items()}
    text_before = have.files.get(paths.REGISTRY)
    before = registry.decode(text_before) if text_before else registry.Registry()
    config = parse([SourceFile("config.toml", text.encode())])
    allocated = registry.allocate(config.servers, registry.adopt(before, known), frozenset())
    return desired(config, allocated, IDS)


def plan(text: str, have: Observed) -> list[Step]:
    return diff(wanted(text, have), have)


def plan_with_purge(text: str, have: Observed) -> list[Step]:
    return diff(wanted(text, have), have, Retired.PURGE)


def stages(machine: Machine, todo: list[Step]) -> Iterator[Machine]:
    """Yield the machine before these steps and after each of them, agents coming."""
    yield machine
    for step in todo:
        machine = machine.copy()
        machine.carry_out(step)
        machine.let_agents_come()
        yield machine


def after(machine: Machine, todo: list[Step]) -> Machine:
    """Return what becomes of the machine when these steps are carried out."""
    return list(stages(machine, todo))[-1]


def applied(*texts: str) -> Machine:
    """Return a machine to which these configurations were applied, one after the other."""
    machine = Machine()
    for text in texts:
        machine = after(machine, plan(text, machine.seen_by_root()))
    return machine
