"""Steps for egress: certificates, Squid instances, the front, and removal of unused files."""

from collections.abc import Collection, Mapping

from mcpwrap.plan import paths, steps
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.diff import effective_state
from mcpwrap.plan.egress import squid_conf
from mcpwrap.plan.egress.squid_instances import OPEN
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.steps import Step


def open_ways_out(want: Desired, have: Observed) -> list[Step]:
    """Return the steps for egress: after the packet rules are loaded, and before servers start.

    Egress that a server must not use any more is closed here too.
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
    """Order the steps: a port that moves to another instance is closed before it is opened."""
    todo: list[Step] = []
    left = {i: _new_ports(i, want, have) for i in _instances(want, have)}
    holders = set(left)
    while left:
        ready = [i for i in left if not _any_holds(holders - {i}, left[i], have)]
        for instance in ready:
            todo += _load_proxy(instance, want, have)
            del left[instance]
        holders -= set(ready)
        if not ready:  # each waits for another, so one is stopped
            *_, last = (j for j in left if j in holders and _is_in_the_way(j, left, have))
            todo.append(steps.StopUnit(paths.proxy_unit(last)))
            holders.remove(last)
    return todo


def _instances(want: Desired, have: Observed) -> list[str]:
    """Return all instances that exist or should exist, those that open TLS last."""
    found = paths.names_in(have.files, paths.proxy) | want.proxies.keys()
    found |= {instance for unit in have.serving if (instance := paths.instance_of(unit))}
    return sorted(found, key=lambda instance: (instance.startswith(OPEN), len(instance), instance))


def _new_ports(instance: str, want: Desired, have: Observed) -> frozenset[str]:
    """Return the ports that an instance is to open, but for those that it holds already."""
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
    """Return whether an instance may hold one of the ports.

    After an interruption it may still run with an earlier configuration.
    """
    unit, text = paths.proxy_unit(instance), have.files.get(paths.proxy(instance), "")
    is_known = have.applied.hash_by_unit.get(unit) == effective_state.digest(text)
    if is_known or not (text or unit in have.serving):
        ports &= squid_conf.ports(text)
    return bool(ports)


def is_served(unit: str, file: str, want: Desired, have: Observed) -> bool:
    """Return whether the unit runs with its desired configuration: the file alone is no proof."""
    is_there = (
        have.files.get(file) == effective_state.text_by_unit(want)[unit] and unit in have.serving
    )
    return is_there and unit in effective_state.left_as_it_is(want, have).hash_by_unit


def without(unit: str, file: str, have: Observed) -> list[Step]:
    """Stop a unit with nothing to serve.

    A unit that runs and does not start at boot, or the reverse, is stopped too.
    """
    if file in have.files:
        return [steps.StopUnit(unit), steps.RemoveFile(file)]
    return [steps.StopUnit(unit)] if unit in have.serving else []


def remove_unused(want: Desired, have: Observed) -> list[Step]:
    """Remove files that no remaining server uses; no unit names them any more."""
    wanted = {path for files in want.server_files.values() for path in files}
    files = {paths.resolv_conf(name) for name in paths.names_in(have.files, paths.resolv_conf)}
    authorities = sorted(have.authorities - want.authorities)
    return [
        *(steps.RemoveFile(path) for path in sorted(files - wanted)),
        *(steps.RemoveTree(f"{paths.CAS}/{name}") for name in authorities),
    ]
