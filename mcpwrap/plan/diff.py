"""From how the machine is to how it should be: the steps, in an order that is safe to break off.

Nobody is let in before the rules, the account and the units stand; whoever goes is shut out first;
and packets are refused before an account exists and until it is gone.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from mcpwrap.core import spec as specs
from mcpwrap.core.names import ACCOUNT_PREFIX, account_of
from mcpwrap.plan import paths, steps, units
from mcpwrap.plan.desired import Applied, Desired
from mcpwrap.plan.registry import purge_retired
from mcpwrap.plan.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """How the machine is. `files` holds those of ours that exist; links are by their target."""

    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    uid_by_account: Mapping[str, int] = field(default_factory=dict)  # ours alone
    listening: frozenset[str] = frozenset()  # servers whose socket is active and enabled
    loaded_units: frozenset[str] = frozenset()  # servers of which systemd knows a unit
    has_stale_units: bool = False
    refused_uids: frozenset[int] | None = None  # in the kernel; None: only root can see
    applied: Applied = field(default_factory=Applied)
    states: frozenset[str] = frozenset()  # servers that have a state folder
    shut_states: frozenset[str] = frozenset()  # those of them that are root's alone


class Retired(Enum):
    """What becomes of the state and the UID of a server that is no longer configured."""

    KEEP = "keep"
    PURGE = "purge"


def diff(want: Desired, have: Observed, retired: Retired = Retired.KEEP) -> list[Step]:
    """Return what root should do. An empty list says that the machine is as it should be."""
    gone = _gone(want, have)
    return [
        *_write({paths.REGISTRY: specs.encode(want.registry)}, have),
        *_shut_out(want, have),
        *_forget_changed(want, have),
        *_stop(gone, have),
        *_refuse_packets(want, have),
        *_make_accounts(want, have),
        *_write_servers(want, have, gone),
        *_start(want, have),
        *_write({paths.ADMISSIONS: specs.encode(want.admissions)}, have),
        *_shut_states(want, have),
        *_remove_accounts(gone, have),
        *_let_packets_go(want, have, gone),
        *(_purge(want, have) if retired is Retired.PURGE else []),
        *_write({paths.APPLIED: specs.encode(_applied(want))}, have),
    ]


def _gone(want: Desired, have: Observed) -> list[str]:
    """Names of which anything exists although no server has them."""
    accounts = {a.removeprefix(ACCOUNT_PREFIX) for a in have.uid_by_account}
    found = accounts | have.loaded_units | have.listening | set(have.applied.hash_by_server)
    for template in (paths.spec, paths.sysusers, paths.drop_in):
        head, _, tail = template("\0").partition("\0")
        found |= {p[len(head) : -len(tail)] for p in have.files if _fits(p, head, tail)}
    head = paths.link("")
    found |= {path[len(head) :] for path in have.links if path.startswith(head)}
    return sorted(found - want.uid_by_name.keys())


def _fits(path: str, head: str, tail: str) -> bool:
    return path.startswith(head) and path.endswith(tail) and len(path) > len(head + tail)


def _write(files: Mapping[str, str], have: Observed) -> list[Step]:
    return [steps.WriteFile(p, text) for p, text in files.items() if have.files.get(p) != text]


def _shut_out(want: Desired, have: Observed) -> list[Step]:
    """Take from the guest list, now, everything that the new one does not have."""
    if paths.ADMISSIONS not in have.files:
        return []
    try:
        now = specs.decode_admissions(have.files[paths.ADMISSIONS]).by_server
    except msgspec.MsgspecError:
        return [steps.WriteFile(paths.ADMISSIONS, specs.encode(specs.Admissions()))]
    kept = {n: a for n, a in now.items() if want.admissions.by_server.get(n) == a}
    if kept == now:
        return []
    return [steps.WriteFile(paths.ADMISSIONS, specs.encode(specs.Admissions(by_server=kept)))]


def _forget_changed(want: Desired, have: Observed) -> list[Step]:
    """Note first that these are not in effect: broken off later, the next run restarts them."""
    now, then = _applied(want).hash_by_server, have.applied.hash_by_server
    same = {name: text for name, text in then.items() if now.get(name) == text}
    if same == then:
        return []
    return [
        steps.WriteFile(
            paths.APPLIED,
            specs.encode(Applied(hash_by_server=same, refused_uids=have.applied.refused_uids)),
        )
    ]


def _stop(gone: list[str], have: Observed) -> list[Step]:
    return [steps.StopServer(name) for name in gone if name in have.loaded_units | have.listening]


def _refuse_packets(want: Desired, have: Observed) -> list[Step]:
    """Refuse the packets of old and new wrappers alike, before anything of the new exists."""
    return _rules(have, {*want.uid_by_name.values(), *have.uid_by_account.values()})


def _let_packets_go(want: Desired, have: Observed, gone: list[str]) -> list[Step]:
    if any(account_of(name) in have.uid_by_account for name in gone):
        return _rules_now(set(want.uid_by_name.values()))
    return []


def _rules(have: Observed, uids: set[int]) -> list[Step]:
    in_kernel = have.applied.refused_uids if have.refused_uids is None else have.refused_uids
    text = units.wrapped_set(tuple(sorted(uids)))
    if set(in_kernel) == uids and have.files.get(paths.WRAPPED_SET) == text:
        return []
    return _rules_now(uids)


def _rules_now(uids: set[int]) -> list[Step]:
    ordered = tuple(sorted(uids))
    return [
        steps.WriteFile(paths.WRAPPED_SET, units.wrapped_set(ordered)),
        steps.LoadRules(ordered),
    ]


def _make_accounts(want: Desired, have: Observed) -> list[Step]:
    made: list[Step] = _write(want.sysusers_files, have)
    for name, uid in want.uid_by_name.items():
        account = account_of(name)
        if have.uid_by_account.get(account) != uid:
            made.append(steps.MakeAccount(account, uid))
    return made


def _write_servers(want: Desired, have: Observed, gone: list[str]) -> list[Step]:
    """Write and remove what is a server's own, and make systemd and the wrappers take it."""
    todo: list[Step] = []
    for files in want.server_files.values():
        todo += _write(files, have)
    for name in gone:
        mine = (paths.spec(name), paths.drop_in(name), paths.link(name))
        todo += [
            steps.RemoveFile(path) for path in mine if path in have.files or path in have.links
        ]
    todo += [
        steps.MakeLink(path, target)
        for path, target in want.links.items()
        if have.links.get(path) != target
    ]
    touches_units = any(
        isinstance(step, steps.WriteFile | steps.RemoveFile) and step.path.startswith(paths.UNITS)
        for step in todo
    )
    if touches_units or have.has_stale_units:
        todo.append(steps.ReloadUnits())
    return todo


