"""Steps for egress: certificates, instances of Squid, the front, and what they leave behind."""

from collections.abc import Collection, Mapping

from mcpwrap.plan import paths, steps
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.diff import effective_state
from mcpwrap.plan.egress import squid_conf
from mcpwrap.plan.egress.squid_instances import OPEN
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.steps import Step


def open_ways_out(want: Desired, have: Observed) -> list[Step]:
    """Return the steps before a server starts, and after the rules know it.

    Egress that a server may use no more is closed here too.
    """
    todo: list[Step] = [
        steps.MakeAuthority(name) for name in sorted(want.authorities - have.authorities)
    ]
    todo += _load_proxies(want, have)
    if not want.front:
        todo += without(paths.FRONT_UNIT, paths.FRONT, have)
    elif not is_served(paths.FRONT_UNIT, paths.FRONT, want, have):
        todo += [steps.WriteFile(paths.FRONT, want.front), steps.LoadFront()]
    return todo


def _load_proxies(want: Desired, have: Observed) -> list[Step]:
    """A port that moves from one instance to another is closed there before it is opened here."""
    todo: list[Step] = []
    left = {i: _new_ports(i, want, have) for i in _instances(want, have)}
    holders = set(left)
    while left:
        ready = [i for i in left if not _any_holds(holders - {i}, left[i], have)]
        for instance in ready:
            todo += _load_proxy(instance, want, have)
            del left[instance]
        holders -= set(ready)
        if not ready:  # each waits for another, so one makes room
            *_, last = (j for j in left if j in holders and _is_in_the_way(j, left, have))
            todo.append(steps.StopUnit(paths.proxy_unit(last)))
            holders.remove(last)
    return todo


def _instances(want: Desired, have: Observed) -> list[str]:
    """Return all that there are and should be, those that open TLS last."""
    found = paths.names_in(have.files, paths.proxy) | want.proxies.keys()
    found |= {instance for unit in have.serving if (instance := paths.instance_of(unit))}
    return sorted(found, key=lambda instance: (instance.startswith(OPEN), len(instance), instance))


def _new_ports(instance: str, want: Desired, have: Observed) -> frozenset[str]:
    """Return the ports that it is to open, but for those that no other can have."""
    is_serving = paths.proxy_unit(instance) in have.serving
    now = squid_conf.ports(have.files.get(paths.proxy(instance), "")) if is_serving else frozenset()
    return squid_conf.ports(want.proxies.get(instance, "")) - now


def _load_proxy(instance: str, want: Desired, have: Observed) -> list[Step]:
    unit, file = paths.proxy_unit(instance), paths.proxy(instance)
    if instance not in want.proxies:
        return without(unit, file, have)
    if is_served(unit, file, want, have):
        return []
    return [steps.LoadProxy(instance, want.proxies[instance])]


def _any_holds(instances: Collection[str], ports: frozenset[str], have: Observed) -> bool:
    return any(_may_hold(instance, ports, have) for instance in instances)


def _is_in_the_way(
    instance: str, ports_by_instance: Mapping[str, frozenset[str]], have: Observed
) -> bool:
    others = (ports for other, ports in ports_by_instance.items() if other != instance)
    return any(_may_hold(instance, ports, have) for ports in others)


def _may_hold(instance: str, ports: frozenset[str], have: Observed) -> bool:
    """Say whether it may listen at one of them: broken off, it may run with what was before."""
    unit, text = paths.proxy_unit(instance), have.files.get(paths.proxy(instance), "")
    is_known = have.applied.hash_by_unit.get(unit) == effective_state.digest(text)
    if is_known or not (text or unit in have.serving):
        ports &= squid_conf.ports(text)
    return bool(ports)


def is_served(unit: str, file: str, want: Desired, have: Observed) -> bool:
    """Say whether the unit runs with what it should: the file alone does not say that."""
    is_there = (
        have.files.get(file) == effective_state.text_by_unit(want)[unit] and unit in have.serving
    )
    return is_there and unit in effective_state.left_as_it_is(want, have).hash_by_unit


def without(unit: str, file: str, have: Observed) -> list[Step]:
    """Stop a unit with nothing to serve.

    A unit that runs and does not start at boot, or the other way round, is stopped too.
    """
    if file in have.files:
        return [steps.StopUnit(unit), steps.RemoveFile(file)]
    return [steps.StopUnit(unit)] if unit in have.serving else []


def remove_unused(want: Desired, have: Observed) -> list[Step]:
    """Remove what servers that stay have no use for; no unit names it any more."""
    wanted = {path for files in want.server_files.values() for path in files}
    files = {paths.resolv_conf(name) for name in paths.names_in(have.files, paths.resolv_conf)}
    authorities = sorted(have.authorities - want.authorities)
    return [
        *(steps.RemoveFile(path) for path in sorted(files - wanted)),
        *(steps.RemoveTree(f"{paths.CAS}/{name}") for name in authorities),
    ]
