"""Steps for the execution of code: run slots, and the worker that uses them."""

import msgspec

from mcpwrap.core.wire import server_files as specs
from mcpwrap.core.wire.execution import worker_file
from mcpwrap.core.wire.execution.worker_file import Pool, Worker
from mcpwrap.plan import paths, steps
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.diff import egress_steps
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.steps import Step, batches


def files(want: Desired) -> dict[str, str]:
    """Return the unit files of run slots and of the worker, which systemd reads."""
    found = dict(want.worker_drop_ins)
    for of_slot in want.job_files.values():
        found |= of_slot
    return found


def stop(want: Desired, have: Observed) -> list[Step]:
    """Stop slots that are removed or whose files change, and a worker without slots.

    A slot that is started in advance would otherwise run with its earlier limits.
    """
    loaded = have.loaded_jobs | have.open_jobs
    stopped = [i for i in sorted(loaded) if not _has_current_files(i, want, have)]
    return [
        *_forget_removed(want, have),
        *_stop_worker(want, have),
        *(steps.StopJobs(some) for some in batches(stopped)),
    ]


def _forget_removed(want: Desired, have: Observed) -> list[Step]:
    """Remove slots from the worker's settings before they stop: it sends no more runs there."""
    text = _without_removed(want, have)
    return [] if text == have.files.get(paths.WORKER, "") else [steps.WriteFile(paths.WORKER, text)]


def _without_removed(want: Desired, have: Observed) -> str:
    """Return the worker's settings of now, without the slots that are removed.

    All else stays as it is until the slots have their new files.
    """
    text = have.files.get(paths.WORKER, "")
    if not text or not want.worker:
        return text
    try:
        now = worker_file.decode(text.encode())
    except msgspec.MsgspecError:
        return text  # the worker cannot read it either, and has no pools
    then = worker_file.decode(want.worker.encode()).pools
    pools = {name: _in_both(pool, then[name]) for name, pool in now.pools.items() if name in then}
    return text if pools == now.pools else specs.encode(Worker(pools=pools, listen=now.listen))


def _in_both(now: Pool, then: Pool) -> Pool:
    """Return the present pool without the slots that are removed."""
    at_once = min(now.limits.at_once, then.limits.at_once)
    return Pool(limits=msgspec.structs.replace(now.limits, at_once=at_once))


def _stop_worker(want: Desired, have: Observed) -> list[Step]:
    """Stop the worker if it has nothing to do, or listens elsewhere: sockets are PID 1's."""
    if not want.worker:
        is_there = paths.WORKER in have.files
        units = [*egress_steps.without(paths.WORKER_UNIT, paths.WORKER, have)]
        return [*units, steps.StopUnit(paths.WORKER_SERVICE)] if is_there else units
    if paths.WORKER_UNIT not in have.serving or _has_current_drop_ins(want, have):
        return []
    return [steps.StopUnit(paths.WORKER_UNIT), steps.StopUnit(paths.WORKER_SERVICE)]


def start(want: Desired, have: Observed) -> list[Step]:
    """Open slots that are not open, or that were stopped above; then the worker."""
    opened = [
        i
        for i in want.job_files
        if i not in have.open_jobs or not _has_current_files(i, want, have)
    ]
    todo: list[Step] = [steps.StartJobs(some) for some in batches(opened)]
    if not want.worker:
        return todo
    if _without_removed(want, have) != want.worker:
        todo.append(steps.WriteFile(paths.WORKER, want.worker))
    if paths.WORKER_UNIT not in have.serving or not _has_current_drop_ins(want, have):
        todo.append(steps.LoadWorker())
    return todo


def remove_unused_files(want: Desired, have: Observed) -> list[Step]:
    """Remove the drop-ins of slots that were stopped, and of a worker that listens no more."""
    unused = {paths.job_drop_in(i) for i in paths.names_in(have.files, paths.job_drop_in)} - files(
        want
    ).keys()
    drop_ins = {paths.WORKER_SOCKET_DROP_IN, paths.WORKER_SERVICE_DROP_IN} & have.files.keys()
    unused |= drop_ins - want.worker_drop_ins.keys()
    return [steps.RemoveFile(path) for path in sorted(unused)]


def _has_current_files(instance: str, want: Desired, have: Observed) -> bool:
    """Return whether a slot's files are as desired. They change only while it is stopped."""
    wanted = want.job_files.get(instance)
    return wanted is not None and all(have.files.get(p) == text for p, text in wanted.items())


def _has_current_drop_ins(want: Desired, have: Observed) -> bool:
    found = {
        path: have.files[path]
        for path in (paths.WORKER_SOCKET_DROP_IN, paths.WORKER_SERVICE_DROP_IN)
        if path in have.files
    }
    return found == want.worker_drop_ins