def _start(want: Desired, have: Observed) -> list[Step]:
    now, then = _applied(want).hash_by_server, have.applied.hash_by_server
    restarts = [
        steps.RestartServer(n) for n in now if n in have.loaded_units and now[n] != then.get(n)
    ]
    starts = [steps.StartSocket(n) for n in now if n not in have.listening]
    return [*restarts, *starts]


def _shut_states(want: Desired, have: Observed) -> list[Step]:
    """Before its account goes: useradd may give that UID to a person. systemd gives it back."""
    left = have.states - have.shut_states - want.uid_by_name.keys()
    return [steps.ShutTree(f"{paths.STATES}/{name}") for name in sorted(left)]


def _remove_accounts(gone: list[str], have: Observed) -> list[Step]:
    todo: list[Step] = []
    for name in gone:
        if account_of(name) in have.uid_by_account:
            todo.append(steps.RemoveAccount(account_of(name)))
        if paths.sysusers(name) in have.files:
            todo.append(steps.RemoveFile(paths.sysusers(name)))
    return todo


def _purge(want: Desired, have: Observed) -> list[Step]:
    """Remove what is left of retired servers; only then may others have their UIDs."""
    left = sorted(have.states - want.uid_by_name.keys())
    trees: list[Step] = [steps.RemoveTree(f"{paths.STATES}/{name}") for name in left]
    text = specs.encode(purge_retired(want.registry))
    if text == specs.encode(want.registry):
        return trees
    return [*trees, steps.WriteFile(paths.REGISTRY, text)]


def _guests(want: Desired, name: str) -> str:
    """Who may use it: whoever may no longer must not go on in a session that is open."""
    return specs.encode(want.admissions.by_server[name])


def _applied(want: Desired) -> Applied:
    return Applied(
        hash_by_server={
            name: hashlib.sha256(
                "\0".join([*files.values(), _guests(want, name)]).encode()
            ).hexdigest()
            for name, files in want.server_files.items()
        },
        refused_uids=tuple(sorted(want.uid_by_name.values())),
    )
