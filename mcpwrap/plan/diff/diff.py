"""Steps from the observed to the desired state, in an order that is safe to interrupt.

No agent is admitted before the rules, the account and the units exist; access that ends is removed
first; and packets are refused before an account exists and until it is gone.

An agents' HTTP listener is closed before its files change, and opened last of all, when packet
rules, server and access list are complete: so PID 1 listens only where one account alone can
connect, and every agent that connects is admitted. If `apply` is interrupted before that, the
listener stays closed. After the listeners comes the webhook, which posts pending approvals.

Run slots are stopped before their files change and opened before the servers that use them start.
The worker forgets a slot that is removed before it stops.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

from mcpwrap.core.names import is_slot_name, name_of
from mcpwrap.core.wire import server_files as specs
from mcpwrap.plan import http_listeners, paths, steps
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.diff import effective_state, egress_steps, execution_steps
from mcpwrap.plan.egress import nft_elements
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.registry import purge_retired
from mcpwrap.plan.steps import Step, batches

RESTARTED_AT_ONCE = 8  # wrappers of one batch start at the same time


class RetirementPolicy(Enum):
    """Treatment of the state and the UID of a server that is no longer configured."""

    KEEP = "keep"
    PURGE = "purge"


def diff(
    want: Desired, have: Observed, retired: RetirementPolicy = RetirementPolicy.KEEP
) -> list[Step]:
    """Return the steps for root. An empty list means that the machine is in the desired state."""
    gone = _gone(want, have)
    return [
        *map(steps.RemoveLeftover, sorted(have.leftovers)),
        *_write({paths.REGISTRY: specs.encode(want.registry)}, have),
        *_shut_out(want, have),
        *_forget_changed(want, have),
        *_close_listeners(want, have),
        *_stop(gone, have),
        *execution_steps.stop(want, have),
        *_refuse_packets(want, have),
        *_make_accounts(want, have),
        *egress_steps.open_ways_out(want, have),
        *_write_servers(want, have, gone),
        *execution_steps.start(want, have),
        *_start(want, have),
        *_write({paths.ACCESS_LIST: specs.encode(want.admissions)}, have),
        *_open_listeners(want, have),
        *_load_webhook(want, have),
        *_shut_states(want, have),
        *_remove_caches(want, have),
        *_remove_accounts(want, gone, have),
        *_let_packets_go(want, have),
        *egress_steps.remove_unused(want, have),
        *(_purge(want, have) if retired is RetirementPolicy.PURGE else []),
        *_note_done(want, have),
    ]


def _gone(want: Desired, have: Observed) -> list[str]:
    """Return the names of which anything exists although no server has them."""
    accounts = {n for n in map(name_of, have.uid_by_account) if not is_slot_name(n)}
    found = accounts | have.loaded_units | have.listening | set(have.applied.hash_by_server)
    for template in (paths.spec, paths.sysusers, paths.drop_in):
        found |= paths.names_in(have.files, template)
    return sorted((found | paths.names_in(have.links, paths.link)) - want.uid_by_name.keys())


def _write(files: Mapping[str, str], have: Observed) -> list[Step]:
    return [steps.WriteFile(p, text) for p, text in files.items() if have.files.get(p) != text]


def _shut_out(want: Desired, have: Observed) -> list[Step]:
    """Remove from the access list now what the new one does not have."""
    if paths.ACCESS_LIST not in have.files:
        return []
    try:
        now = specs.decode_access_list(have.files[paths.ACCESS_LIST])
    except msgspec.MsgspecError:
        return [steps.WriteFile(paths.ACCESS_LIST, specs.encode(specs.AccessList()))]
    by_server, same_uid = want.admissions.by_server, want.admissions.same_uid_approves
    kept = specs.AccessList(
        by_server={
            name: both
            for name, rule in now.by_server.items()
            if name in by_server and (both := _in_both(rule, by_server[name]))
        },
        same_uid_approves=now.same_uid_approves and same_uid,
    )
    return [] if kept == now else [steps.WriteFile(paths.ACCESS_LIST, specs.encode(kept))]


def _in_both(now: specs.AccessRule, then: specs.AccessRule) -> specs.AccessRule | None:
    """Return the part of a rule that stays; None if more changes than single accounts.

    Single accounts are agents by HTTP, and members of groups. A rule's policy files admit none, and
    neither does its membership in a hub: the hub's rule does.
    """
    uids = tuple(uid for uid in now.http_uids if uid in then.http_uids)
    members = tuple(uid for uid in now.members if uid in then.members)
    both = msgspec.structs.replace(now, http_uids=uids, members=members)
    is_same = both == msgspec.structs.replace(
        then, http_uids=uids, members=members, policy=now.policy, is_member=now.is_member
    )
    return both if is_same else None


def _forget_changed(want: Desired, have: Observed) -> list[Step]:
    """Record first what will not be in effect: after an interruption the next run does it again."""
    left = effective_state.left_as_it_is(want, have)
    return [] if left == have.applied else [steps.WriteFile(paths.APPLIED, specs.encode(left))]


def _note_done(want: Desired, have: Observed) -> list[Step]:
    text = specs.encode(effective_state.all_of(want))
    is_noted = have.files.get(paths.APPLIED) == text and not _forget_changed(want, have)
    return [] if is_noted else [steps.WriteFile(paths.APPLIED, text)]


def _close_listeners(want: Desired, have: Observed) -> list[Step]:
    """Close listeners that are removed or whose files change: they read these at their start."""
    loaded = have.loaded_listeners | have.open_listeners
    closed = [i for i in sorted(loaded) if not _has_current_files(i, want, have)]
    return [steps.StopListeners(some) for some in batches(closed)]


def _has_current_files(instance: str, want: Desired, have: Observed) -> bool:
    """Return whether a listener's files are as desired. They change only while it is closed."""
    listener = want.listeners.get(instance)
    if listener is None:
        return False
    return all(have.files.get(p) == text for p, text in http_listeners.files(listener).items())


