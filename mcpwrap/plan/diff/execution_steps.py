"""Steps for the execution of code: run slots, and the worker that uses them."""

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
    return [*_stop_worker(want, have), *(steps.StopJobs(some) for some in batches(stopped))]


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
    if have.files.get(paths.WORKER) != want.worker:
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
