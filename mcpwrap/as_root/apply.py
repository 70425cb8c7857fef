"""RUNS AS ROOT: `mcpwrap apply`, and what it says."""

from mcpwrap.as_root import trial
from mcpwrap.as_root.carry_out import carry_out
from mcpwrap.errors import McpwrapError, file_error
from mcpwrap.linux import this_machine
from mcpwrap.plan.diff import Retired
from mcpwrap.plan.steps import Step


def apply(retired: Retired) -> None:
    """Plan, and carry it out; who calls holds the lock.

    Raises:
        McpwrapError: the configuration is wrong, or a step failed.
    """
    planned = this_machine.planned(retired)
    notes = [*trial.of_workspaces(planned.wanted), *planned.notes]
    todo = planned.steps
    for line in this_machine.vanished():
        print(f"note: {line}")
    if not todo:
        print("nothing to do")
    for number, step in enumerate(todo, start=1):
        print(f"{number:3}/{len(todo)}  {step.describe()}", flush=True)
        _do(step, number - 1)
    if todo:
        print("done")
    for note in [*notes, *this_machine.notes()]:
        print(f"note: {note}")


def _do(step: Step, done: int) -> None:
    try:
        carry_out(step)
    except OSError as error:
        told = file_error(error)
        raise _broken_off(f"{told.where}: {told.problem}", told.fix, step, done) from error
    except McpwrapError as error:
        raise _broken_off(error.problem, error.fix, step, done) from error


def _broken_off(problem: str, fix: str, step: Step, done: int) -> McpwrapError:
    return McpwrapError(
        f"{problem}\n  {done} steps before it were done and stay done",
        where=step.describe(),
        fix=f"{fix}; then run `mcpwrap apply` again: it goes on from there",
    )