def _stop(gone: list[str], have: Observed) -> list[Step]:
    stopped = [name for name in gone if name in have.loaded_units | have.listening]
    return [steps.StopServers(some) for some in batches(stopped)]


def _refuse_packets(want: Desired, have: Observed) -> list[Step]:
    """Refuse the packets of old and new wrappers alike, before anything of the new ones exists."""
    return _rules(want, have, want.elements | nft_elements.refused(have.uid_by_account.values()))


def _let_packets_go(want: Desired, have: Observed) -> list[Step]:
    if have.uid_by_account.keys() - want.uid_by_account().keys():
        return _rules_now(want, have, want.elements)
    return []


def _rules(want: Desired, have: Observed, elements: nft_elements.Elements) -> list[Step]:
    in_kernel = have.applied.elements if have.elements is None else have.elements
    if in_kernel == elements and have.files.get(paths.ELEMENTS) == nft_elements.text(elements):
        return []
    return _rules_now(want, have, elements)


def _rules_now(want: Desired, have: Observed, elements: nft_elements.Elements) -> list[Step]:
    accounts = {**have.uid_by_account, **want.uid_by_account()}
    of_slots = {uid for account, uid in accounts.items() if is_slot_name(name_of(account))}
    slots = len(elements & nft_elements.refused(of_slots))
    return [
        steps.WriteFile(paths.ELEMENTS, nft_elements.text(elements)),
        steps.LoadRules(elements, slots),
    ]


def _make_accounts(want: Desired, have: Observed) -> list[Step]:
    wanted = want.uid_by_account().items()
    made = tuple((a, u) for a, u in wanted if have.uid_by_account.get(a) != u)
    written = _write(want.sysusers_files, have)
    return [*written, steps.MakeAccounts(made)] if made else written


def _write_servers(want: Desired, have: Observed, gone: list[str]) -> list[Step]:
    """Write and remove the files of single servers, and make systemd read the unit files again."""
    todo: list[Step] = []
    for files in want.server_files.values():
        todo += _write(files, have)
    todo += [*_write(_listener_files(want), have), *_remove_listener_files(want, have)]
    todo += [
        *_write(execution_steps.files(want), have),
        *execution_steps.remove_unused_files(want, have),
    ]
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
    if silent := _silent(want, have):
        todo.append(steps.EnableSockets(silent))
        touches_units = True
    if touches_units or have.has_stale_units:
        todo.append(steps.ReloadUnits())
    return todo


