"""Steps for the HTTP listeners of agents, and for the files that configure them.

A listener is closed before its files change, and opened last of all, when packet rules, server and
access list are complete: so PID 1 listens nowhere that is not bound to one account, and every agent
that is heard is let in. If `apply` is interrupted before that, the listener stays closed.
"""

from mcpwrap.plan import http_listeners, paths, steps
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.steps import Step, batches


def close(want: Desired, have: Observed) -> list[Step]:
    """Close those that go, and those that are told something else: they read it as they start."""
    loaded = have.loaded_listeners | have.open_listeners
    closed = [i for i in sorted(loaded) if not _is_told(i, want, have)]
    return [steps.StopListeners(some) for some in batches(closed)]


def files(want: Desired) -> dict[str, str]:
    """Return all files of all listeners."""
    found: dict[str, str] = {}
    for listener in want.listeners.values():
        found |= http_listeners.files(listener)
    return found


def remove(want: Desired, have: Observed) -> list[Step]:
    """Remove the files of those that are closed."""
    return [
        steps.RemoveFile(template(instance))
        for template in (paths.listener, paths.listener_drop_in)
        for instance in sorted(paths.names_in(have.files, template) - want.listeners.keys())
    ]


def open_all(want: Desired, have: Observed) -> list[Step]:
    """Listen where nobody does, or where it was closed above."""
    opened = [
        (instance, listener)
        for instance, listener in want.listeners.items()
        if instance not in have.open_listeners or not _is_told(instance, want, have)
    ]
    return [steps.StartListeners(some) for some in batches(opened)]


def _is_told(instance: str, want: Desired, have: Observed) -> bool:
    """Say whether its files are what they should be. They change only while it is closed."""
    listener = want.listeners.get(instance)
    if listener is None:
        return False
    return all(have.files.get(p) == text for p, text in http_listeners.files(listener).items())