def _listener_files(want: Desired) -> dict[str, str]:
    """Return all files of all listeners."""
    found: dict[str, str] = {}
    for listener in want.listeners.values():
        found |= http_listeners.files(listener)
    return found


def _remove_listener_files(want: Desired, have: Observed) -> list[Step]:
    """Remove the files of closed listeners."""
    return [
        steps.RemoveFile(template(instance))
        for template in (paths.listener, paths.listener_drop_in)
        for instance in sorted(paths.names_in(have.files, template) - want.listeners.keys())
    ]


def _start(want: Desired, have: Observed) -> list[Step]:
    names, same = want.uid_by_name, effective_state.left_as_it_is(want, have).hash_by_server
    changed = [name for name in names if name in have.loaded_units and name not in same]
    return [
        *(steps.RestartServers(some) for some in batches(changed, RESTARTED_AT_ONCE)),
        *(steps.StartSockets(some) for some in batches(_silent(want, have))),
    ]


def _silent(want: Desired, have: Observed) -> tuple[str, ...]:
    """Return the servers whose socket does not listen, or would not after a reboot."""
    return tuple(name for name in want.uid_by_name if name not in have.listening)


def _open_listeners(want: Desired, have: Observed) -> list[Step]:
    """Open the listeners that are not open, or that were closed above."""
    opened = [
        (instance, listener)
        for instance, listener in want.listeners.items()
        if instance not in have.open_listeners or not _has_current_files(instance, want, have)
    ]
    return [steps.StartListeners(some) for some in batches(opened)]


def _load_webhook(want: Desired, have: Observed) -> list[Step]:
    """Make the webhook post to the configured URL, or stop it if no URL is configured."""
    if not want.webhook:
        return egress_steps.without(paths.WEBHOOK_UNIT, paths.WEBHOOK, have)
    if egress_steps.is_served(paths.WEBHOOK_UNIT, paths.WEBHOOK, want, have):
        return []
    return [steps.WriteFile(paths.WEBHOOK, want.webhook), steps.LoadWebhook()]


def _shut_states(want: Desired, have: Observed) -> list[Step]:
    """Give state folders to root before their accounts are removed: useradd may reuse the UID.

    systemd gives them back if the server returns.
    """
    left = have.states - have.shut_states - want.uid_by_name.keys()
    return [steps.ShutTree(f"{paths.STATES}/{name}") for name in sorted(left)]


def _remove_caches(want: Desired, have: Observed) -> list[Step]:
    """Remove programs that a server would run again, before its account is removed, as above."""
    left = sorted(have.caches - want.uid_by_name.keys())
    return [steps.RemoveTree(f"{paths.CACHES}/{name}") for name in left]


def _remove_accounts(want: Desired, gone: list[str], have: Observed) -> list[Step]:
    todo: list[Step] = [
        steps.RemoveAccount(account)
        for account in sorted(have.uid_by_account.keys() - want.uid_by_account().keys())
    ]
    left = {paths.sysusers(name) for name in gone} - want.sysusers_files.keys()
    return [*todo, *(steps.RemoveFile(path) for path in sorted(left) if path in have.files)]


def _purge(want: Desired, have: Observed) -> list[Step]:
    """Remove the remains of retired servers; only then may other servers have their UIDs."""
    left = sorted(have.states - want.uid_by_name.keys())
    trees: list[Step] = [steps.RemoveTree(f"{paths.STATES}/{name}") for name in left]
    retired = {name for name, a in want.registry.by_name.items() if a.is_retired}
    trees += [steps.ForgetSecrets(name) for name in sorted(have.kept_secrets & retired)]
    text = specs.encode(purge_retired(want.registry))
    if text == specs.encode(want.registry):
        return trees
    return [*trees, steps.WriteFile(paths.REGISTRY, text)]
